//! What records should hold: numbers that count up, or arrays whose elements are all that number.

use load::kv::{Floor, Keys, Mismatch, PREPARED, Sampler, Versions};

/// The state that the records of one target should be in.
#[derive(Debug)]
pub struct Oracle {
    /// The records: each is named by its key.
    pub keys: Keys,
    /// Which are asked for how often; each slot draws from a copy of its own.
    pub sampler: Sampler,
    /// How many elements a value has; `None` where values are not arrays.
    pub size: Option<u64>,
    /// The target itself writes this number of the records, from the first one on.
    target_writes: u64,
    /// Which versions of a key an answer may have; it is notified when a request is sent and when
    /// a write is acknowledged.
    pub versions: Versions,
}

impl Oracle {
    /// The oracle about records that the load doesn't write. The first `target_writes` of them are
    /// written by the target itself, whose values count up by one at a time.
    pub fn new(keys: Keys, size: Option<u64>, target_writes: u64) -> Self {
        let (sampler, versions) = (Sampler::uniform(&keys), Versions::default());
        Self { keys, sampler, size, target_writes, versions }
    }

    /// The oracle about a target that has just been prepared; where the load `writes`, versions
    /// are kept.
    #[must_use]
    pub fn begin(&self, writes: bool) -> Self {
        let (keys, sampler) = (self.keys.clone(), self.sampler.clone());
        let versions = Versions::prepared(if writes { keys.count() } else { 0 });
        Self { keys, sampler, versions, ..*self }
    }

    /// Whether the target itself writes the record.
    #[inline]
    pub fn is_targets(&self, key: u64) -> bool {
        key < self.target_writes
    }

    /// How many records the clients may write.
    pub fn writable(&self) -> u64 {
        self.keys.count().saturating_sub(self.target_writes)
    }

    /// Record number `index` of those that the clients may write, counted from 0, over and over.
    #[inline]
    pub fn writable_key(&self, index: u64) -> u64 {
        self.target_writes + index % self.writable().max(1)
    }

    /// The version that preparation writes for every record.
    pub fn prepared_version(&self) -> u32 {
        PREPARED
    }

    /// The value of `key` at `version`: the key above, the version below, so that a write advances
    /// it by one and a wrong one says whose it is. Every element of an array is this number.
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
        if claimed_key != key || number < 0 {
            return Err(Mismatch::Corrupt);
        }
        self.versions.check(key, floor, claimed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_advance_by_one_a_write_and_say_whose_they_are() {
        let oracle = Oracle::new(Keys::new(10, 8).unwrap(), None, 0).begin(true);
        let early = oracle.versions.begin_read(3);
        assert_eq!(oracle.number(3, 1) + 1, oracle.number(3, 2));
        assert_eq!(oracle.check_number(3, early, oracle.number(3, 1)), Ok(()));
        assert_eq!(oracle.check_number(3, early, oracle.number(3, 2)), Err(Mismatch::Unwritten));
        let write = oracle.versions.begin_write(3);
        oracle.versions.end_write(3, write);
        let late = oracle.versions.begin_read(3);
        assert_eq!(oracle.check_number(3, late, oracle.number(3, 2)), Ok(()));
        assert_eq!(oracle.check_number(3, late, oracle.number(3, 1)), Err(Mismatch::Stale));
        assert_eq!(oracle.check_number(3, late, oracle.number(4, 2)), Err(Mismatch::Corrupt));
        assert_eq!(oracle.check_number(3, late, -1), Err(Mismatch::Corrupt));
    }

    #[test]
    fn clients_write_only_what_the_target_does_not() {
        let oracle = Oracle::new(Keys::new(5, 8).unwrap(), None, 2);
        let keys: Vec<u64> = (0..4).map(|index| oracle.writable_key(index)).collect();
        assert_eq!(keys, [2, 3, 4, 2]);
        assert!(oracle.is_targets(1) && !oracle.is_targets(2));
    }
}
