//! What all connections of one server share: the records, limits, counters and connections.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use super::channel::SERVICE_CHANNEL;
use super::in_flight::InFlight;
use super::inbox::Inbox;
use super::putlog::PutLog;
use super::shared_arrays::SharedArrays;
use crate::model::{Access, Declarations, Gate, GroupError, Record, Time};
use crate::protocol::messages::Guid;
use crate::protocol::{MAX_MESSAGE_BYTES, MAX_NAME_BYTES, Pool, Unfinished};

/// What a service allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of one message, put together from segments too.
    pub message_bytes: usize,
    /// The most bytes of messages that aren't complete, of all connections together.
    pub unfinished_bytes: usize,
    /// The most bytes of large arrays that are being sent by all connections together, an array
    /// that several send counted once; two arrays may always be. A monitor's update waits for it.
    pub in_flight_bytes: usize,
    /// The most bytes of one segment of what is sent; without it, messages are sent in one piece.
    pub segment_bytes: Option<usize>,
    /// Records, in all.
    pub records: usize,
    /// Channels of one connection.
    pub channels: usize,
    /// Operations of one connection.
    pub operations: usize,
    /// Versions that one subscriber may have waiting.
    pub queue: usize,
    /// Bytes of versions that wait for one subscriber: a long queue of a large record is cut to
    /// as many versions, but to no fewer than two.
    pub queue_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: MAX_MESSAGE_BYTES,
            unfinished_bytes: 2 * MAX_MESSAGE_BYTES,
            in_flight_bytes: 24 << 20,
            segment_bytes: None,
            records: 1_000_000,
            channels: 100_000,
            operations: 200_000,
            queue: 10_000,
            queue_bytes: MAX_MESSAGE_BYTES,
        }
    }
}

/// A record can't be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddError {
    /// It is no name of a record.
    #[error(
        "{0:?} is no name for a record: one has 1 to {MAX_NAME_BYTES} bytes, no control \
         characters, and is not {SERVICE_CHANNEL:?}"
    )]
    Name(String),
    /// The name is taken.
    #[error("there is a record {0:?} already")]
    Taken(String),
    /// No more are allowed.
    #[error("there are {0} records, and no more are allowed")]
    Full(usize),
    /// A group has a record that isn't there.
    #[error("the group {group:?} has a record {record:?}, which isn't there")]
    Missing {
        /// The group.
        group: String,
        /// The record.
        record: String,
    },
    /// A group's records make none.
    #[error("the group {0:?} can't be: {1}")]
    Group(String, GroupError),
}

/// The records and what belongs to them.
#[derive(Debug)]
pub struct Service {
    pub(super) limits: Limits,
    pub(super) guid: Guid,
    /// Memory of large messages, warm.
    pub(super) pool: Pool,
    pub(super) unfinished: Unfinished,
    /// The large arrays that connections are sending.
    pub(super) in_flight: Arc<InFlight>,
    /// Arrays in memory that clients of this host may see.
    pub(super) shared_arrays: SharedArrays,
    records: RwLock<BTreeMap<Arc<str>, Arc<Record>>>,
    gate: Gate,
    /// Counts the times that records came or went.
    changes: AtomicU16,
    connections: Mutex<Vec<Weak<Inbox>>>,
    pub(super) counts: Counts,
    pub(super) access: Access,
    pub(super) put_log: Option<PutLog>,
    /// Where it listens, once it does.
    pub(super) listening: OnceLock<Vec<SocketAddr>>,
    /// What tells the time in place of the system's clock.
    clock: OnceLock<Clock>,
}

/// A clock that a test has set.
struct Clock(Box<dyn Fn() -> Time + Send + Sync>);

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

/// What is counted. Each is touched once for a message or less.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) gets: AtomicU64,
    pub(super) puts: AtomicU64,
    pub(super) calls: AtomicU64,
    pub(super) updates: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) searches: AtomicU64,
    /// Connections that were closed because they did not read.
    pub(super) stalled: AtomicU64,
}

/// How many large buffers that clients have filled a service keeps warm.
const WARM_BUFFERS: usize = 2;

impl Service {
    /// A service without records and without access rules.
    pub fn new(limits: Limits) -> Arc<Self> {
        Self::with(limits, Access::default(), None)
    }

    /// A service without records.
    pub fn with(limits: Limits, access: Access, put_log: Option<PutLog>) -> Arc<Self> {
        Arc::new(Self {
            limits,
            access,
            put_log,
            guid: rand::random(),
            pool: Pool::new(WARM_BUFFERS),
            unfinished: Unfinished::new(limits.unfinished_bytes),
            in_flight: InFlight::new(limits.in_flight_bytes),
            shared_arrays: SharedArrays::default(),
            records: RwLock::default(),
            gate: Gate::default(),
            changes: AtomicU16::new(0),
            connections: Mutex::default(),
            counts: Counts::default(),
            listening: OnceLock::new(),
            clock: OnceLock::new(),
        })
    }

