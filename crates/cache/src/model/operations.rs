//! The store's operations: each finds the key's shard and does its work under that shard's lock.

use std::sync::atomic::Ordering::Relaxed;

use super::clock::Seconds;
use super::counts::{Counts, Holdings};
use super::crawled::CrawledPart;
use super::eviction::{EvictionObserver, EvictionStats};
use super::item::{Entry, Item};
use super::key_hash::Hashed;
use super::limits::{MAX_SHARD_BYTES, MIN_LARGE_ITEMS, MIN_MEMORY_BYTES, MakeError, StoreError};
use super::requests::{Access, Change, Mark, Mode, Removed, Seen, Stored, Sum, Summed};
use super::shard::Shard;
use super::store::Store;

/// The position of a walk through all items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    shard: usize,
    tag: u32,
}

/// A part of a walk that removes expired items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crawled {
    /// The position to continue from, or `None` at the end.
    pub next: Option<Cursor>,
    /// The slots of the index that were visited, gaps included.
    pub slots: usize,
    /// The items that were examined.
    pub checked: u64,
    /// The items that were removed.
    pub reclaimed: u64,
}

/// Counts a refused store and returns the reason.
fn refused(shard: &mut Shard, fits: bool) -> StoreError {
    if fits {
        shard.counts.store_no_memory += 1;
        return StoreError::NoRoom;
    }
    shard.counts.store_too_large += 1;
    StoreError::TooLarge
}

impl Store {
    /// Stores `entry`, replacing what its key had, and returns the unique number.
    ///
    /// # Errors
    /// When the entry is too large, or may not displace anything. What its key had is removed all
    /// the same, so that no reader gets an outdated value.
    #[inline]
    pub fn set(&self, now_s: Seconds, entry: &Entry<'_>) -> Result<u64, StoreError> {
        let hashed = Hashed::of(&self.hasher, entry.key);
        self.at(&hashed, |shard| {
            shard.counts.cmd_set += 1;
            let fits = self.fits(entry.key.len(), entry.value.len());
            let stored = if fits { shard.set(now_s, &hashed, entry) } else { None };
            stored.ok_or_else(|| {
                shard.delete(now_s, &hashed);
                refused(shard, fits)
            })
        })
    }

    /// Stores under conditions.
    ///
    /// # Errors
    /// When the entry is too large, or may not displace anything. What its key had is then removed
    /// when it was to be replaced whatever it was.
    pub fn change(&self, now_s: Seconds, change: &Change<'_>) -> Result<Stored, StoreError> {
        let key = change.entry.key;
        let hashed = Hashed::of(&self.hasher, key);
        self.at(&hashed, |shard| {
            shard.counts.cmd_set += 1;
            let fits = self.fits(key.len(), change.entry.value.len());
            let stored = match fits {
                true => shard.change(now_s, &hashed, change, |bytes| self.fits(key.len(), bytes)),
                false => None,
            };
            stored.ok_or_else(|| {
                if change.mode == Mode::Set && change.compare.is_none() {
                    shard.delete(now_s, &hashed);
                }
                refused(shard, fits)
            })
        })
    }

    /// Removes an item, when its unique number is the one given.
    pub fn remove(&self, now_s: Seconds, key: &[u8], compare: Option<u64>) -> Removed {
        let hashed = Hashed::of(&self.hasher, key);
        self.at(&hashed, |shard| shard.remove(now_s, &hashed, compare, None))
    }

    /// Marks an item, when its unique number is the one given.
    pub fn mark(&self, now_s: Seconds, key: &[u8], compare: Option<u64>, mark: &Mark) -> Removed {
        let hashed = Hashed::of(&self.hasher, key);
        self.at(&hashed, |shard| shard.remove(now_s, &hashed, compare, Some(mark)))
    }

