//! `stats detail`: counts of commands by the prefix of the key, which ends at the first `:` or
//! another character. Off by default; when it is on, every command takes one lock.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// The number of prefixes that are counted; further ones are not.
const MAX_PREFIXES: usize = 10_000;

/// The counts of one prefix.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    gets: u64,
    hits: u64,
    sets: u64,
    deletes: u64,
}

/// The counts of all prefixes.
#[derive(Debug)]
pub(super) struct PrefixCounts {
    /// Ends the prefix of a key.
    end: u8,
    on: AtomicBool,
    counts: Mutex<BTreeMap<Vec<u8>, Counts>>,
}

impl PrefixCounts {
    /// No counts yet; `end` ends the prefix of a key.
    pub(super) fn new(end: u8, on: bool) -> Self {
        Self { end, on: AtomicBool::new(on), counts: Mutex::default() }
    }

    /// Whether it counts.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    /// Switches counting on or off.
    pub(super) fn switch(&self, on: bool) {
        self.on.store(on, Relaxed);
    }

    /// A read, and whether it found something.
    #[inline]
    pub(super) fn get(&self, key: &[u8], hit: bool) {
        if self.is_on() {
            self.count(key, |counts| {
                counts.gets += 1;
                counts.hits += u64::from(hit);
            });
        }
    }

    /// A store.
    #[inline]
    pub(super) fn set(&self, key: &[u8]) {
        if self.is_on() {
            self.count(key, |counts| counts.sets += 1);
        }
    }

    /// A removal.
    #[inline]
    pub(super) fn delete(&self, key: &[u8]) {
        if self.is_on() {
            self.count(key, |counts| counts.deletes += 1);
        }
    }

    #[cold]
    fn count(&self, key: &[u8], change: impl FnOnce(&mut Counts)) {
        // A key without an end of its prefix belongs to none.
        let Some(end) = key.iter().position(|byte| *byte == self.end) else { return };
        let mut all = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counts) = all.get_mut(&key[..end]) {
            return change(counts);
        }
        if all.len() < MAX_PREFIXES {
            change(all.entry(key[..end].to_vec()).or_default());
        }
    }

    /// Appends a line for each prefix.
    pub(super) fn dump(&self, into: &mut Vec<u8>) {
        let all = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        for (prefix, Counts { gets, hits, sets, deletes }) in all.iter() {
            into.extend_from_slice(b"PREFIX ");
            into.extend_from_slice(prefix);
            // Writing to a vector can't fail.
            let _ = write!(into, " get {gets} hit {hits} set {sets} del {deletes}\r\n");
        }
    }

    /// Resets all counts.
    pub(super) fn reset(&self) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
