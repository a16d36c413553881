//! The log of servers that share their changes: groups in PostgreSQL, and the snapshot that stands
//! for the older ones. Control plane.
//!
//! Every server applies all groups in their order to a state of its own. When another one has
//! sealed, a thread loads the new snapshot, as a start does, beside the state that is served; then
//! it takes its place.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use postgres::Client;

use super::cache::Kept;
use super::group::encode;
use super::metadata::{self, Applied, Metadata, MetadataError, Moved};
use crate::model::{Revision, State};
use crate::server::log::{BaseError, Followed, Log, NewBase, NotWritten};
use crate::server::segments::Segments;
use crate::server::shared::Shared;

/// How often the head is asked for.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// How long a group is tried again when PostgreSQL doesn't answer, and how often.
const PATIENCE: Duration = Duration::from_secs(30);
const RETRY: Duration = Duration::from_millis(100);

/// How long is waited until a snapshot is loaded again that could not be.
const LOAD_AGAIN: Duration = Duration::from_secs(5);

/// How often a snapshot is loaded that others replace meanwhile.
const TRIES: usize = 10;

/// Segments of an epoch are numbered from its number times this on.
const EPOCH_SEGMENTS: u64 = 1 << 24;

/// When the head was known last.
#[derive(Debug)]
pub(in crate::server) struct Contact {
    begun: Instant,
    at_ms: AtomicU64,
}

impl Contact {
    fn now() -> Self {
        Self { begun: Instant::now(), at_ms: AtomicU64::new(0) }
    }

    fn note(&self, at: Instant) {
        self.at_ms.fetch_max(at.duration_since(self.begun).as_millis() as u64, Relaxed);
    }

    /// How old is what the server knows of the head, at most.
    pub(super) fn age(&self) -> Duration {
        self.begun.elapsed().saturating_sub(Duration::from_millis(self.at_ms.load(Relaxed)))
    }
}

/// A state over a snapshot.
pub(super) struct Loaded {
    pub(super) state: State,
    base: Revision,
    /// Bytes of the groups after it.
    bytes: u64,
}

/// Loads the snapshot and all groups after it.
///
/// # Errors
/// When it can't be read. A segment that is damaged is no error: what it holds is refused.
pub(super) fn load(metadata: &Metadata, segments: &Segments) -> anyhow::Result<Loaded> {
    for _ in 0..TRIES {
        let mut client = metadata.connect()?;
        let (base, loader) = metadata::snapshot(&mut client)?;
        let mut state = match loader {
            None => State::default(),
            Some(loader) => {
                segments.bring(&loader).context("segments can't be fetched")?;
                segments.load(loader).map_err(MetadataError::from)?
            }
        };
        // Segments are removed once another snapshot counts.
        if !state.damages(false).is_empty() && metadata::head(&mut client)?.base != base {
            continue;
        }
        if let Applied::All(bytes) = metadata::catch_up(&mut client, &mut state)? {
            return Ok(Loaded { state, base, bytes });
        }
        if metadata::head(&mut client)?.base == base {
            anyhow::bail!("groups after revision {} are missing", state.revision());
        }
    }
    anyhow::bail!("the snapshot was replaced {TRIES} times while it was loaded")
}

/// The log.
pub(super) struct Groups {
    metadata: Metadata,
    client: Option<Client>,
    /// What no other server calls itself, and how many groups it has written.
    writer: (String, u64),
    /// The revision through which the snapshot stands that the state is over.
    base: Revision,
    /// Bytes of the groups after it, and how many of them a seal under way is of.
    bytes: u64,
    bytes_before: u64,
    segments: Segments,
    kept: Arc<Kept>,
    contact: Arc<Contact>,
    asked: Instant,
    loading: Option<JoinHandle<anyhow::Result<Loaded>>>,
    /// Why the snapshot that counts could not be loaded, and when that was.
    not_loaded: Option<(String, Instant)>,
    has_contact: bool,
    /// The end that PostgreSQL was set back to, and what was known: what follows is of another
    /// history.
    set_back: Option<(Revision, Revision)>,
}

impl Groups {
    /// The log that follows a state.
    pub(super) fn new(
        metadata: Metadata,
        writer: String,
        (segments, kept): (Segments, Arc<Kept>),
        loaded: &Loaded,
    ) -> Self {
        Self {
            metadata,
            client: None,
            writer: (writer, 0),
            base: loaded.base,
            bytes: loaded.bytes,
            bytes_before: 0,
            segments,
            kept,
            contact: Arc::new(Contact::now()),
            asked: Instant::now(),
            loading: None,
            not_loaded: None,
            has_contact: true,
            set_back: None,
        }
    }

    pub(super) fn contact(&self) -> Arc<Contact> {
        Arc::clone(&self.contact)
    }

    /// Does something with the connection, which is made anew after an error.
    fn with<T>(
        &mut self,
        work: impl FnOnce(&mut Client) -> Result<T, MetadataError>,
    ) -> Result<T, MetadataError> {
        let client = match &mut self.client {
            Some(client) => client,
            none => none.insert(self.metadata.connect()?),
        };
        let done = work(client);
        if done.is_err() {
            self.client = None;
        }
        done
    }

