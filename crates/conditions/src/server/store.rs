//! The owner of the state: one thread checks changes, has them written, and applies them.
//! Control plane.
//!
//! Readers share the state with a lock that is held for writing only while a group is applied, or
//! what was sealed is exchanged, which is work in memory. Whatever waits for the disk waits before
//! that, without the lock: what a reader sees is durable.
//!
//! When enough has come it is sealed ([`super::sealing`]): the journal's snapshot then names the
//! segments, and a start reads what came since.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use journal::{Directory, Disk, Journal, MAX_RECORD_BYTES, Options, Watch};
use tokio::sync::oneshot;

use super::full;
use super::sealing::{Sealed, Sealing};
use super::segments::Segments;
use super::shared::Shared;
use crate::model::{Added, BLOCK_BYTES, Change, Entry, Group, Loader, Refusal, Revision, State};

/// The most changes that wait for their turn.
const WAITING: usize = 1_024;

/// The most changes of a group, and their bytes unless it has one change: less than the journal
/// lets wait.
const GROUP: usize = 256;
const GROUP_BYTES: usize = 32 << 20;

/// Why a change is not made.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// The model refuses it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It is too large for the journal.
    #[error("a change of {0} bytes: {MAX_RECORD_BYTES} bytes are the most")]
    TooLarge(usize),
    /// Too many wait.
    #[error("{WAITING} changes wait already")]
    Busy,
    /// Nothing is written any more; it was not made.
    #[error("nothing can be written: {0}")]
    Disk(String),
    /// It may be durable already, or become so.
    #[error("it is unknown whether the change was, or will be, made: {0}")]
    Unknown(String),
}

/// How long a change is waited for, after which its client has to see for itself.
const PATIENCE: Duration = Duration::from_secs(30);

type Answer = oneshot::Sender<Result<Revision, WriteError>>;

type SealAnswer = mpsc::Sender<Result<(), String>>;

struct Request {
    change: Change,
    bytes: Vec<u8>,
    answer: Answer,
}

/// What the owner is sent.
enum Message {
    Change(Request),
    /// To seal what came so far.
    Seal(SealAnswer),
    /// A seal is done.
    Sealed,
    End,
}

/// A running owner. Dropping it makes what waits durable, and ends its thread.
pub(super) struct Store {
    shared: Shared,
    queue: SyncSender<Message>,
    thread: Option<JoinHandle<()>>,
    is_ending: Arc<AtomicBool>,
}

/// Where a data directory has its journal, and its segments.
pub(super) fn folders(data: &Path) -> [PathBuf; 2] {
    ["journal", "segments"].map(|name| data.join(name))
}

/// Takes what a journal holds: a snapshot, and what came since.
pub(super) struct Reading<'a> {
    segments: &'a Segments,
    loader: Option<Loader>,
    state: Option<State>,
    /// What the snapshot names.
    named: BTreeSet<u64>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(segments: &'a Segments) -> Self {
        Self { segments, loader: None, state: None, named: BTreeSet::new() }
    }

    /// Takes the next record.
    pub(super) fn apply(&mut self, entry: journal::Entry<'_>) -> Result<(), journal::ApplyError> {
        match entry {
            journal::Entry::Snapshot(bytes) => {
                Ok(self.loader.get_or_insert_default().apply(bytes)?)
            }
            journal::Entry::Record(_, bytes) => Ok(self.state()?.replay(Entry::decode(bytes)?)?),
        }
    }

    fn state(&mut self) -> Result<&mut State, journal::ApplyError> {
        let state = match (self.state.take(), self.loader.take()) {
            (Some(state), _) => state,
            (None, Some(loader)) => {
                self.named.extend(loader.segments());
                self.segments.load(loader)?
            }
            (None, None) => State::default(),
        };
        Ok(self.state.insert(state))
    }

    /// The state, after all records, and the segments that the snapshot names: those of tags that
    /// were deleted since, too.
    pub(super) fn finish(mut self) -> Result<(State, BTreeSet<u64>), journal::ApplyError> {
        self.state()?;
        Ok((self.state.unwrap_or_default(), self.named))
    }
}

/// How changes reach the owner.
#[derive(Clone)]
pub(crate) struct Writer(SyncSender<Message>);

