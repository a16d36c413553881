//! The table of connections, for `stats conns`. Written once for each connection, and by its own
//! thread for each batch of commands. Control plane.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wire::Address;

use crate::model::Seconds;

/// The state of one connection.
#[derive(Debug)]
pub(super) struct ClientState {
    pub(super) address: Address,
    pub(super) last_s: AtomicU32,
    activity: AtomicU8,
}

/// What a connection does or waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// The next command.
    Reads,
    /// A command is carried out.
    Parses,
    /// The rest of a data block.
    ReadsValue,
    /// The rest of what was refused.
    Swallows,
    /// Room for answers.
    Writes,
    /// It is a stream of log lines.
    Watches,
}

impl Activity {
    const ALL: [Self; 6] =
        [Self::Reads, Self::Parses, Self::ReadsValue, Self::Swallows, Self::Writes, Self::Watches];

    /// memcached's name of the state.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Reads => "conn_read",
            Self::Parses => "conn_parse_cmd",
            Self::ReadsValue => "conn_nread",
            Self::Swallows => "conn_swallow",
            Self::Writes => "conn_mwrite",
            Self::Watches => "conn_watch",
        }
    }
}

impl ClientState {
    /// Returns what it does or waits for.
    pub(super) fn activity(&self) -> Activity {
        let number = usize::from(self.activity.load(Relaxed));
        Activity::ALL.get(number).copied().unwrap_or(Activity::Reads)
    }
}

type Table = BTreeMap<u64, Arc<ClientState>>;

/// Lower numbers are those of listeners.
const FIRST_NUMBER: u64 = 100;

/// All connections, by numbers that count up.
#[derive(Debug, Default)]
pub(super) struct ClientTable {
    table: Arc<Mutex<Table>>,
}

/// One connection's entry, removed when it is dropped.
#[derive(Debug)]
pub(super) struct ClientEntry {
    number: u64,
    facts: Arc<ClientState>,
    table: Arc<Mutex<Table>>,
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    // A map is whole between any two calls: a panic elsewhere can't break it.
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ClientTable {
    /// Adds a connection.
    pub(super) fn add(&self, address: &Address, now_s: Seconds) -> ClientEntry {
        let facts = Arc::new(ClientState {
            address: address.clone(),
            last_s: AtomicU32::new(now_s),
            activity: AtomicU8::new(Activity::Reads as u8),
        });
        let mut table = lock(&self.table);
        let number = table.last_key_value().map_or(FIRST_NUMBER, |(number, _)| number + 1);
        table.insert(number, Arc::clone(&facts));
        ClientEntry { number, facts, table: Arc::clone(&self.table) }
    }

    /// All connections of this moment.
    pub(super) fn all(&self) -> Vec<(u64, Arc<ClientState>)> {
        lock(&self.table).iter().map(|(number, facts)| (*number, Arc::clone(facts))).collect()
    }
}

impl ClientEntry {
    /// Its number.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Where it is.
    pub(super) fn address(&self) -> &Address {
        &self.facts.address
    }

    /// Notes what it does or waits for.
    #[inline]
    pub(super) fn note_activity(&self, activity: Activity) {
        self.facts.activity.store(activity as u8, Relaxed);
    }

    /// Returns the second in which something last came from it.
    pub(super) fn last_s(&self) -> Seconds {
        self.facts.last_s.load(Relaxed)
    }

    /// Something has come from it.
    #[inline]
    pub(super) fn note(&self, now_s: Seconds) {
        self.facts.last_s.store(now_s, Relaxed);
    }
}

impl Drop for ClientEntry {
    fn drop(&mut self) {
        lock(&self.table).remove(&self.number);
    }
}