    /// The same for what may be done twice: a connection that has ended meanwhile is made anew.
    fn ask<T>(
        &mut self,
        mut work: impl FnMut(&mut Client) -> Result<T, MetadataError>,
    ) -> Result<T, MetadataError> {
        let was_open = self.client.is_some();
        match self.with(&mut work) {
            Err(_) if was_open => self.with(work),
            done => done,
        }
    }

    /// Says once that PostgreSQL is not to be had, and once that it is again.
    fn note(&mut self, failed: Option<&dyn std::fmt::Display>) {
        let has_contact = failed.is_none();
        if std::mem::replace(&mut self.has_contact, has_contact) != has_contact {
            match failed {
                Some(why) => tracing::error!("{why}: changes wait, and what is new isn't seen"),
                None => tracing::info!("PostgreSQL answers again"),
            }
        }
    }

    /// Applies the groups that are new, and says whether there was what follows.
    fn catch_up(&mut self, shared: &Shared) -> anyhow::Result<(Applied, Revision)> {
        let at = Instant::now();
        let known = shared.read().revision();
        let head = self.ask(metadata::head)?;
        if head.last < known {
            self.set_back.get_or_insert((head.last, known));
        }
        if let Some((last, known)) = self.set_back {
            anyhow::bail!(
                "PostgreSQL ended with revision {last} when this server knew {known}: it was set \
                 back; start all servers again"
            );
        }
        let applied = self.with(|client| {
            metadata::apply(client, known, head.last, &mut |entries| {
                let mut state = shared.write();
                entries.into_iter().try_for_each(|entry| state.replay(entry))
            })
        })?;
        if let Applied::All(bytes) = applied {
            self.contact.note(at);
            self.bytes += bytes;
        }
        Ok((applied, head.base))
    }

    /// Loads the snapshot that counts, on a thread.
    fn begin_load(&mut self) -> anyhow::Result<()> {
        let (metadata, segments) = (self.metadata.clone(), self.segments.clone());
        let thread = std::thread::Builder::new().name("load".to_owned());
        self.loading = Some(thread.spawn(move || load(&metadata, &segments))?);
        Ok(())
    }

    /// Puts a state that was loaded in the place of the one that is served.
    fn take_in(&mut self, shared: &Shared) -> anyhow::Result<bool> {
        let Some(loading) = self.loading.take_if(|loading| loading.is_finished()) else {
            return Ok(false);
        };
        let loaded = loading.join().map_err(|_| anyhow::anyhow!("loading has panicked"))?;
        let loaded = loaded.context("the new snapshot is not loaded")?;
        let Loaded { mut state, base, bytes } = loaded;
        let applied = self.with(|client| metadata::catch_up(client, &mut state))?;
        let known = shared.read().revision();
        let Applied::All(since) = applied else { return Ok(false) };
        if state.revision() < known {
            return Ok(false);
        }
        let named = state.segments().clone();
        let old = std::mem::replace(&mut *shared.write(), state);
        self.not_loaded = None;
        // It is dropped without the lock.
        drop(old);
        self.base = base;
        self.bytes = bytes + since;
        // What is in the way is removed the next time.
        let _ = self.segments.sweep(&named);
        tracing::debug!(base, "goes on over another server's segments");
        Ok(true)
    }

    fn try_follow(&mut self, shared: &Shared, is_sealing: bool) -> anyhow::Result<Followed> {
        let is_replaced = !is_sealing
            && self.take_in(shared).unwrap_or_else(|why| {
                // What it is over goes on; changes are followed all the same.
                tracing::error!("{why:#}: it is tried again");
                self.not_loaded = Some((format!("{why:#}"), Instant::now()));
                false
            });
        let (applied, base) = self.catch_up(shared)?;
        let is_behind = applied == Applied::Gone;
        let failed_now = |(_, at): &(String, Instant)| at.elapsed() < LOAD_AGAIN;
        let may_load = !is_sealing && !self.not_loaded.as_ref().is_some_and(failed_now);
        if (is_behind || base != self.base) && self.loading.is_none() && may_load {
            self.begin_load()?;
        }
        Ok(Followed { is_replaced, is_behind })
    }
}

impl Log for Groups {
    fn write(
        &mut self,
        after: Revision,
        records: &[Vec<u8>],
        is_ending: &AtomicBool,
    ) -> Result<(), NotWritten> {
        let last = after + records.len() as Revision;
        let body = encode(records);
        self.writer.1 += 1;
        let writer = format!("{}/{}", self.writer.0, self.writer.1);
        let (start, mut is_again) = (Instant::now(), false);
        loop {
            let at = Instant::now();
            let group = (writer.as_str(), body.as_slice());
            let moved = self.with(|client| metadata::write(client, (after, last), group, is_again));
            self.note(moved.as_ref().err().map(|why| why as _));
            match moved {
                Ok(Moved::Yes) => {
                    self.contact.note(at);
                    self.bytes += body.len() as u64;
                    return Ok(());
                }
                Ok(Moved::No) => return Err(NotWritten::Behind),
                Ok(Moved::Unknown) => {
                    let why = "the connection to PostgreSQL ended while it was made";
                    return Err(NotWritten::Unknown(why.to_owned()));
                }
                // In a try after the first it would have been refused for its place, had it been
                // made before; but then the first may still be under way.
                Err(why @ MetadataError::Full(_)) if !is_again => {
                    return Err(NotWritten::Refused(why.to_string()));
                }
                Err(why) if start.elapsed() > PATIENCE || is_ending.load(Relaxed) => {
                    return Err(NotWritten::Unknown(why.to_string()));
                }
                Err(_) => std::thread::sleep(RETRY),
            }
            is_again = true;
        }
    }

