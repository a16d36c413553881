//! The owner of the state: one thread checks changes, has them written, and applies them.
//! Control plane.
//!
//! Readers share the state with a lock that is held for writing only while a group is applied,
//! which is work in memory. Whatever waits for the disk waits before that, without the lock: what
//! a reader sees is durable.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::thread::JoinHandle;

use anyhow::Context as _;
use journal::{Directory, Journal, MAX_RECORD_BYTES, Options, Watch};
use tokio::sync::oneshot;

use crate::model::{Added, Change, Entry, Group, Refusal, Revision, State};

/// The most changes that wait for their turn.
const WAITING: usize = 1_024;

/// The most changes of a group, and their bytes unless it has one change: less than the journal
/// lets wait.
const GROUP: usize = 256;
const GROUP_BYTES: usize = 32 << 20;

/// Why a change is not made.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum WriteError {
    /// The model refuses it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It is too large for the journal.
    #[error("a change of {0} bytes: {MAX_RECORD_BYTES} bytes are the most")]
    TooLarge(usize),
    /// Too many wait.
    #[error("{WAITING} changes wait already")]
    Busy,
    /// It could not be made durable.
    #[error("nothing can be written: {0}")]
    Disk(String),
}

type Answer = oneshot::Sender<Result<Revision, WriteError>>;

struct Request {
    change: Change,
    bytes: Vec<u8>,
    answer: Answer,
}

/// What the owner is sent; nothing ends it.
type Message = Option<Request>;

/// The state, shared with readers.
#[derive(Clone, Default)]
pub(super) struct Shared(Arc<RwLock<State>>);

impl Shared {
    /// The state as it is; nothing is applied for as long as this is held.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        // A thread that panics while it applies a group ends the service's writes, not its reads.
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running owner. Dropping it makes what waits durable, and ends its thread.
pub(super) struct Store {
    shared: Shared,
    queue: SyncSender<Message>,
    thread: Option<JoinHandle<()>>,
}

/// Where a data directory has its journal.
fn journal_folder(data: &Path) -> PathBuf {
    data.join("journal")
}

/// Reads all of a data directory's journal, and changes nothing.
pub(super) fn check(data: &Path) -> Result<journal::Report, journal::Error> {
    journal::check(&Directory::new(journal_folder(data)))
}

/// How changes reach the owner.
#[derive(Clone)]
pub(super) struct Writer(SyncSender<Message>);

impl Store {
    /// Opens the journal in a data directory, and applies what it holds.
    ///
    /// # Errors
    /// When it can't be read, or holds what can't be applied.
    pub(super) fn open(data: &Path) -> anyhow::Result<Self> {
        let folder = journal_folder(data);
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("{} can't be made", folder.display()))?;
        let mut state = State::default();
        let apply = |entry: journal::Entry<'_>| {
            let journal::Entry::Record(_, bytes) = entry else {
                return Err("a snapshot, of which this version makes none".into());
            };
            let entry = Entry::decode(bytes)?;
            Ok(state.replay(&entry)?)
        };
        let disk = Arc::new(Directory::new(folder));
        let (journal, report) = Journal::open(disk, Options::default(), apply, |_| {})?;
        if let Some(dropped) = &report.dropped {
            tracing::warn!("{dropped}");
        }
        tracing::info!(revision = state.revision(), "the journal is read");
        let shared = Shared(Arc::new(RwLock::new(state)));
        let (queue, requests) = mpsc::sync_channel(WAITING);
        let watch = journal.watch();
        let owner = Owner { shared: shared.clone(), journal, watch, has_failed: None };
        let thread = std::thread::Builder::new().name("owner".to_owned());
        let thread = thread.spawn(move || owner.run(&requests)).context("no thread for changes")?;
        Ok(Self { shared, queue, thread: Some(thread) })
    }

    /// The state, for readers.
    pub(super) fn shared(&self) -> Shared {
        self.shared.clone()
    }

    /// The way for changes.
    pub(super) fn writer(&self) -> Writer {
        Writer(self.queue.clone())
    }
}

