//! Prefetch for a batch: the memory of several reads is requested at once, before the first of
//! them waits for any of it.
//!
//! A read of a large store waits for memory twice, for its index entry and for its item, and the
//! processor does not see the next command behind that. Here all entries are asked for first and
//! then all items, so that a batch waits about as long as one read. Nothing is changed or noted.

use super::key_hash::Hashed;
use super::shard::Shard;
use super::store::Store;

/// The most keys whose memory is prefetched before their commands run.
pub const MAX_PREFETCH: usize = 64;

/// The hashes of keys that will soon be read.
#[derive(Clone, Debug)]
pub struct Prefetch {
    hashes: [(u32, u32); MAX_PREFETCH],
    count: usize,
}

impl Default for Prefetch {
    fn default() -> Self {
        Self { hashes: [(0, 0); MAX_PREFETCH], count: 0 }
    }
}

impl Prefetch {
    /// The number of keys.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether there is no room for another key.
    pub fn is_full(&self) -> bool {
        self.count == MAX_PREFETCH
    }
}

impl Store {
    /// Whether prefetching pays: the store is larger than a processor's caches.
    #[inline]
    pub fn is_large(&self) -> bool {
        self.shared.is_large()
    }

    /// Adds a key to those that will soon be read.
    #[inline]
    pub fn add_prefetch(&self, key: &[u8], keys: &mut Prefetch) {
        let Hashed { tag, shard, .. } = Hashed::of(&self.hasher, key);
        if let Some(place) = keys.hashes.get_mut(keys.count) {
            *place = (tag, shard);
            keys.count += 1;
        }
    }

    /// Prefetches the index entries and items of these keys.
    pub fn prefetch(&self, keys: &Prefetch) {
        let hashes = &keys.hashes[..keys.count];
        self.each_by_shard(hashes, Shard::prefetch_entry);
        self.each_by_shard(hashes, |shard, tag| {
            shard.prefetch_item(tag);
        });
    }

    /// Calls `look` for each tag, and takes each shard's lock once.
    fn each_by_shard(&self, hashes: &[(u32, u32)], look: impl Fn(&Shard, u32)) {
        let mask = self.shards() as u32 - 1;
        // One bit for each hash that is still to be handled; there are at most 64.
        let mut left = u64::MAX >> (MAX_PREFETCH - hashes.len().clamp(1, MAX_PREFETCH));
        while left != 0 {
            let number = hashes[left.trailing_zeros() as usize].1 & mask;
            self.shards.at(number as usize, |shard| {
                let mut rest = left;
                while rest != 0 {
                    let at = rest.trailing_zeros();
                    rest &= rest - 1;
                    let (tag, other) = hashes[at as usize];
                    if other & mask == number {
                        left &= !(1 << at);
                        look(shard, tag);
                    }
                }
            });
        }
    }
}
