//! The owner of the state: one thread checks changes, has them written, and applies them.
//! Control plane.
//!
//! Readers share the state with a lock that is held for writing only while a group is applied, or
//! what was sealed is exchanged. That is work in memory, and in the mapped segments with the pieces
//! that a change covers: the system may have to read those from the disk, and an object over many
//! pieces takes the longer, the more there are. Changes become durable before that, without the
//! lock: what a reader sees is durable, unless the [`SyncPolicy`] is another.
//!
//! When enough has come it is sealed ([`super::sealing`]): the journal's snapshot then names the
//! segments, and a start reads what came since. When too much has come before that is done, changes
//! wait for it.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use journal::{Directory, Disk, Journal, MAX_RECORD_BYTES, Options, SyncPolicy};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::log::{BaseError, Log, NotWritten, OwnJournal};
use super::sealing::{SealError, Sealed, Sealing, free};
use super::segments::Segments;
use super::shared::Shared;
use super::write_error::{WAITING, WriteError};
use crate::model::{Added, BLOCK_BYTES, Change, Entry, Group, Loader, Revision, State};

/// The most changes of a group, and their bytes unless it has one change: less than the journal
/// lets wait.
const GROUP: usize = 256;
const GROUP_BYTES: usize = 32 << 20;

/// Changes wait for a seal once this many bytes aren't sealed, or 4 times what is sealed at once.
const UNSEALED: u64 = 256 << 20;

/// How long a change is waited for, after which its client has to see for itself.
const PATIENCE: Duration = Duration::from_secs(30);

type Answer = oneshot::Sender<Result<Revision, WriteError>>;

type SealAnswer = oneshot::Sender<Result<(), String>>;

type FollowAnswer = oneshot::Sender<Result<(), String>>;

struct Request {
    change: Change,
    bytes: Vec<u8>,
    answer: Answer,
    room: Room,
}

/// The share of memory that a request has, for as long as any of it is here: a client that has gone
/// away may leave a change that waits.
type Room = Option<OwnedSemaphorePermit>;

/// What the owner is sent.
enum Message {
    Change(Request),
    /// To seal what came so far, and to put small segments together where that is asked for.
    Seal {
        answer: SealAnswer,
        joins: bool,
    },
    /// A seal is done.
    Sealed,
    /// To apply what other servers have changed so far.
    #[cfg_attr(not(feature = "tier"), allow(dead_code, reason = "only servers that share groups"))]
    Follow(FollowAnswer),
    End,
}

/// A running owner. Dropping it makes what waits durable, and ends its thread.
pub(super) struct Store {
    shared: Shared,
    queue: SyncSender<Message>,
    thread: Option<JoinHandle<()>>,
    is_ending: Arc<AtomicBool>,
}

/// How many bytes may be there that aren't sealed, when they are sealed from `seal_after` on.
pub(super) fn most_unsealed(seal_after: u64) -> u64 {
    seal_after.saturating_mul(4).max(UNSEALED)
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
    /// Bytes of the records behind the snapshot.
    logged: u64,
}

impl<'a> Reading<'a> {
    pub(super) fn new(segments: &'a Segments) -> Self {
        Self { segments, loader: None, state: None, logged: 0 }
    }

    /// Takes the next record.
    pub(super) fn apply(&mut self, entry: journal::Entry<'_>) -> Result<(), journal::ApplyError> {
        match entry {
            journal::Entry::Snapshot(bytes) => {
                Ok(self.loader.get_or_insert_default().apply(bytes)?)
            }
            journal::Entry::Record(_, bytes) => {
                self.logged += bytes.len() as u64;
                Ok(self.state()?.replay(Entry::decode(bytes)?)?)
            }
        }
    }

    fn state(&mut self) -> Result<&mut State, journal::ApplyError> {
        let state = match (self.state.take(), self.loader.take()) {
            (Some(state), _) => state,
            (None, Some(loader)) => self.segments.load(loader)?,
            (None, None) => State::default(),
        };
        Ok(self.state.insert(state))
    }

    /// The state, after all records.
    pub(super) fn finish(mut self) -> Result<State, journal::ApplyError> {
        self.state()?;
        Ok(self.state.unwrap_or_default())
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
    pub(super) fn open(data: &Path, seal_after: u64, sync: SyncPolicy) -> anyhow::Result<Self> {
        let [journal, segments] = folders(data);
        for folder in [&journal, &segments] {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("{} can't be made", folder.display()))?;
        }
        // What is acknowledged in them is lost if they themselves are.
        let synced = File::open(data).and_then(|folder| folder.sync_all());
        synced.with_context(|| format!("{} can't be made durable", data.display()))?;
        let disk = Arc::new(Directory::new(journal));
        Self::open_on(disk, Segments::of(segments), (seal_after, most_unsealed(seal_after)), sync)
    }

