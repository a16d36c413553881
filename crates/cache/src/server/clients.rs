//! The table of connections, for `stats conns`. Written once for each connection, and by its own
//! thread for each batch of commands. Control plane.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wire::Address;

use crate::model::Seconds;

/// The state of one connection.
#[derive(Debug)]
pub(super) struct ClientState {
    pub(super) address: Address,
    pub(super) last_s: AtomicU32,
    /// Whether it is a watcher's.
    pub(super) watches: AtomicBool,
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
            watches: AtomicBool::new(false),
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

    /// Marks it as a watcher's.
    pub(super) fn watches(&self) {
        self.facts.watches.store(true, Relaxed);
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
