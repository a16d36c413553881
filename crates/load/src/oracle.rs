//! What a right answer is while several clients write at once.
//!
//! Every write of a key gets the next version. A read is right when its value is a version that
//! was current at some moment between send and receipt: not one that a later write had certainly
//! replaced before the read was sent, and not one that was never written. "Certainly" is decided
//! in constant space: a write replaces everything older than the moment at which the key last had
//! no write under way, so writes that overlap are never called wrong, and without overlap the
//! check is exact.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::http::Request;
use crate::{Keys, Values, WrittenBy};

/// The oldest version that a read sent now may return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor(u32);

/// A write under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The version to write.
    pub version: u32,
    /// Everything below this is replaced once the write is acknowledged.
    replaces_below: u32,
}

/// Why an answer is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The bytes are no version of this key's value.
    #[error("these bytes are no version of this key's value")]
    Corrupt,
    /// The value had been replaced before the read was sent.
    #[error("the value had been replaced before the read was sent")]
    Stale,
    /// A version that nobody has written yet.
    #[error("nobody has written this version")]
    Unwritten,
}

/// Versions of one key.
#[derive(Debug, Default)]
struct Versions {
    /// Versions issued (upper half) and writes under way (lower half).
    issued_and_open: AtomicU64,
    /// The first version issued since the key last had no write under way.
    quiet_from: AtomicU32,
    /// The oldest version that may still be current.
    floor: AtomicU32,
}

/// The state that a target should be in: keys, values and, when the workload writes, versions.
#[derive(Debug)]
pub struct Oracle {
    /// The workload's keys.
    pub keys: Keys,
    /// The workload's values.
    pub values: Values,
    /// Whether a missing value is a right answer (eviction, deletion, no preparation).
    pub misses_allowed: bool,
    /// The requests that the suite describes with their right answers, in the order of the
    /// workload's operations; empty where the service has operations of its own.
    pub requests: Arc<[Request]>,
    /// How many elements a value has; `None` where values are not arrays.
    pub size: Option<u64>,
    /// Who writes the values.
    pub written_by: WrittenBy,
    versions: Vec<Versions>,
}

/// The version that preparation writes.
const PREPARED: u32 = 1;

/// A value too short to carry its version is compared with at most this many candidates.
const MOST_CANDIDATES: u32 = 256;

impl Oracle {
    /// The oracle about a freshly prepared target: every key at its first version. `writes` says
    /// whether the workload changes values; without it no table is kept.
    pub fn new(keys: Keys, values: Values, misses_allowed: bool, writes: bool) -> Self {
        let versions = if writes { keys.count() } else { 0 };
        let prepared = || Versions {
            issued_and_open: AtomicU64::new(u64::from(PREPARED) << 32),
            quiet_from: AtomicU32::new(PREPARED),
            floor: AtomicU32::new(PREPARED),
        };
        let versions = (0..versions).map(|_| prepared()).collect();
        let (requests, size, written_by) = (Arc::from([]), None, WrittenBy::Clients);
        Self { keys, values, misses_allowed, requests, size, written_by, versions }
    }

    /// The same with values that are numbers, or arrays of so many of them.
    #[must_use]
    pub fn with_numbers(self, size: Option<u64>, written_by: WrittenBy) -> Self {
        Self { size, written_by, ..self }
    }

    /// The value of `key` at `version`, where values are numbers: the key above, the version
    /// below, so that a write advances it by one and a wrong one says whose it is. Every element
    /// of an array is this number.
    #[inline]
    pub fn number(&self, key: u64, version: u32) -> i64 {
        ((key << 32) | u64::from(version)).cast_signed()
    }

    /// Whether `number`, received now, is a right answer to a read sent at `floor`.
    ///
    /// # Errors
    /// In which way it is wrong.
    #[inline]
    pub fn check_number(&self, key: u64, floor: Floor, number: i64) -> Result<(), Mismatch> {
        let (claimed_key, claimed) = (number.cast_unsigned() >> 32, number as u32);
        let newest = match self.versions.get(key as usize) {
            Some(versions) => (versions.issued_and_open.load(Ordering::Acquire) >> 32) as u32,
            None => PREPARED,
        };
        match () {
            () if claimed_key != key || number < 0 => Err(Mismatch::Corrupt),
            () if claimed < floor.0 => Err(Mismatch::Stale),
            () if claimed > newest => Err(Mismatch::Unwritten),
            () => Ok(()),
        }
    }

    /// The same with requests that the suite describes.
    #[must_use]
    pub fn with_requests(self, requests: Arc<[Request]>) -> Self {
        Self { requests, ..self }
    }

    /// The version that preparation writes for every key.
    pub fn prepared_version(&self) -> u32 {
        PREPARED
    }

    /// Call when a read is sent.
    #[inline]
    pub fn begin_read(&self, key: u64) -> Floor {
        match self.versions.get(key as usize) {
            Some(versions) => Floor(versions.floor.load(Ordering::Acquire)),
            None => Floor(PREPARED),
        }
    }

    /// Call when a write is sent: gives the version to write.
    #[inline]
    pub fn begin_write(&self, key: u64) -> Write {
        let Some(versions) = self.versions.get(key as usize) else {
            return Write { version: PREPARED, replaces_below: PREPARED };
        };
        let before = versions.issued_and_open.fetch_add((1 << 32) | 1, Ordering::AcqRel);
        let version = (before >> 32) as u32 + 1;
        if before as u32 == 0 {
            versions.quiet_from.store(version, Ordering::Release);
        }
        Write { version, replaces_below: versions.quiet_from.load(Ordering::Acquire).min(version) }
    }