    fn unsealed_bytes(&self) -> u64 {
        self.bytes
    }

    fn begin_base(&mut self, revision: Revision) -> anyhow::Result<Box<dyn NewBase>> {
        self.bytes_before = self.bytes;
        Ok(Box::new(Snapshot {
            metadata: self.metadata.clone(),
            kept: Arc::clone(&self.kept),
            before: self.base,
            revision,
            epoch: None,
            records: 0,
        }))
    }

    /// Servers that follow know a snapshot by its revision.
    fn has_base(&self, revision: Revision) -> bool {
        self.base == revision
    }

    fn may_seal(&self) -> bool {
        self.loading.is_none() && self.not_loaded.is_none()
    }

    fn stuck(&self) -> Option<&str> {
        self.not_loaded.as_ref().map(|(why, _)| why.as_str())
    }

    fn sealed(&mut self, revision: Revision) {
        self.base = revision;
        self.bytes -= self.bytes_before;
    }

    fn pause(&self) -> Option<Duration> {
        Some(PAUSE)
    }

    fn follow(
        &mut self,
        shared: &Shared,
        is_asked: bool,
        is_sealing: bool,
    ) -> anyhow::Result<Followed> {
        if !is_asked && self.asked.elapsed() < PAUSE {
            return Ok(Followed::default());
        }
        self.asked = Instant::now();
        let followed = self.try_follow(shared, is_sealing);
        self.note(followed.as_ref().err().map(|why| why as _));
        followed
    }
}

/// A snapshot that is made.
struct Snapshot {
    metadata: Metadata,
    kept: Arc<Kept>,
    before: Revision,
    revision: Revision,
    /// The connection that holds the lock of whoever seals, and its epoch.
    epoch: Option<(Client, i64)>,
    records: i32,
}

fn failed(why: impl std::fmt::Display) -> BaseError {
    BaseError::Other(why.to_string())
}

impl Snapshot {
    fn epoch(&mut self) -> Result<&mut (Client, i64), BaseError> {
        self.epoch.as_mut().ok_or_else(|| failed("it isn't begun"))
    }

    /// Removes the segments that no snapshot names any more: those of this epoch and earlier ones
    /// that are not among `used`.
    fn sweep(&self, epoch: i64, used: &BTreeSet<u64>) -> std::io::Result<()> {
        let end = first_segment(epoch + 1);
        let unused = |id: &u64| *id < end && !used.contains(id);
        self.kept.remove(self.kept.list()?.into_iter().filter(unused))
    }
}

fn first_segment(epoch: i64) -> u64 {
    epoch.cast_unsigned().saturating_mul(EPOCH_SEGMENTS)
}

impl NewBase for Snapshot {
    fn begin(&mut self) -> Result<u64, BaseError> {
        let mut client = self.metadata.connect().map_err(failed)?;
        let epoch = metadata::begin_epoch(&mut client, self.before).map_err(failed)?;
        let epoch = epoch.ok_or(BaseError::Elsewhere)?;
        self.epoch = Some((client, epoch));
        Ok(first_segment(epoch))
    }

    /// A session that asks nothing for long is ended, and with it the lock of the seal.
    fn goes_on(&mut self) -> Result<(), BaseError> {
        let (client, _) = self.epoch()?;
        client.batch_execute("SELECT 1").map_err(failed)
    }

    fn append(&mut self, record: &[u8]) -> Result<(), BaseError> {
        let (revision, place) = (self.revision, self.records);
        let (client, _) = self.epoch()?;
        metadata::add(client, revision, place, record).map_err(failed)?;
        self.records += 1;
        Ok(())
    }

    fn finish(mut self: Box<Self>, used: &BTreeSet<u64>) -> Result<(), BaseError> {
        let revisions = (self.before, self.revision);
        let (client, epoch) = self.epoch()?;
        let epoch = *epoch;
        let is_published = match metadata::publish(client, revisions, epoch) {
            Ok(is_published) => is_published,
            Err(why) => {
                let mut again = self.metadata.connect().map_err(|_| failed(&why))?;
                self.epoch = None;
                let known = metadata::was_published(&mut again, revisions.1, epoch);
                if !known.unwrap_or(false) {
                    return Err(failed(why));
                }
                true
            }
        };
        if !is_published {
            return Err(BaseError::Elsewhere);
        }
        // What is not removed now is with the next snapshot.
        if let Err(why) = self.sweep(epoch, used) {
            tracing::warn!("segments that are not needed any more stay for now: {why}");
        }
        Ok(())
    }
}