    /// Like [`Store::get`]; the first reader of a stale item is to recache it: it finds the item
    /// [stale](Item::stale) and not yet [won](Item::won).
    #[inline]
    pub fn get_or_win<R>(
        &self,
        now_s: Seconds,
        key: &[u8],
        use_item: impl FnOnce(&Item<'_>) -> R,
    ) -> Option<R> {
        self.reads(now_s).get::<true, R>(key, use_item)
    }

    /// Looks at an item; nothing is noted or counted.
    pub fn peek<R>(
        &self,
        now_s: Seconds,
        key: &[u8],
        use_item: impl FnOnce(&Item<'_>) -> R,
    ) -> Option<R> {
        let hashed = Hashed::of(&self.hasher, key);
        self.at(&hashed, |shard| shard.peek(now_s, &hashed).map(|item| use_item(&item)))
    }

    /// Reads the item of `key`, with changes, under its shard's lock. `show` is given the item as
    /// it was before, and is not called when there is none and none was made.
    pub fn access<R>(
        &self,
        now_s: Seconds,
        key: &[u8],
        access: &Access,
        show: impl FnOnce(&Item<'_>, &Seen) -> R,
    ) -> Option<R> {
        let hashed = Hashed::of(&self.hasher, key);
        self.at(&hashed, |shard| shard.access(now_s, &hashed, access, show))
    }

    /// Increments or decrements a number.
    pub fn sum(&self, now_s: Seconds, key: &[u8], sum: &Sum) -> Summed {
        let hashed = Hashed::of(&self.hasher, key);
        self.at(&hashed, |shard| shard.sum(now_s, &hashed, sum))
    }

    /// Removes everything once the second `at_s` has come: see [`Store::tick`].
    pub fn flush_at(&self, at_s: Seconds) {
        self.shared.flush_at(at_s);
    }

    /// Carries out a due [`Store::flush_at`]. Cheap enough for every batch.
    #[inline]
    pub fn tick(&self, now_s: Seconds) {
        if self.shared.is_due(now_s) {
            self.clear();
        }
    }

    /// The memory for items and index together, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes.load(Relaxed)
    }

    /// Changes the memory for items and index together.
    ///
    /// # Errors
    /// When the memory can't hold the largest items, exceeds what the shards can address, or is
    /// not available.
    pub fn set_memory(&self, now_s: Seconds, memory_bytes: usize) -> Result<(), MakeError> {
        let least = MIN_LARGE_ITEMS * self.limits.item_bytes * self.shards.len();
        if memory_bytes < MIN_MEMORY_BYTES.max(least) {
            return Err(MakeError::LittleMemory);
        }
        let budget_bytes = memory_bytes / self.shards.len();
        let refused = || MakeError::OutOfMemory { bytes: memory_bytes };
        if budget_bytes > MAX_SHARD_BYTES {
            return Err(refused());
        }
        let mut is_had = true;
        self.shards.each(|shard| is_had = is_had && shard.set_budget(now_s, budget_bytes));
        if !is_had {
            return Err(refused());
        }
        self.memory_bytes.store(memory_bytes, Relaxed);
        Ok(())
    }

    /// Calls `show` with about `most` items from `cursor` on; the default is the start. Returns
    /// the cursor to go on from, or `None` at the end. An item that stays in the store is shown
    /// exactly once, whatever else changes between two calls.
    pub fn walk(
        &self,
        now_s: Seconds,
        cursor: Cursor,
        most: usize,
        show: &mut dyn FnMut(&Item<'_>),
    ) -> Option<Cursor> {
        let Cursor { shard, tag } = cursor;
        if shard >= self.shards() {
            return None;
        }
        match self.shards.at(shard, |shard| shard.walk(now_s, tag, most, show)) {
            Some(tag) => Some(Cursor { shard, tag }),
            None if shard + 1 < self.shards() => Some(Cursor { shard: shard + 1, tag: 0 }),
            None => None,
        }
    }

    /// Visits at most about `max_slots` slots of one shard's index, from `cursor` on, and removes
    /// what has expired. Unless the walk is `full`, a shard is passed over whose items all expire
    /// later. An item that stays in the store is examined exactly once in a walk.
    pub fn crawl(&self, now_s: Seconds, cursor: Cursor, max_slots: usize, full: bool) -> Crawled {
        let Cursor { shard, tag } = cursor;
        if shard >= self.shards() {
            return Crawled { next: None, slots: 0, checked: 0, reclaimed: 0 };
        }
        let part = self.shards.at(shard, |shard| shard.crawl(now_s, tag, max_slots, full));
        let next = match part.next {
            Some(tag) => Some(Cursor { shard, tag }),
            None => (shard + 1 < self.shards()).then_some(Cursor { shard: shard + 1, tag: 0 }),
        };
        let CrawledPart { slots, checked, reclaimed, .. } = part;
        Crawled { next, slots, checked, reclaimed }
    }

    /// Returns the age of the item that is the next to be judged for eviction: the time since it
    /// was last read, or stored.
    pub fn oldest_age_s(&self, now_s: Seconds) -> Seconds {
        let mut oldest_s = 0;
        self.shards.each(|shard| oldest_s = oldest_s.max(shard.oldest_age_s(now_s)));
        oldest_s
    }

    /// Notes a store that was refused before its value had come, and `why`; what the key had is
    /// removed when it was to be replaced.
    pub fn refuse(&self, now_s: Seconds, key: &[u8], replaces: bool, why: StoreError) {
        let hashed = Hashed::of(&self.hasher, key);
        self.at(&hashed, |shard| {
            shard.counts.cmd_set += 1;
            match why {
                StoreError::TooLarge => shard.counts.store_too_large += 1,
                StoreError::NoRoom => shard.counts.store_no_memory += 1,
            }
            if replaces {
                shard.delete(now_s, &hashed);
            }
        });
    }

    /// Removes the item of `key`; whether there was one.
    pub fn delete(&self, now_s: Seconds, key: &[u8]) -> bool {
        let hashed = Hashed::of(&self.hasher, key);
        self.at(&hashed, |shard| {
            let found = shard.delete(now_s, &hashed);
            match found {
                true => shard.counts.delete_hits += 1,
                false => shard.counts.delete_misses += 1,
            }
            found
        })
    }

    /// Removes everything.
    pub fn clear(&self) {
        self.shards.each(Shard::clear);
    }

    /// Returns the counters, summed over the shards.
    pub fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        self.shards.each(|shard| sum = sum.plus(&shard.counts));
        sum
    }

    /// Returns the statistics of evicted items.
    pub fn eviction_stats(&self) -> EvictionStats {
        let mut sum = EvictionStats::default();
        self.shards.each(|shard| sum = sum.plus(&shard.eviction_stats));
        sum
    }

    /// Calls `observer` for each eviction from now on.
    pub fn set_eviction_observer(&self, observer: &EvictionObserver) {
        self.shards.each(|shard| shard.observer = Some(observer.clone()));
    }

    /// Starts counting again from zero.
    pub fn reset_counts(&self) {
        self.shards.each(|shard| {
            shard.counts = Counts::default();
            shard.eviction_stats = EvictionStats::default();
        });
    }

    /// Returns the totals of the contents.
    pub fn holdings(&self) -> Holdings {
        let mut sum = Holdings::default();
        self.shards.each(|shard| sum = sum.plus(shard.holdings()));
        sum
    }
}