    /// Adds a record.
    ///
    /// # Errors
    /// When its name is taken, or there are too many.
    pub fn add(&self, record: Arc<Record>) -> Result<(), AddError> {
        let name = record.name();
        let is_long = !(1..=MAX_NAME_BYTES).contains(&name.len());
        // A line's end would make two names of one in lists and logs.
        if is_long || name.chars().any(char::is_control) || **name == *SERVICE_CHANNEL {
            return Err(AddError::Name(name.to_string()));
        }
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        if records.contains_key(record.name()) {
            return Err(AddError::Taken(record.name().to_string()));
        }
        if records.len() >= self.limits.records {
            return Err(AddError::Full(records.len()));
        }
        records.insert(Arc::clone(record.name()), record);
        self.changes.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Adds the records and groups that are declared; all of them or, when one can't be, none. Says
    /// how many there are.
    ///
    /// # Errors
    /// When one can't be added.
    pub fn declare(&self, declared: Declarations) -> Result<usize, AddError> {
        let mut made = Vec::new();
        let result = self.declare_into(declared, &mut made);
        if result.is_err() {
            made.iter().for_each(|name| {
                self.destroy(name);
            });
        }
        result.map(|()| made.len())
    }

    fn declare_into(
        &self,
        declared: Declarations,
        made: &mut Vec<Arc<str>>,
    ) -> Result<(), AddError> {
        let mut add = |record: Arc<Record>| {
            let name = Arc::clone(record.name());
            self.add(record)?;
            made.push(name);
            Ok(())
        };
        for one in declared.records {
            let most = self.limits.message_bytes;
            add(Record::new(&one.name, one.item, one.is_writable, most, Self::now()))?;
        }
        for one in declared.groups {
            let group = one.name;
            let mut records = Vec::new();
            for (field, record) in &one.records {
                let found = self.find(record);
                let missing = || AddError::Missing { group: group.clone(), record: record.clone() };
                records.push((field.as_str(), found.ok_or_else(missing)?));
            }
            let made = Record::group(&group, records, one.is_writable, &self.gate, Self::now());
            add(made.map_err(|error| AddError::Group(group, error))?)?;
        }
        Ok(())
    }

    /// Ends a record, and the groups that it belongs to: their channels are closed, with
    /// a message to the clients. Returns whether there was one.
    pub fn destroy(&self, name: &str) -> bool {
        let groups = self.find(name).map(|record| record.groups()).unwrap_or_default();
        for group in groups {
            self.end(&group);
        }
        self.end(name)
    }

    fn end(&self, name: &str) -> bool {
        let removed = {
            let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
            records.remove(name)
        };
        let Some(record) = removed else { return false };
        self.changes.fetch_add(1, Relaxed);
        record.destroy();
        let connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.iter().filter_map(Weak::upgrade).for_each(|inbox| inbox.look_for_gone());
        true
    }

    /// The record with this name.
    pub fn find(&self, name: &str) -> Option<Arc<Record>> {
        let records = self.records.read().unwrap_or_else(PoisonError::into_inner);
        records.get(name).cloned()
    }

    /// All names, in order.
    pub fn names(&self) -> Vec<Arc<str>> {
        let records = self.records.read().unwrap_or_else(PoisonError::into_inner);
        records.keys().cloned().collect()
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        let mut all = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| one.strong_count() > 0);
        all.len()
    }

    /// What has been counted since the start, by name.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let Counts { gets, puts, calls, updates, lost, searches, stalled } = &self.counts;
        let all = [
            ("gets", gets),
            ("puts", puts),
            ("calls", calls),
            ("updates", updates),
            ("updates_lost", lost),
            ("searches", searches),
            ("stalled_closed", stalled),
        ];
        all.into_iter().map(|(name, count)| (name, count.load(Relaxed))).collect()
    }

    /// How many bytes of large arrays are being sent, an array that several clients get counted
    /// once.
    pub fn in_flight_bytes(&self) -> usize {
        self.in_flight.bytes()
    }

    pub(super) fn changes(&self) -> u16 {
        self.changes.load(Relaxed)
    }

    pub(super) fn connected(&self, inbox: &Arc<Inbox>) {
        let mut all = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that have gone are dropped once they are as many as those that are there.
        if all.len() == all.capacity() {
            all.retain(|one| one.strong_count() > 0);
        }
        all.push(Arc::downgrade(inbox));
    }

    /// Has the time stamps of what clients change come from `clock`, for tests that repeat exactly.
    /// The first call counts.
    pub fn set_clock(&self, clock: impl Fn() -> Time + Send + Sync + 'static) {
        let _ = self.clock.set(Clock(Box::new(clock)));
    }

    /// This moment, as clients' changes take it: the system's, unless a clock was set.
    #[inline]
    pub(super) fn time(&self) -> Time {
        self.clock.get().map_or_else(Self::now, |clock| (clock.0)())
    }

    /// This moment, as records take it.
    pub fn now() -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time {
            seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
            nanoseconds: since.subsec_nanos() as i32,
        }
    }
}

/// Counts one up, or several.
#[inline]
pub(super) fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Relaxed);
}
