//! The journal's thread: it writes what has come, makes it durable, and reports.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::log::Log;
use crate::shared::{Progress, Shared, Task};

/// When the disk is full, what waits is tried again after this time.
const RETRY: Duration = Duration::from_millis(100);

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

/// Whom the thread notifies.
pub(crate) type Notify = Box<dyn FnMut(Progress) + Send>;

pub(crate) struct Writer {
    log: Log,
    shared: Arc<Shared>,
    policy: SyncPolicy,
    segment_bytes: u64,
    notify: Notify,
    tasks: VecDeque<Task>,
    /// When the first record was written that isn't durable yet.
    dirty_since: Option<Instant>,
    is_stalled: bool,
}

impl Writer {
    pub(crate) fn new(
        log: Log,
        shared: Arc<Shared>,
        policy: SyncPolicy,
        segment_bytes: u64,
        notify: Notify,
    ) -> Self {
        let tasks = VecDeque::new();
        let (dirty_since, is_stalled) = (None, false);
        Self { log, shared, policy, segment_bytes, notify, tasks, dirty_since, is_stalled }
    }

    /// Until the journal is closed, or fails.
    pub(crate) fn run(mut self) {
        loop {
            let due = match (self.policy, self.dirty_since) {
                (SyncPolicy::Every(after), Some(since)) => since.checked_add(after),
                _ => None,
            };
            let shared = self.shared.clone();
            let is_closing = shared.take(&mut self.tasks, due);
            let is_due = due.is_some_and(|due| due <= Instant::now());
            let always = self.policy == SyncPolicy::Always;
            match self.turn(always || is_due || is_closing) {
                Ok(()) if is_closing => break,
                Ok(()) => self.set_stalled(None),
                Err(error) if error.is_no_space() && !is_closing => {
                    self.set_stalled(Some(error));
                    self.shared.pause(Instant::now() + RETRY);
                }
                Err(error) => return self.fail(error),
            }
        }
    }

    /// Does what waits, as far as there is room for it.
    fn turn(&mut self, is_sync_due: bool) -> Result<(), Error> {
        let written = self.write();
        if written.as_ref().err().is_none_or(Error::is_no_space) {
            if is_sync_due {
                self.log.sync()?;
                self.dirty_since = None;
            }
            self.publish();
        }
        written
    }

    fn write(&mut self) -> Result<(), Error> {
        while let Some(task) = self.tasks.front_mut() {
            match task {
                Task::Rotate => self.log.rotate()?,
                Task::Write(group) => {
                    if self.log.size() + group.size() as u64 > self.segment_bytes {
                        self.log.rotate()?;
                    }
                    self.log.write(group)?;
                    self.dirty_since = self.dirty_since.or_else(|| Some(Instant::now()));
                }
            }
            if let Some(Task::Write(group)) = self.tasks.pop_front() {
                self.shared.written(group);
            }
        }
        Ok(())
    }

    fn publish(&mut self) {
        let acknowledged = self.log.written();
        let mut is_news = false;
        self.shared.publish(|state| {
            is_news = state.acknowledged < acknowledged;
            state.acknowledged = acknowledged;
            state.last_file = (self.log.first(), self.log.size());
        });
        if is_news {
            (self.notify)(Progress::Acknowledged(acknowledged));
        }
    }

    /// The disk is full, or has room again.
    fn set_stalled(&mut self, refusal: Option<Error>) {
        let is_stalled = refusal.is_some();
        if std::mem::replace(&mut self.is_stalled, is_stalled) != is_stalled {
            self.shared.publish(|state| state.refusal = refusal.clone());
            (self.notify)(refusal.map_or(Progress::Resumed, Progress::Stalled));
        }
    }

    fn fail(mut self, error: Error) {
        self.shared.publish(|state| {
            state.refusal = Some(error.clone());
            state.has_failed = true;
        });
        (self.notify)(Progress::Failed(error));
    }
}

/// However the thread ends, it leaves no one waiting.
impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.publish(|state| {
            state.refusal.get_or_insert(Error::Closed);
            state.has_failed = true;
            state.tasks.clear();
        });
    }
}
