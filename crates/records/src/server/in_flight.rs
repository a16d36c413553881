//! The large arrays that connections are sending, counted over all connections and bounded.
//!
//! An array is sent from where it lies, so a slow or stopped client keeps the version alive that it
//! is being sent. Clients that are sent the same version share it; each further version takes
//! memory. So a monitor's update is deferred while it would pass the limit. Then connections that
//! have sent nothing for [`STALL_NS`] are closed, and the others' updates go on with the newest
//! version, which they share. Gets are counted and never deferred. Data plane; the lock is taken
//! for large arrays only.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use wire::{Ns, Output};

use super::inbox::Inbox;
use crate::protocol::{Bits, Value};

/// A connection with this many unsent bytes is not read from, and gets no updates, until they are
/// sent. One array may pass the limit: so a slow subscriber holds one array, not a queue.
pub(super) const OUTPUT_LIMIT_BYTES: usize = 256 << 10;

/// Smaller arrays are bounded by the limit of each connection's output. A larger one fills that,
/// so that the connection is resumed once it is sent.
const LARGE_BYTES: usize = OUTPUT_LIMIT_BYTES;

/// A connection that has sent nothing of its arrays for this long is closed, if others need memory.
const STALL_NS: Ns = 2_000_000_000;

/// While updates are deferred, connections are checked for progress this often.
pub(super) const CHECK_NS: Ns = 500_000_000;

/// The arrays that all connections of a service are sending.
#[derive(Debug)]
pub(super) struct InFlight {
    state: Mutex<State>,
    limit_bytes: usize,
}

#[derive(Debug, Default)]
struct State {
    /// By address: the bytes of an array, and how many times it is being sent.
    arrays: HashMap<usize, (usize, usize), RandomState>,
    /// The bytes of all of them, each counted once.
    bytes: usize,
    /// The connections that are sending them.
    senders: Vec<Arc<Inbox>>,
    /// The connections with deferred updates.
    deferred: Vec<Arc<Inbox>>,
}

/// The arrays that one connection is sending.
#[derive(Debug)]
pub(super) struct Sending {
    home: Arc<InFlight>,
    inbox: Arc<Inbox>,
    /// Their addresses.
    arrays: Vec<usize>,
    /// How many bytes were unsent at the last check, and since when.
    unsent: Option<(usize, Ns)>,
}

/// The large arrays among the fields in `changed`, by address and size.
fn large<'a>(changed: &'a Bits, nodes: &'a [Value]) -> impl Iterator<Item = (usize, usize)> + 'a {
    let is_all = changed.contains(0);
    let array = |value: &'a Value| match value {
        Value::Array(array) => Some(array),
        Value::Union(Some(chosen)) => chosen.nodes.first().and_then(|value| match value {
            Value::Array(array) => Some(array),
            _ => None,
        }),
        _ => None,
    };
    let selected =
        nodes.iter().enumerate().filter(move |(bit, _)| is_all || changed.contains(*bit));
    let arrays = selected.filter_map(move |(_, value)| array(value));
    arrays
        .map(|array| (array.bytes().as_ptr().addr(), array.bytes().len()))
        .filter(|(_, bytes)| *bytes >= LARGE_BYTES)
}

impl InFlight {
    pub(super) fn new(limit_bytes: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), limit_bytes })
    }

    /// How many bytes of arrays are being sent, each array counted once.
    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Counts are whole between any two calls: a panic elsewhere can't break them.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the connections that are sending arrays check their progress.
    pub(super) fn check_senders(&self) {
        self.lock().senders.iter().for_each(|inbox| inbox.check_progress());
    }
}

impl State {
    /// Returns the bytes of those of `arrays` that no connection is sending.
    fn new_bytes(&self, arrays: &[(usize, usize)]) -> usize {
        let new = arrays.iter().filter(|(address, _)| !self.arrays.contains_key(address));
        new.map(|(_, bytes)| bytes).sum()
    }

