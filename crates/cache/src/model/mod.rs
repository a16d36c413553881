//! The store: keys and values within a bound of memory. Data plane: it opens no socket, knows no
//! clock but the second handed in, and allocates only when its index grows.
//!
//! Keys are spread over shards by their hash; each shard is a hash table of eight-byte entries
//! (`index`) into a ring of bytes (`log`) behind a lock of its own, which is held for one
//! operation. The memory bound covers both. There are no size classes: as long as a shard holds
//! anything, a new item that may be stored at all can be stored, by letting go of older ones.

mod clock;
mod index;
mod item;
mod log;
mod shard;

use std::collections::TryReserveError;
use std::hash::{BuildHasher, Hasher as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use clock::Clock;
pub use item::{Entry, Item};

use shard::Shard;

/// Seconds of the service's own clock. They start at [`FIRST_SECOND`], so that a second that has
/// certainly passed and is not 0 exists from the start.
pub type Seconds = u32;

/// What the service's clock says at its start.
pub const FIRST_SECOND: Seconds = 2;

/// An `expires_s` that has always passed.
pub const EXPIRED: Seconds = 1;

/// The hash function, seeded anew in every process so that nobody can choose colliding keys
/// beforehand.
type Hasher = foldhash::quality::RandomState;

/// A store's bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory for items and index together, in bytes.
    pub memory_bytes: usize,
    /// The largest item: key, value and what the store adds, in bytes.
    pub item_bytes: usize,
    /// How many threads will use the store at once; it decides the number of shards.
    pub threads: usize,
}

/// The largest [`Limits::item_bytes`] that may be asked for.
pub const MOST_ITEM_BYTES: usize = 1 << 28;

/// The smallest [`Limits::memory_bytes`] that may be asked for.
pub const LEAST_MEMORY_BYTES: usize = 1 << 20;

/// A store that can't be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MakeError {
    /// The memory bound is too small for anything.
    #[error("memory has to be at least {LEAST_MEMORY_BYTES} bytes")]
    LittleMemory,
    /// The largest item would not leave room for others.
    #[error("the largest item may take at most {most_bytes} bytes of this much memory")]
    LargeItem {
        /// What would be right.
        most_bytes: usize,
    },
    /// The system has no such memory.
    #[error("the system does not give {bytes} bytes of memory")]
    OutOfMemory {
        /// What was asked for.
        bytes: usize,
    },
}

/// An item that can't be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It is larger than [`Limits::item_bytes`].
    #[error("object too large for cache")]
    TooLarge,
}

/// What the shards have counted since the start, or since [`Store::reset_counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads that found an item.
    pub get_hits: u64,
    /// Reads that found none, or one that had expired.
    pub get_misses: u64,
    /// Reads and removals that met an expired item.
    pub get_expired: u64,
    /// Removals that found an item.
    pub delete_hits: u64,
    /// Removals that found none.
    pub delete_misses: u64,
    /// Stores asked for.
    pub cmd_set: u64,
    /// Items stored.
    pub stored: u64,
    /// Items that were let go to make room.
    pub evictions: u64,
    /// Of those, items never read.
    pub evicted_unfetched: u64,
    /// Of those, items read since they last came to the front.
    pub evicted_active: u64,
    /// Expired items whose memory was used again.
    pub reclaimed: u64,
    /// Expired items that had never been read.
    pub expired_unfetched: u64,
    /// Items refused because they are too large.
    pub store_too_large: u64,
}

/// What the store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Items, expired ones that nobody has met included.
    pub items: u64,
    /// Bytes in items.
    pub item_bytes: u64,
    /// Bytes in the indexes.
    pub index_bytes: u64,
    /// Bytes of memory in use for both, and for what waits to be reclaimed.
    pub touched_bytes: u64,
}

/// A key with its hash.
struct Hashed<'a> {
    tag: u32,
    shard: u32,
    key: &'a [u8],
}

impl<'a> Hashed<'a> {
    #[inline]
    fn of(hasher: &Hasher, key: &'a [u8]) -> Self {
        let mut state = hasher.build_hasher();
        state.write(key);
        let hash = state.finish();
        Self { tag: (hash >> 32) as u32, shard: hash as u32, key }
    }
}

/// A shard on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Cell(Mutex<Shard>);

impl Cell {
    #[inline]
    fn lock(&self) -> MutexGuard<'_, Shard> {
        // A shard is never left half-changed by a panic that its own code could cause; the worst
        // that a poisoned lock can mean is a wrong count.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The store.
#[derive(Debug)]
pub struct Store {
    shards: Box<[Cell]>,
    hasher: Hasher,
    limits: Limits,
}

/// A shard's log may be at most this long for its 32-bit positions.
const MOST_SHARD_BYTES: usize = item::GRANULE_BYTES << 31;

/// A shard holds at least this many of the largest items.
const LEAST_LARGE_ITEMS: usize = 8;

/// At most this many shards.
const MOST_SHARDS: usize = 1024;

impl Store {
    /// An empty store.
    ///
    /// # Errors
    /// When the limits make no sense or the system has not so much memory.
    pub fn new(limits: Limits) -> Result<Self, MakeError> {
        if limits.memory_bytes < LEAST_MEMORY_BYTES {
            return Err(MakeError::LittleMemory);
        }
        let most_bytes = (limits.memory_bytes / LEAST_LARGE_ITEMS).min(MOST_ITEM_BYTES);
        if limits.item_bytes > most_bytes {
            return Err(MakeError::LargeItem { most_bytes });
        }
        let least = limits.memory_bytes.div_ceil(MOST_SHARD_BYTES).next_power_of_two();
        let roomy = limits.memory_bytes / (LEAST_LARGE_ITEMS * limits.item_bytes.max(1 << 17));
        let wanted = (limits.threads.max(1) * 4).next_power_of_two();
        let count = wanted.min(previous_power_of_two(roomy)).clamp(least, MOST_SHARDS.max(least));
        let hasher = Hasher::default();
        let budget_bytes = limits.memory_bytes / count;
        let shards = (0..count)
            .map(|number| {
                Ok(Cell(Mutex::new(Shard::new(budget_bytes, number, count, hasher.clone())?)))
            })
            .collect::<Result<_, TryReserveError>>()
            .map_err(|_| MakeError::OutOfMemory { bytes: limits.memory_bytes })?;
        Ok(Self { shards, hasher, limits })
    }

