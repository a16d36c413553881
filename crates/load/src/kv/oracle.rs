//! What a target should hold: keys, values and, where they are written, versions.

use super::keys::Keys;
use super::sampler::Sampler;
use super::values::Values;
use super::versions::{Floor, Mismatch, PREPARED, Versions};

/// The state that a target should be in, and what is drawn of it.
#[derive(Debug)]
pub struct Oracle {
    /// The workload's keys.
    pub keys: Keys,
    /// The workload's values.
    pub values: Values,
    /// Which keys are asked for how often; each slot draws from a copy of its own.
    pub sampler: Sampler,
    /// How many keys an operation of many keys asks for.
    pub keys_per_request: usize,
    /// Whether a missing value is a right answer (eviction, deletion, no preparation).
    pub misses_allowed: bool,
    /// Which versions of a key an answer may have; it is notified when a request is sent and when
    /// a write is acknowledged.
    pub versions: Versions,
}

/// A value too short to carry its version is compared with at most this many candidates.
const MAX_CANDIDATES: u32 = 256;

impl Oracle {
    /// The oracle about a target that nothing writes to: every key is at its first version, and
    /// all are asked for equally often.
    pub fn new(keys: Keys, values: Values) -> Self {
        let (sampler, versions) = (Sampler::uniform(&keys), Versions::default());
        let (keys_per_request, misses_allowed) = (64, false);
        Self { keys, values, sampler, keys_per_request, misses_allowed, versions }
    }

    /// The oracle about a target that has just been prepared. Where a workload `writes`, versions
    /// are kept; where it `removes`, misses are right.
    #[must_use]
    pub fn begin(&self, writes: bool, removes: bool) -> Self {
        let (keys, values) = (self.keys.clone(), self.values.clone());
        Self {
            versions: Versions::prepared(if writes { keys.count() } else { 0 }),
            keys,
            values,
            sampler: self.sampler.clone(),
            keys_per_request: self.keys_per_request,
            misses_allowed: self.misses_allowed || removes,
        }
    }

    /// The version that preparation writes for every key.
    pub fn prepared_version(&self) -> u32 {
        PREPARED
    }

    /// The keys of an operation of many keys.
    #[inline]
    pub fn expand(&self, drawn: u64, keys: &mut Vec<u64>) {
        self.sampler.expand(drawn, self.keys_per_request, keys);
    }

    /// Whether `bytes`, received now, are a right answer to a read sent at `floor`.
    ///
    /// # Errors
    /// In which way they are wrong.
    #[inline]
    pub fn check(&self, key: u64, floor: Floor, bytes: &[u8]) -> Result<(), Mismatch> {
        let matches = |right: bool| if right { Ok(()) } else { Err(Mismatch::Corrupt) };
        if !self.versions.has(key) {
            return matches(self.values.is(key, PREPARED, bytes));
        }
        let Some(claimed) = self.values.claimed_version(bytes) else {
            let newest = self.versions.newest(key);
            let oldest = floor.0.max(newest.saturating_sub(MAX_CANDIDATES));
            return matches((oldest..=newest).rev().any(|v| self.values.is(key, v, bytes)));
        };
        matches(self.values.is(key, claimed, bytes))?;
        self.versions.check(key, floor, claimed)
    }

    /// A right answer to show beside a wrong one: the newest version.
    pub fn example(&self, key: u64) -> Vec<u8> {
        let mut value = Vec::new();
        self.values.put(key, self.versions.newest(key), &mut value);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oracle() -> Oracle {
        Oracle::new(Keys::new(10, 8).unwrap(), Values::new(1, 40)).begin(true, false)
    }

    fn value(oracle: &Oracle, key: u64, version: u32) -> Vec<u8> {
        let mut value = Vec::new();
        oracle.values.put(key, version, &mut value);
        value
    }

    #[test]
    fn a_replaced_value_is_stale_and_an_unwritten_one_is_named() {
        let oracle = oracle();
        let early = oracle.versions.begin_read(3);
        let write = oracle.versions.begin_write(3);
        assert_eq!(oracle.check(3, early, &value(&oracle, 3, 1)), Ok(()));
        assert_eq!(oracle.check(3, early, &value(&oracle, 3, 2)), Ok(()));
        oracle.versions.end_write(3, write);
        let late = oracle.versions.begin_read(3);
        assert_eq!(oracle.check(3, late, &value(&oracle, 3, 1)), Err(Mismatch::Stale));
        assert_eq!(oracle.check(3, late, &value(&oracle, 3, 2)), Ok(()));
        assert_eq!(oracle.check(3, late, &value(&oracle, 3, 3)), Err(Mismatch::Unwritten));
        assert_eq!(oracle.check(3, late, &value(&oracle, 4, 2)), Err(Mismatch::Corrupt));
        assert_eq!(oracle.check(3, early, &value(&oracle, 3, 1)), Ok(()));
    }

    #[test]
    fn overlapping_writes_may_land_in_either_order() {
        let oracle = oracle();
        let (first, second) = (oracle.versions.begin_write(0), oracle.versions.begin_write(0));
        oracle.versions.end_write(0, first);
        oracle.versions.end_write(0, second);
        let read = oracle.versions.begin_read(0);
        assert_eq!(oracle.check(0, read, &value(&oracle, 0, 2)), Ok(()));
        assert_eq!(oracle.check(0, read, &value(&oracle, 0, 3)), Ok(()));
        assert_eq!(oracle.check(0, read, &value(&oracle, 0, 1)), Err(Mismatch::Stale));
        let third = oracle.versions.begin_write(0);
        oracle.versions.end_write(0, third);
        let read = oracle.versions.begin_read(0);
        assert_eq!(oracle.check(0, read, &value(&oracle, 0, 3)), Err(Mismatch::Stale));
    }

    #[test]
    fn short_values_are_told_apart_without_a_head() {
        let oracle = Oracle::new(Keys::new(10, 8).unwrap(), Values::new(1, 8)).begin(true, false);
        let write = oracle.versions.begin_write(5);
        oracle.versions.end_write(5, write);
        let read = oracle.versions.begin_read(5);
        assert_eq!(oracle.check(5, read, &value(&oracle, 5, 2)), Ok(()));
        assert_eq!(oracle.check(5, read, &value(&oracle, 5, 1)), Err(Mismatch::Corrupt));
    }
}