    /// Call when the target has acknowledged a write. A write that is never acknowledged stays
    /// under way for ever, which only makes the check more lenient.
    #[inline]
    pub fn end_write(&self, key: u64, write: Write) {
        if let Some(versions) = self.versions.get(key as usize) {
            versions.floor.fetch_max(write.replaces_below, Ordering::AcqRel);
            versions.issued_and_open.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Whether `bytes`, received now, are a right answer to a read sent at `floor`.
    ///
    /// # Errors
    /// In which way they are wrong.
    #[inline]
    pub fn check(&self, key: u64, floor: Floor, bytes: &[u8]) -> Result<(), Mismatch> {
        let Some(versions) = self.versions.get(key as usize) else {
            let right = self.values.is(key, PREPARED, bytes);
            return if right { Ok(()) } else { Err(Mismatch::Corrupt) };
        };
        let issued = (versions.issued_and_open.load(Ordering::Acquire) >> 32) as u32;
        let Some(claimed) = self.values.claimed_version(bytes) else {
            let oldest = floor.0.max(issued.saturating_sub(MOST_CANDIDATES));
            let right = (oldest..=issued).rev().any(|v| self.values.is(key, v, bytes));
            return if right { Ok(()) } else { Err(Mismatch::Corrupt) };
        };
        match () {
            () if !self.values.is(key, claimed, bytes) => Err(Mismatch::Corrupt),
            () if claimed < floor.0 => Err(Mismatch::Stale),
            () if claimed > issued => Err(Mismatch::Unwritten),
            () => Ok(()),
        }
    }

    /// A right answer to show beside a wrong one: the newest version.
    pub fn example(&self, key: u64) -> Vec<u8> {
        let issued = self.versions.get(key as usize).map_or(PREPARED, |versions| {
            (versions.issued_and_open.load(Ordering::Acquire) >> 32) as u32
        });
        let mut value = Vec::new();
        self.values.put(key, issued, &mut value);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oracle() -> Oracle {
        Oracle::new(Keys::new(10, 8).unwrap(), Values::new(1, 40), false, true)
    }

    fn value(oracle: &Oracle, key: u64, version: u32) -> Vec<u8> {
        let mut value = Vec::new();
        oracle.values.put(key, version, &mut value);
        value
    }

    #[test]
    fn a_replaced_value_is_stale_and_an_unwritten_one_is_named() {
        let oracle = oracle();
        let early = oracle.begin_read(3);
        let write = oracle.begin_write(3);
        assert_eq!(oracle.check(3, early, &value(&oracle, 3, 1)), Ok(()));
        assert_eq!(oracle.check(3, early, &value(&oracle, 3, 2)), Ok(()));
        oracle.end_write(3, write);
        let late = oracle.begin_read(3);
        assert_eq!(oracle.check(3, late, &value(&oracle, 3, 1)), Err(Mismatch::Stale));
        assert_eq!(oracle.check(3, late, &value(&oracle, 3, 2)), Ok(()));
        assert_eq!(oracle.check(3, late, &value(&oracle, 3, 3)), Err(Mismatch::Unwritten));
        assert_eq!(oracle.check(3, late, &value(&oracle, 4, 2)), Err(Mismatch::Corrupt));
        assert_eq!(oracle.check(3, early, &value(&oracle, 3, 1)), Ok(()));
    }

    #[test]
    fn overlapping_writes_may_land_in_either_order() {
        let oracle = oracle();
        let (first, second) = (oracle.begin_write(0), oracle.begin_write(0));
        oracle.end_write(0, first);
        oracle.end_write(0, second);
        let read = oracle.begin_read(0);
        assert_eq!(oracle.check(0, read, &value(&oracle, 0, 2)), Ok(()));
        assert_eq!(oracle.check(0, read, &value(&oracle, 0, 3)), Ok(()));
        assert_eq!(oracle.check(0, read, &value(&oracle, 0, 1)), Err(Mismatch::Stale));
        let third = oracle.begin_write(0);
        oracle.end_write(0, third);
        let read = oracle.begin_read(0);
        assert_eq!(oracle.check(0, read, &value(&oracle, 0, 3)), Err(Mismatch::Stale));
    }

    #[test]
    fn numbers_advance_by_one_a_write_and_say_whose_they_are() {
        let oracle = oracle().with_numbers(None, WrittenBy::Clients);
        let early = oracle.begin_read(3);
        assert_eq!(oracle.number(3, 1) + 1, oracle.number(3, 2));
        assert_eq!(oracle.check_number(3, early, oracle.number(3, 1)), Ok(()));
        assert_eq!(oracle.check_number(3, early, oracle.number(3, 2)), Err(Mismatch::Unwritten));
        let write = oracle.begin_write(3);
        oracle.end_write(3, write);
        let late = oracle.begin_read(3);
        assert_eq!(oracle.check_number(3, late, oracle.number(3, 2)), Ok(()));
        assert_eq!(oracle.check_number(3, late, oracle.number(3, 1)), Err(Mismatch::Stale));
        assert_eq!(oracle.check_number(3, late, oracle.number(4, 2)), Err(Mismatch::Corrupt));
        assert_eq!(oracle.check_number(3, late, -1), Err(Mismatch::Corrupt));
    }

    #[test]
    fn short_values_are_told_apart_without_a_head() {
        let oracle = Oracle::new(Keys::new(10, 8).unwrap(), Values::new(1, 8), false, true);
        let write = oracle.begin_write(5);
        oracle.end_write(5, write);
        let read = oracle.begin_read(5);
        assert_eq!(oracle.check(5, read, &value(&oracle, 5, 2)), Ok(()));
        assert_eq!(oracle.check(5, read, &value(&oracle, 5, 1)), Err(Mismatch::Corrupt));
    }
}