impl Writer {
    /// Makes a change, and returns its revision once it is on disk.
    pub(super) async fn make(
        &self,
        change: Change,
        bytes: Vec<u8>,
    ) -> Result<Revision, WriteError> {
        // Head and frame of a record have room in what is left.
        if bytes.len() + 64 > MAX_RECORD_BYTES {
            return Err(WriteError::TooLarge(bytes.len()));
        }
        let (answer, answered) = oneshot::channel();
        let sent = self.0.try_send(Some(Request { change, bytes, answer }));
        sent.map_err(|error| match error {
            TrySendError::Full(_) => WriteError::Busy,
            TrySendError::Disconnected(_) => ended(),
        })?;
        answered.await.unwrap_or_else(|_| Err(ended()))
    }
}

fn ended() -> WriteError {
    WriteError::Disk("the service ends".to_owned())
}

impl Drop for Store {
    fn drop(&mut self) {
        // A panic has been printed, and clients have been answered that the service ends.
        let _ = self.queue.send(None);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("revision", &self.shared.read().revision()).finish()
    }
}

/// What the thread has.
struct Owner {
    shared: Shared,
    journal: Journal,
    watch: Watch,
    /// Why nothing more is written, once that is so.
    has_failed: Option<WriteError>,
}

impl Owner {
    fn run(mut self, requests: &Receiver<Message>) {
        let mut waiting: VecDeque<Request> = VecDeque::new();
        let mut is_ending = false;
        while !(is_ending && waiting.is_empty()) {
            if waiting.is_empty() {
                let request = requests.recv().ok().flatten();
                is_ending |= request.is_none();
                waiting.extend(request);
            }
            while waiting.len() < GROUP
                && let Ok(request) = requests.try_recv()
            {
                is_ending |= request.is_none();
                waiting.extend(request);
            }
            waiting = self.turn(waiting);
        }
    }

    /// Makes as many changes as form a group, and returns those that have to wait.
    fn turn(&mut self, waiting: VecDeque<Request>) -> VecDeque<Request> {
        let now_us = jiff::Timestamp::now().as_microsecond();
        let (mut group, mut later) = (Group::default(), VecDeque::new());
        let mut made: Vec<(Answer, Revision)> = Vec::new();
        let mut records: Vec<Vec<u8>> = Vec::new();
        let mut size = 0;
        let state = self.shared.read();
        for Request { change, bytes, answer } in waiting {
            if size > 0 && size + bytes.len() > GROUP_BYTES {
                later.push_back(Request { change, bytes, answer });
                continue;
            }
            if let Some(why) = &self.has_failed {
                let _ = answer.send(Err(why.clone()));
                continue;
            }
            match group.add(&state, change, now_us) {
                Ok(Added::At(revision)) => {
                    size += bytes.len();
                    let entry = group.entries().last();
                    records.extend(entry.map(|entry| entry.encode_around(&bytes)));
                    made.push((answer, revision));
                }
                Ok(Added::Later(change)) => later.push_back(Request { change, bytes, answer }),
                // Whoever has gone away needs no answer, here and below.
                Err(refusal) => drop(answer.send(Err(refusal.into()))),
            }
        }
        drop(state);
        let written = self.write(&records);
        if written.is_ok() {
            self.shared.0.write().unwrap_or_else(PoisonError::into_inner).apply_group(&group);
        }
        for (answer, revision) in made {
            let _ = answer.send(written.clone().map(|()| revision));
        }
        later
    }

    /// Has records written, and waits until they are durable.
    ///
    /// A record that is refused before it is appended ends the service's writes: those of its group
    /// that are appended may become durable, and their numbers can't be given again.
    fn write(&mut self, records: &[Vec<u8>]) -> Result<(), WriteError> {
        let Some(_) = records.first() else { return Ok(()) };
        let mut append = || {
            for record in records {
                self.journal.append(record)?;
            }
            self.journal.commit();
            self.watch.wait(self.journal.last())
        };
        append().map_err(|error| {
            let failed = WriteError::Disk(error.to_string());
            tracing::error!("{error}: changes are refused until the service is started again");
            self.has_failed = Some(failed.clone());
            failed
        })
    }
}
