//! What the journal's thread does: it writes what has come, makes it durable, and reports. Whoever
//! waits for that may do it in its place.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::frame::Group;
use crate::log::Log;
use crate::shared::{Pause, Progress, Shared, Task};

/// When the disk is full, what waits is tried again after this time.
const RETRY: Duration = Duration::from_millis(100);
/// When nothing has come for this time, the log says that its last group is durable too.
const IDLE: Duration = Duration::from_secs(1);
/// A group of more bytes is not written in microseconds.
const SHORT_BYTES: usize = 64 << 10;

/// When what was written is made durable (fsync), and with it what is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// At once, all that has come in the meantime together: what is acknowledged survives a crash
    /// of the machine.
    #[default]
    Always,
    /// This long after it was written: what is acknowledged survives a crash of the process, and
    /// after this time one of the machine.
    Every(Duration),
    /// When the system likes: what is acknowledged survives a crash of the process.
    Never,
}

/// As options have it: `always`, `never`, or a time such as `500ms`.
impl std::str::FromStr for SyncPolicy {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => match text.parse::<base::units::Span>() {
                Ok(span) => Ok(Self::Every(span.duration())),
                Err(_) => Err("it has to be always, never, or a time such as 500ms"),
            },
        }
    }
}

/// How a journal is kept.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// When records are made durable.
    pub sync: SyncPolicy,
    /// A file of the log ends before it becomes larger, unless one group is. The last file has up
    /// to 64 KiB of zeros more, until it is closed.
    pub segment_bytes: u64,
    /// A record with which more than this would wait to be written is refused as [`Error::Busy`],
    /// unless none waits. A record counts 8 bytes more than it has, and a group 40.
    pub waiting_bytes: usize,
    /// Whether what can't be written for want of room is dropped and reported
    /// ([`Progress::Refused`]), instead of tried again.
    pub refuses_when_full: bool,
}

impl Default for Options {
    fn default() -> Self {
        let (segment_bytes, waiting_bytes) = (64 << 20, 64 << 20);
        let (sync, refuses_when_full) = (SyncPolicy::Always, false);
        Self { sync, segment_bytes, waiting_bytes, refuses_when_full }
    }
}

/// Whom the thread notifies.
pub(crate) type Notify = Box<dyn FnMut(Progress) + Send>;

pub(crate) struct Writer {
    log: Log,
    shared: Arc<Shared>,
    options: Options,
    notify: Notify,
    tasks: VecDeque<Task>,
    written: Vec<Group>,
    /// When the first record was written that isn't durable yet.
    dirty_since: Option<Instant>,
    is_stalled: bool,
    /// Why nothing is written until it is asked for again.
    refused: Option<Error>,
}

impl Writer {
    pub(crate) fn new(log: Log, shared: Arc<Shared>, options: Options, notify: Notify) -> Self {
        let (tasks, written) = (VecDeque::new(), Vec::new());
        let (dirty_since, is_stalled, refused) = (None, false, None);
        Self { log, shared, options, notify, tasks, written, dirty_since, is_stalled, refused }
    }

    /// Does what has come, on any thread; returns what has come of all once it is over.
    pub(crate) fn step(&mut self) -> Option<Result<(), Error>> {
        if let Some(why) = self.shared.ended() {
            return Some(Err(why));
        }
        match self.turn() {
            Ok(true) => Some(Ok(())),
            Ok(false) => None,
            Err(error) => {
                self.shared.end(Some(error.clone()));
                (self.notify)(Progress::Failed(error.clone()));
                Some(Err(error))
            }
        }
    }

    /// How long there is nothing to do, unless tasks come.
    pub(crate) fn pause(&self) -> Pause {
        let deadline = match self.sync_at() {
            _ if self.is_stalled => Some(Instant::now() + RETRY),
            None if self.log.is_unmarked() => Some(Instant::now() + IDLE),
            sync_at => sync_at,
        };
        Pause { deadline, is_stalled: self.is_stalled, has_tasks: !self.tasks.is_empty() }
    }

    /// Whether a write of this many bytes is all that there is to do: no fsync, and no other file.
    pub(crate) fn is_short(&self, bytes: usize) -> bool {
        let is_free = !self.is_stalled && self.refused.is_none() && self.tasks.is_empty();
        let has_room = self.log.written().bytes + bytes as u64 <= self.options.segment_bytes;
        let is_never = self.options.sync == SyncPolicy::Never;
        is_never && bytes <= SHORT_BYTES && is_free && has_room && !self.shared.has_tasks()
    }