    fn add(&mut self, arrays: &[(usize, usize)], inbox: &Arc<Inbox>) {
        for (address, bytes) in arrays {
            let (_, times) = self.arrays.entry(*address).or_insert((*bytes, 0));
            *times += 1;
            if *times == 1 {
                self.bytes += bytes;
            }
        }
        if !self.senders.iter().any(|sender| Arc::ptr_eq(sender, inbox)) {
            self.senders.push(Arc::clone(inbox));
        }
    }

    fn remove(&mut self, address: usize) {
        let Some((bytes, times)) = self.arrays.get_mut(&address) else {
            return debug_assert!(false, "an array is removed that was not added");
        };
        debug_assert!(*times > 0, "an array is removed more often than it was added");
        *times -= 1;
        if *times == 0 {
            debug_assert!(self.bytes >= *bytes, "{} bytes of {} removed", *bytes, self.bytes);
            self.bytes -= *bytes;
            self.arrays.remove(&address);
        }
    }
}

impl Sending {
    pub(super) fn new(home: &Arc<InFlight>, inbox: &Arc<Inbox>) -> Self {
        let (home, inbox) = (Arc::clone(home), Arc::clone(inbox));
        Self { home, inbox, arrays: Vec::new(), unsent: None }
    }

    /// Adds the large arrays of an update, unless they would pass the limit: then returns whether
    /// they were added, and wakes the connection once there is room.
    #[inline]
    pub(super) fn admit(&mut self, changed: &Bits, nodes: &[Value]) -> bool {
        large(changed, nodes).next().is_none() || self.admit_large(changed, nodes)
    }

    fn admit_large(&mut self, changed: &Bits, nodes: &[Value]) -> bool {
        let arrays: Vec<_> = large(changed, nodes).collect();
        let mut state = self.home.lock();
        let new = state.new_bytes(&arrays);
        // Two of the largest have room, or one stopped client would stop all others.
        let limit = self.home.limit_bytes.max(new.saturating_mul(2));
        if new > 0 && state.bytes + new > limit {
            if !state.deferred.iter().any(|inbox| Arc::ptr_eq(inbox, &self.inbox)) {
                state.deferred.push(Arc::clone(&self.inbox));
            }
            return false;
        }
        state.add(&arrays, &self.inbox);
        drop(state);
        self.arrays.extend(arrays.iter().map(|(address, _)| address));
        true
    }

    /// Adds the large arrays of a get. Where they pass the limit, connections that send nothing
    /// are closed.
    #[inline]
    pub(super) fn add(&mut self, selected: &Bits, nodes: &[Value]) {
        if large(selected, nodes).next().is_some() {
            let arrays: Vec<_> = large(selected, nodes).collect();
            let mut state = self.home.lock();
            state.add(&arrays, &self.inbox);
            self.arrays.extend(arrays.iter().map(|(address, _)| address));
            if state.bytes > self.home.limit_bytes {
                state.senders.iter().for_each(|inbox| inbox.check_progress());
            }
        }
    }

    /// Releases the arrays once they are sent.
    #[inline]
    pub(super) fn settle(&mut self, out: &Output) {
        if out.is_empty() && !self.arrays.is_empty() {
            self.release();
        }
    }

    /// Returns whether the connection has sent nothing for too long. It is to be closed, then.
    pub(super) fn is_stalled(&mut self, now: Ns, out: &Output) -> bool {
        if self.arrays.is_empty() {
            return false;
        }
        match self.unsent {
            Some((unsent, since)) if unsent == out.len() => now.saturating_sub(since) >= STALL_NS,
            _ => {
                self.unsent = Some((out.len(), now));
                false
            }
        }
    }

    /// Releases all arrays, and wakes the connections whose updates wait for memory.
    pub(super) fn release(&mut self) {
        self.unsent = None;
        if self.arrays.is_empty() {
            return;
        }
        let mut state = self.home.lock();
        self.arrays.drain(..).for_each(|address| state.remove(address));
        state.senders.retain(|sender| !Arc::ptr_eq(sender, &self.inbox));
        let deferred = std::mem::take(&mut state.deferred);
        drop(state);
        deferred.iter().for_each(|inbox| inbox.wake());
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.release();
        let mut state = self.home.lock();
        state.deferred.retain(|inbox| !Arc::ptr_eq(inbox, &self.inbox));
    }
}
