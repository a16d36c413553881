//! Looking ahead: what several reads of one batch will need is fetched for all of them at once,
//! before the first of them waits for any of it.
//!
//! A read of a large store waits for memory twice, for its index entry and for its item, and the
//! processor does not see the next command behind that. Here all entries are asked for first and
//! then all items, so that a batch waits about as long as one read. Nothing is changed or noted.

use super::{Hashed, Shard, Store};

/// So many keys are looked up ahead of their commands.
pub const MOST_AHEAD: usize = 64;

/// The hashes of keys that will soon be read.
#[derive(Clone, Debug)]
pub struct Ahead {
    hashes: [(u32, u32); MOST_AHEAD],
    count: usize,
}

impl Default for Ahead {
    fn default() -> Self {
        Self { hashes: [(0, 0); MOST_AHEAD], count: 0 }
    }
}

impl Ahead {
    /// How many keys it has.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether it can take no more.
    pub fn is_full(&self) -> bool {
        self.count == MOST_AHEAD
    }
}

impl Store {
    /// Whether looking ahead pays: what the store holds is more than a processor's caches hold.
    #[inline]
    pub fn is_large(&self) -> bool {
        self.shared.is_large()
    }

    /// Adds a key to those that will soon be read.
    #[inline]
    pub fn add_ahead(&self, key: &[u8], ahead: &mut Ahead) {
        let Hashed { tag, shard, .. } = Hashed::of(&self.hasher, key);
        if let Some(place) = ahead.hashes.get_mut(ahead.count) {
            *place = (tag, shard);
            ahead.count += 1;
        }
    }

    /// Fetches what the reads of these keys will need.
    pub fn look_ahead(&self, ahead: &Ahead) {
        let hashes = &ahead.hashes[..ahead.count];
        self.each_by_shard(hashes, Shard::prefetch_entry);
        self.each_by_shard(hashes, |shard, tag| {
            shard.prefetch_item(tag);
        });
    }

    /// Calls `look` for each tag, and takes each shard's lock once.
    fn each_by_shard(&self, hashes: &[(u32, u32)], look: impl Fn(&Shard, u32)) {
        let mask = self.shards() as u32 - 1;
        // One bit for each hash that has still to have its turn: there are at most 64.
        let mut left = u64::MAX >> (MOST_AHEAD - hashes.len().clamp(1, MOST_AHEAD));
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