    /// When what was written has to be made durable, where it may wait.
    fn sync_at(&self) -> Option<Instant> {
        match (self.options.sync, self.dirty_since) {
            (SyncPolicy::Every(after), Some(since)) => since.checked_add(after),
            _ => None,
        }
    }

    /// Does the tasks that have come, as far as there is room; returns whether all is over.
    fn turn(&mut self) -> Result<bool, Error> {
        let sync_at = self.sync_at();
        let (tasks, written) = (&mut self.tasks, &mut self.written);
        let is_closing = self.shared.take(tasks, written);
        let is_idle = self.tasks.is_empty();
        let done = self.write();
        if done.as_ref().err().is_none_or(Error::is_passing) {
            let is_due = sync_at.is_some_and(|at| at <= Instant::now());
            if is_due || is_closing || self.options.sync == SyncPolicy::Always {
                self.log.sync()?;
                self.dirty_since = None;
            }
            self.publish();
        }
        match done {
            Err(error) if error.is_passing() && self.options.refuses_when_full => {
                self.refuse(&error);
                // A new file is still wanted.
                self.set_stalled((!self.tasks.is_empty() && !is_closing).then_some(error));
            }
            Err(error) if error.is_passing() && !is_closing => self.set_stalled(Some(error)),
            Err(error) => return Err(error),
            Ok(()) => self.set_stalled(None),
        }
        if is_closing {
            self.log.close()?;
        } else if is_idle {
            self.log.mark()?;
        }
        Ok(is_closing)
    }

    fn write(&mut self) -> Result<(), Error> {
        while let Some(task) = self.tasks.front_mut() {
            match task {
                Task::Rotate => self.log.rotate()?,
                Task::Accept => {
                    self.refused = None;
                    self.shared.publish(|state| state.unavailable = None);
                }
                // Dropped below.
                Task::Write(_) if self.refused.is_some() => {}
                Task::Write(group) => {
                    if self.log.written().bytes + group.size() as u64 > self.options.segment_bytes {
                        self.log.rotate()?;
                    }
                    self.log.write(group)?;
                    self.dirty_since = self.dirty_since.or_else(|| Some(Instant::now()));
                }
            }
            if let Some(Task::Write(group)) = self.tasks.pop_front() {
                self.shared.waiting_bytes.fetch_sub(group.size(), Ordering::Relaxed);
                self.written.push(group);
            }
        }
        Ok(())
    }

    fn publish(&mut self) {
        let written = self.log.written();
        let mut is_news = false;
        self.shared.publish(|state| {
            is_news = state.acknowledged < written.last;
            (state.acknowledged, state.written) = (written.last, written);
        });
        if is_news {
            let others_wait = self.shared.has_tasks();
            (self.notify)(Progress::Acknowledged { through: written.last, others_wait });
        }
    }

    /// Drops what waits to be written, and what comes until it is asked for again.
    fn refuse(&mut self, why: &Error) {
        let is_news = self.refused.replace(why.clone()).is_none();
        let mut dropped = 0;
        self.tasks.retain(|task| match task {
            Task::Write(group) => {
                dropped += group.size();
                false
            }
            Task::Rotate | Task::Accept => true,
        });
        self.shared.waiting_bytes.fetch_sub(dropped, Ordering::Relaxed);
        self.shared.publish(|state| state.unavailable = Some(why.clone()));
        // Once: a report that comes late must not be taken for one of what is accepted since.
        if is_news {
            (self.notify)(Progress::Refused(self.log.written().last, why.clone()));
        }
    }

    /// The disk is full, or has room again.
    fn set_stalled(&mut self, why: Option<Error>) {
        let is_stalled = why.is_some();
        if std::mem::replace(&mut self.is_stalled, is_stalled) != is_stalled {
            let refused = self.refused.clone();
            self.shared.publish(|state| state.unavailable = why.clone().or(refused));
            (self.notify)(why.map_or(Progress::Resumed, Progress::Stalled));
        }
    }
}

/// The journal's thread, until the journal is closed, and then all is durable; or until it fails.
pub(crate) fn run(writer: &Mutex<Writer>, shared: &Arc<Shared>) -> Result<(), Error> {
    let _ended = Ended(shared);
    // Whoever has panicked in its place has left it as it must not be used.
    let writer = || writer.lock().map_err(|_| Error::Closed);
    loop {
        let pause = writer()?.pause();
        if shared.await_tasks(pause) {
            continue;
        }
        if let Some(all) = writer()?.step() {
            return all;
        }
    }
}

/// However the thread ends, it leaves no one waiting.
struct Ended<'a>(&'a Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.end(None);
    }
}