    /// Opens a journal with its segments; what may be there unsealed is as in [`Store::begin`].
    pub(super) fn open_on(
        disk: Arc<dyn Disk>,
        segments: Segments,
        sealed: (u64, u64),
        sync: SyncPolicy,
    ) -> anyhow::Result<Self> {
        let mut reading = Reading::new(&segments);
        let options = Options { sync, ..Options::default() };
        let (journal, report) = Journal::open(disk, options, |entry| reading.apply(entry), |_| {})?;
        let logged = reading.logged;
        let state = reading.finish().map_err(|why| anyhow::anyhow!("the snapshot: {why}"))?;
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
        segments.sweep(state.segments())?;
        tracing::info!(revision = state.revision(), "the journal is read");
        let log = Box::new(OwnJournal::new(journal, logged));
        Self::begin(Shared::new(state), log, segments, sealed)
    }

    /// Goes on from a state that has all that is in the log. What is not sealed is once there are
    /// `seal_after` bytes of it; `most` may be there.
    pub(super) fn begin(
        shared: Shared,
        log: Box<dyn Log>,
        segments: Segments,
        (seal_after, most): (u64, u64),
    ) -> anyhow::Result<Self> {
        let (queue, requests) = mpsc::sync_channel(WAITING);
        let is_ending = Arc::new(AtomicBool::new(false));
        let owner = Owner {
            shared: shared.clone(),
            log,
            is_behind: false,
            following: Vec::new(),
            has_failed: None,
            segments,
            seal_after,
            seal_at: seal_after,
            most,
            sealing: None,
            not_sealed: None,
            asked: (Vec::new(), Vec::new()),
            joins: false,
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
        let ended = || ended().to_string();
        let (answer, answered) = oneshot::channel();
        let seal = Message::Seal { answer, joins: false };
        self.queue.send(seal).map_err(|_| ended())?;
        answered.blocking_recv().unwrap_or_else(|_| Err(ended()))
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
    /// Makes a change, and returns its revision once it is on disk. It keeps its room until it is
    /// made or refused, also where this is dropped before.
    pub(crate) async fn make(
        &self,
        change: Change,
        bytes: Vec<u8>,
        room: Room,
    ) -> Result<Revision, WriteError> {
        // Head and frame of a record have room in what is left.
        if bytes.len() + 64 > MAX_RECORD_BYTES {
            return Err(WriteError::TooLarge(bytes.len()));
        }
        let (answer, answered) = oneshot::channel();
        let sent = self.0.try_send(Message::Change(Request { change, bytes, answer, room }));
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

impl Writer {
    /// Seals what came so far, and puts small segments together, however long that takes.
    ///
    /// # Errors
    /// When it can't be done; the error says why.
    pub(super) async fn compact(&self) -> Result<(), String> {
        let (answer, answered) = oneshot::channel();
        let sent = self.0.try_send(Message::Seal { answer, joins: true });
        sent.map_err(|_| "too many requests wait".to_owned())?;
        answered.await.unwrap_or_else(|_| Err("the service ends".to_owned()))
    }
}

#[cfg(feature = "tier")]
impl Writer {
    /// Has applied what other servers had changed when this was called.
    ///
    /// # Errors
    /// When that isn't known.
    pub(super) async fn follow(&self) -> Result<(), String> {
        let (answer, answered) = oneshot::channel();
        self.0
            .try_send(Message::Follow(answer))
            .map_err(|_| "too many requests wait".to_owned())?;
        answered.await.unwrap_or_else(|_| Err("the service ends".to_owned()))
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
    log: Box<dyn Log>,
    /// Whether no change can be made until others' have been applied.
    is_behind: bool,
    /// Who waits for the changes of others.
    following: Vec<FollowAnswer>,
    /// Why nothing more is written, once that is so.
    has_failed: Option<WriteError>,
    segments: Segments,
    seal_after: u64,
    /// When there are this many unsealed bytes, they are sealed.
    seal_at: u64,
    /// When there are this many, changes wait until they are.
    most: u64,
    sealing: Option<Sealing>,
    /// Why the last seal failed, if it has.
    not_sealed: Option<String>,
    /// Who waits for the seal under way, and for the next one.
    asked: (Vec<SealAnswer>, Vec<SealAnswer>),
    /// Whether the next seal puts small segments together.
    joins: bool,
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
        self.see_to_seals();
        while !(is_ending && (waiting.is_empty() || self.is_behind)) {
            let is_idle = waiting.is_empty() || self.waits() && !is_ending;
            let mut next = self.next(requests, is_idle);
            while let Some(message) = next.take() {
                match message {
                    Message::Change(request) if waiting.len() < WAITING => {
                        waiting.push_back(request);
                    }
                    Message::Change(request) => {
                        let _ = request.answer.send(Err(WriteError::Busy));
                    }
                    Message::Seal { answer, joins } => {
                        self.asked.1.push(answer);
                        self.joins |= joins;
                    }
                    Message::Sealed => {}
                    Message::Follow(answer) => self.following.push(answer),
                    Message::End => is_ending = true,
                }
                if waiting.len() < GROUP {
                    next = requests.try_recv().ok();
                }
            }
            self.follow();
            if self.stuck().is_some() || !self.is_behind && (is_ending || !self.waits()) {
                waiting = self.turn(waiting);
            }
            self.see_to_seals();
        }
        // Before the journal, of which it makes a snapshot.
        self.sealing = None;
    }

    /// The next message; waits for one where nothing else is to be done.
    fn next(&self, requests: &Receiver<Message>, is_idle: bool) -> Option<Message> {
        match self.log.pause() {
            Some(pause) if is_idle || self.is_behind => requests.recv_timeout(pause).ok(),
            // The owner has a sender itself: a message comes, of a seal at the latest.
            None if is_idle => requests.recv().ok(),
            _ => requests.try_recv().ok(),
        }
    }

    /// Applies what other servers have changed.
    fn follow(&mut self) {
        let is_asked = self.is_behind || !self.following.is_empty();
        let is_sealing = self.sealing.is_some();
        let followed = match self.log.follow(&self.shared, is_asked, is_sealing) {
            Ok(followed) => followed,
            Err(why) => {
                let why = format!("{why:#}");
                self.following.drain(..).for_each(|asked| drop(asked.send(Err(why.clone()))));
                return;
            }
        };
        self.is_behind = followed.is_behind;
        if followed.is_replaced {
            (self.seal_at, self.not_sealed) = (self.seal_after, None);
        }
        if !self.is_behind {
            self.following.drain(..).for_each(|asked| drop(asked.send(Ok(()))));
        } else if let Some(why) = self.log.stuck() {
            self.following.drain(..).for_each(|asked| drop(asked.send(Err(why.to_owned()))));
        } else if self.sealing.take().is_some() {
            self.seal_failed("another server has sealed");
        }
    }

    /// How many bytes aren't sealed: of the log, or in memory, whichever is more.
    fn unsealed(&self) -> u64 {
        self.log.unsealed_bytes().max(self.shared.read().unsealed_bytes())
    }

    /// Whether changes have to wait for the seal under way, or for another server's. Where the last
    /// one has failed they are refused meanwhile.
    fn waits(&self) -> bool {
        let is_sealed_soon = self.sealing.is_some() && self.not_sealed.is_none();
        (is_sealed_soon || !self.log.may_seal()) && self.unsealed() >= self.most
    }

    /// Why no change is made until what servers share is seen to, where that is so.
    fn stuck(&self) -> Option<WriteError> {
        let why = self.log.stuck()?;
        let is_stuck = self.is_behind || self.unsealed() >= self.most;
        is_stuck.then(|| WriteError::Shared(why.to_owned()))
    }

    /// Takes in a seal that is done, and begins one that is due.
    fn see_to_seals(&mut self) {
        if let Some(sealed) = self.sealing.as_ref().and_then(Sealing::result) {
            self.sealing = None;
            self.take_in(sealed);
        }
        let unsealed = self.unsealed();
        let is_due = unsealed > 0 && unsealed >= self.seal_at || !self.asked.1.is_empty();
        if let Some(why) = self.log.stuck() {
            self.asked.1.drain(..).for_each(|answer| drop(answer.send(Err(why.to_owned()))));
        }
        if is_due && self.sealing.is_none() && self.log.may_seal() {
            self.asked.0.append(&mut self.asked.1);
            if self.log.has_base(self.shared.read().revision()) {
                self.joins = false;
                self.asked.0.drain(..).for_each(|answer| drop(answer.send(Ok(()))));
            } else if let Err(why) = self.begin_seal() {
                tracing::error!("{why}: nothing is sealed; changes are made, and kept");
                self.seal_failed(&why.to_string());
            }
        }
    }

    fn begin_seal(&mut self) -> anyhow::Result<()> {
        let joins = std::mem::take(&mut self.joins);
        let state = self.shared.read();
        let seal = if joins { state.compact(BLOCK_BYTES) } else { state.seal(BLOCK_BYTES) }?;
        drop(state);
        let base = self.log.begin_base(seal.revision())?;
        let (shared, segments, wake) =
            (self.shared.clone(), self.segments.clone(), self.wake.clone());
        // Where the queue is full, the owner is awake.
        let done = move || drop(wake.try_send(Message::Sealed));
        let sealing = Sealing::begin((seal, base), shared, segments, self.is_unsure, done);
        self.sealing = Some(sealing?);
        Ok(())
    }

    /// Goes on over what was sealed, with what came meanwhile.
    fn take_in(&mut self, Sealed { seal, result, is_unsure }: Sealed) {
        let is_sealed = result.is_ok();
        let rebuilt = is_sealed.then(|| self.shared.read().rebuild(&seal));
        // What is dropped is dropped without the lock.
        let old = self.shared.write().end_seal(&seal, rebuilt);
        free(old);
        match result {
            Ok(()) => {
                (self.is_unsure, self.not_sealed) = (false, None);
                self.log.sealed(seal.revision());
                self.seal_at = self.seal_after;
                tracing::debug!(revision = seal.revision(), "sealed");
                self.asked.0.drain(..).for_each(|answer| drop(answer.send(Ok(()))));
            }
            Err(why) => {
                self.is_unsure |= is_unsure;
                match why {
                    // Whose segments this one goes on over soon.
                    SealError::Base(BaseError::Elsewhere) => tracing::debug!("{why}"),
                    _ => tracing::error!("{why}: nothing is sealed; changes are made, and kept"),
                }
                self.seal_failed(&why.to_string());
            }
        }
    }

    /// It is tried again when as much more has come.
    fn seal_failed(&mut self, why: &str) {
        self.seal_at = self.unsealed().saturating_add(self.seal_after);
        self.not_sealed = Some(why.to_owned());
        self.asked.0.drain(..).for_each(|answer| drop(answer.send(Err(why.to_owned()))));
    }

    /// Why no change is made, where too much isn't sealed and the last seal has failed. Then it is
    /// tried again, because something is asked for.
    fn refuses(&mut self, is_asked: bool) -> Option<WriteError> {
        if !is_asked || self.unsealed() < self.most || self.waits() {
            return None;
        }
        self.seal_at = 0;
        Some(WriteError::Unsealed(self.not_sealed.clone().unwrap_or_default()))
    }

    /// Makes as many changes as form a group, and returns those that have to wait.
    fn turn(&mut self, waiting: VecDeque<Request>) -> VecDeque<Request> {
        let now_us = jiff::Timestamp::now().as_microsecond();
        let (mut group, mut later) = (Group::default(), VecDeque::new());
        let mut made: Vec<(Answer, Revision, Vec<u8>, Room)> = Vec::new();
        let mut records: Vec<Vec<u8>> = Vec::new();
        let mut size = 0;
        let refused = self.has_failed.clone().or_else(|| self.stuck());
        let refused = refused.or_else(|| self.refuses(!waiting.is_empty()));
        let state = self.shared.read();
        for Request { change, bytes, answer, room } in waiting {
            if size > 0 && size + bytes.len() > GROUP_BYTES {
                later.push_back(Request { change, bytes, answer, room });
                continue;
            }
            if let Some(why) = &refused {
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
                    made.push((answer, revision, bytes, room));
                }
                Ok(Added::Later(change)) => {
                    later.push_back(Request { change, bytes, answer, room });
                }
                // Whoever has gone away needs no answer, here and below.
                Err(refusal) => drop(answer.send(Err(refusal.into()))),
            }
        }
        let after = state.revision();
        drop(state);
        // The lock waits for readers, and others for it.
        if records.is_empty() {
            return later;
        }
        let written = match self.log.write(after, &records, &self.ends) {
            Ok(()) => {
                self.shared.write().apply_group(group);
                Ok(())
            }
            Err(NotWritten::Behind) => {
                self.is_behind = true;
                let again = group.into_changes().zip(made);
                let again = again.map(|(change, (answer, _, bytes, room))| Request {
                    change,
                    bytes,
                    answer,
                    room,
                });
                return again.chain(later).collect();
            }
            Err(NotWritten::Refused(why)) => Err(WriteError::Shared(why)),
            Err(NotWritten::Unknown(why)) => Err(WriteError::Unknown(why)),
            Err(NotWritten::Failed(why)) => {
                tracing::error!("{why}: changes are refused until the service is started again");
                self.has_failed = Some(WriteError::Disk(why.clone()));
                Err(WriteError::Unknown(why))
            }
        };
        for (answer, revision, _, _room) in made {
            let _ = answer.send(written.clone().map(|()| revision));
        }
        later
    }
}