impl Store {
    /// Opens the journal in a data directory, and applies what it holds. What is not sealed yet is
    /// once there are `seal_after` bytes of it.
    ///
    /// # Errors
    /// When it can't be read, or holds what can't be applied.
    pub(super) fn open(data: &Path, seal_after: u64) -> anyhow::Result<Self> {
        let [journal, segments] = folders(data);
        for folder in [&journal, &segments] {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("{} can't be made", folder.display()))?;
        }
        let disk = Arc::new(Directory::new(journal));
        Self::open_on(disk, Segments::of(segments), seal_after)
    }

    /// Opens a journal with its segments.
    pub(super) fn open_on(
        disk: Arc<dyn Disk>,
        segments: Segments,
        seal_after: u64,
    ) -> anyhow::Result<Self> {
        let mut reading = Reading::new(&segments);
        let (journal, report) =
            Journal::open(disk, Options::default(), |entry| reading.apply(entry), |_| {})?;
        let (state, named) =
            reading.finish().map_err(|why| anyhow::anyhow!("the snapshot: {why}"))?;
        if let Some(dropped) = &report.dropped {
            tracing::warn!("{dropped}");
        }
        for damage in state.damages(false) {
            tracing::error!("{damage}: what it holds is refused");
        }
        if state.revision() != report.last {
            let (is, last) = (state.revision(), report.last);
            anyhow::bail!("the snapshot is of revision {is}, and the journal ends with {last}");
        }
        segments.sweep(|id| named.contains(&id))?;
        tracing::info!(revision = state.revision(), "the journal is read");
        let unsealed = state.unsealed_bytes();
        let shared = Shared::new(state);
        let (queue, requests) = mpsc::sync_channel(WAITING);
        let watch = journal.watch();
        let is_ending = Arc::new(AtomicBool::new(false));
        let owner = Owner {
            shared: shared.clone(),
            journal,
            watch,
            has_failed: None,
            segments,
            seal_after,
            seal_at: seal_after,
            unsealed,
            sealing: None,
            asked: (Vec::new(), Vec::new()),
            is_unsure: false,
            wake: queue.clone(),
            ends: is_ending.clone(),
        };
        let thread = std::thread::Builder::new().name("owner".to_owned());
        let thread = thread.spawn(move || owner.run(&requests)).context("no thread for changes")?;
        Ok(Self { shared, queue, thread: Some(thread), is_ending })
    }

    /// Seals what came so far, and waits for that.
    ///
    /// # Errors
    /// When it can't be written.
    pub(super) fn seal(&self) -> Result<(), String> {
        let (answer, answered) = mpsc::channel();
        let ended = || ended().to_string();
        self.queue.send(Message::Seal(answer)).map_err(|_| ended())?;
        answered.recv().unwrap_or_else(|_| Err(ended()))
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
    pub(crate) async fn make(
        &self,
        change: Change,
        bytes: Vec<u8>,
    ) -> Result<Revision, WriteError> {
        // Head and frame of a record have room in what is left.
        if bytes.len() + 64 > MAX_RECORD_BYTES {
            return Err(WriteError::TooLarge(bytes.len()));
        }
        let (answer, answered) = oneshot::channel();
        let sent = self.0.try_send(Message::Change(Request { change, bytes, answer }));
        sent.map_err(|error| match error {
            TrySendError::Full(_) => WriteError::Busy,
            TrySendError::Disconnected(_) => ended(),
        })?;
        let late = |_| {
            let seconds = PATIENCE.as_secs();
            WriteError::Unknown(format!("it is not on disk after {seconds} s"))
        };
        tokio::time::timeout(PATIENCE, answered)
            .await
            .map_err(late)?
            .unwrap_or_else(|_| Err(WriteError::Unknown("the service ends".to_owned())))
    }
}

fn ended() -> WriteError {
    WriteError::Disk("the service ends".to_owned())
}