    /// The bounds that it was made with.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How many shards it has.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    #[inline]
    fn shard(&self, hashed: &Hashed<'_>) -> MutexGuard<'_, Shard> {
        // The number of shards is a power of two, so the mask keeps the index within them.
        self.shards[hashed.shard as usize & (self.shards.len() - 1)].lock()
    }

    /// Reads the item of `key`, if there is one, under its shard's lock.
    #[inline]
    pub fn get<R>(
        &self,
        now_s: Seconds,
        key: &[u8],
        use_item: impl FnOnce(&Item<'_>) -> R,
    ) -> Option<R> {
        let hashed = Hashed::of(&self.hasher, key);
        let mut shard = self.shard(&hashed);
        shard.get(now_s, &hashed).map(|item| use_item(&item))
    }

    /// Whether an item of such a key and value may be stored at all.
    #[inline]
    pub fn fits(&self, key_bytes: usize, value_bytes: usize) -> bool {
        key_bytes <= usize::from(u8::MAX)
            && value_bytes.saturating_add(key_bytes + item::MOST_HEAD_BYTES)
                <= self.limits.item_bytes
    }

    /// Stores `entry`, replacing what its key had, and gives the store's unique number.
    ///
    /// # Errors
    /// When the entry is too large. What its key had is removed all the same, so that nobody reads
    /// an old value for a new one.
    #[inline]
    pub fn set(&self, now_s: Seconds, entry: &Entry<'_>) -> Result<u64, StoreError> {
        let hashed = Hashed::of(&self.hasher, entry.key);
        let mut shard = self.shard(&hashed);
        shard.counts.cmd_set += 1;
        let fits = self.fits(entry.key.len(), entry.value.len());
        let stored = if fits { shard.set(now_s, &hashed, entry) } else { None };
        stored.ok_or_else(|| {
            shard.counts.store_too_large += 1;
            shard.delete(now_s, &hashed);
            StoreError::TooLarge
        })
    }

    /// Notes a store that was refused before its value had come because it is too large.
    pub fn refuse(&self, now_s: Seconds, key: &[u8]) {
        let hashed = Hashed::of(&self.hasher, key);
        let mut shard = self.shard(&hashed);
        shard.counts.cmd_set += 1;
        shard.counts.store_too_large += 1;
        shard.delete(now_s, &hashed);
    }

    /// Removes the item of `key`; whether there was one.
    pub fn delete(&self, now_s: Seconds, key: &[u8]) -> bool {
        let hashed = Hashed::of(&self.hasher, key);
        let mut shard = self.shard(&hashed);
        let found = shard.delete(now_s, &hashed);
        match found {
            true => shard.counts.delete_hits += 1,
            false => shard.counts.delete_misses += 1,
        }
        found
    }

    /// Removes everything.
    pub fn clear(&self) {
        self.shards.iter().for_each(|cell| cell.lock().clear());
    }

    /// What has been counted.
    pub fn counts(&self) -> Counts {
        self.shards.iter().fold(Counts::default(), |sum, cell| sum.plus(&cell.lock().counts))
    }

    /// Starts counting again from zero.
    pub fn reset_counts(&self) {
        self.shards.iter().for_each(|cell| cell.lock().counts = Counts::default());
    }

    /// What it holds.
    pub fn holdings(&self) -> Holdings {
        self.shards.iter().fold(Holdings::default(), |sum, cell| {
            let shard = cell.lock();
            Holdings {
                items: sum.items + shard.items() as u64,
                item_bytes: sum.item_bytes + shard.live_bytes() as u64,
                index_bytes: sum.index_bytes + shard.index_bytes() as u64,
                touched_bytes: sum.touched_bytes + shard.touched_bytes() as u64,
            }
        })
    }
}

impl Counts {
    fn plus(&self, other: &Self) -> Self {
        Self {
            get_hits: self.get_hits + other.get_hits,
            get_misses: self.get_misses + other.get_misses,
            get_expired: self.get_expired + other.get_expired,
            delete_hits: self.delete_hits + other.delete_hits,
            delete_misses: self.delete_misses + other.delete_misses,
            cmd_set: self.cmd_set + other.cmd_set,
            stored: self.stored + other.stored,
            evictions: self.evictions + other.evictions,
            evicted_unfetched: self.evicted_unfetched + other.evicted_unfetched,
            evicted_active: self.evicted_active + other.evicted_active,
            reclaimed: self.reclaimed + other.reclaimed,
            expired_unfetched: self.expired_unfetched + other.expired_unfetched,
            store_too_large: self.store_too_large + other.store_too_large,
        }
    }
}

fn previous_power_of_two(number: usize) -> usize {
    1 << number.max(1).ilog2()
}