impl Drop for Store {
    fn drop(&mut self) {
        self.is_ending.store(true, Relaxed);
        // A panic has been printed, and clients have been answered that the service ends.
        let _ = self.queue.send(Message::End);
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
    segments: Segments,
    seal_after: u64,
    /// When there are this many unsealed bytes, they are sealed.
    seal_at: u64,
    /// Bytes of changes that aren't sealed.
    unsealed: u64,
    sealing: Option<Sealing>,
    /// Who waits for the seal under way, and for the next one.
    asked: (Vec<SealAnswer>, Vec<SealAnswer>),
    /// Whether it isn't known which snapshot counts: no file is removed then.
    is_unsure: bool,
    wake: SyncSender<Message>,
    /// A full disk is not waited for any more.
    ends: Arc<AtomicBool>,
}

impl Owner {
    fn run(mut self, requests: &Receiver<Message>) {
        let mut waiting: VecDeque<Request> = VecDeque::new();
        let mut is_ending = false;
        while !(is_ending && waiting.is_empty()) {
            let mut next = match waiting.is_empty() {
                true => requests.recv().ok(),
                false => requests.try_recv().ok(),
            };
            is_ending |= waiting.is_empty() && next.is_none();
            while let Some(message) = next.take() {
                match message {
                    Message::Change(request) => waiting.push_back(request),
                    Message::Seal(answer) => self.asked.1.push(answer),
                    Message::Sealed => {}
                    Message::End => is_ending = true,
                }
                if waiting.len() < GROUP {
                    next = requests.try_recv().ok();
                }
            }
            waiting = self.turn(waiting);
            self.see_to_seals();
        }
        // Before the journal, of which it makes a snapshot.
        self.sealing = None;
    }

    /// Takes in a seal that is done, and begins one that is due.
    fn see_to_seals(&mut self) {
        if let Some(sealed) = self.sealing.as_ref().and_then(Sealing::result) {
            self.sealing = None;
            self.take_in(sealed);
        }
        let is_due = self.unsealed > 0 && self.unsealed >= self.seal_at;
        let is_due = is_due || !self.asked.1.is_empty();
        if is_due && self.sealing.is_none() {
            self.asked.0.append(&mut self.asked.1);
            if let Err(why) = self.begin_seal() {
                self.not_sealed(&why.to_string());
            }
        }
    }

    fn begin_seal(&mut self) -> anyhow::Result<()> {
        let seal = self.shared.read().seal(BLOCK_BYTES)?;
        let snapshot = self.journal.snapshot()?;
        let (revision, through) = (seal.revision(), snapshot.through());
        anyhow::ensure!(revision == through, "revision {revision} is not record {through}");
        self.shared.write().begin_seal(&seal);
        let (shared, segments, wake) =
            (self.shared.clone(), self.segments.clone(), self.wake.clone());
        // Where the queue is full, the owner is awake.
        let done = move || drop(wake.try_send(Message::Sealed));
        let sealing = Sealing::begin((seal, snapshot), shared, segments, self.is_unsure, done);
        self.sealing = Some(sealing?);
        Ok(())
    }

    /// Goes on over what was sealed, with what came meanwhile.
    fn take_in(&mut self, Sealed { seal, result, is_unsure }: Sealed) {
        let is_sealed = result.is_ok();
        let rebuilt = is_sealed.then(|| self.shared.read().rebuild(&seal));
        // What is dropped is dropped without the lock.
        let old = self.shared.write().end_seal(&seal, rebuilt);
        drop(old);
        match result {
            Ok(()) => {
                self.is_unsure = false;
                self.unsealed = self.shared.read().unsealed_bytes();
                self.seal_at = self.seal_after;
                tracing::debug!(revision = seal.revision(), "sealed");
                self.asked.0.drain(..).for_each(|answer| drop(answer.send(Ok(()))));
            }
            Err(why) => {
                self.is_unsure |= is_unsure;
                self.not_sealed(&why.to_string());
            }
        }
    }

    /// It is tried again when as much more has come.
    fn not_sealed(&mut self, why: &str) {
        tracing::error!("{why}: nothing is sealed; changes are made, and kept in the journal");
        self.seal_at = self.unsealed.saturating_add(self.seal_after);
        self.asked.0.drain(..).for_each(|answer| drop(answer.send(Err(why.to_owned()))));
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
            if answer.is_closed() {
                // Whoever asked has gone away, or was answered that it is unknown.
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
            self.shared.write().apply_group(group);
            self.unsealed += size as u64;
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
        full::write(&mut self.journal, &self.watch, records, &self.ends).map_err(|error| {
            tracing::error!("{error}: changes are refused until the service is started again");
            self.has_failed = Some(WriteError::Disk(error.to_string()));
            WriteError::Unknown(error.to_string())
        })
    }
}
