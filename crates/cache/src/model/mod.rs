//! The store: keys and values within a bound of memory. Data plane: it opens no socket, knows no
//! clock but the second handed in, and allocates only when its index grows.
//!
//! Keys are spread over shards by their hash; each shard is a hash table of eight-byte entries
//! (`index`) into rings of bytes (`log`) behind a lock of its own, which is held for one
//! operation. The memory bound covers both. There are no size classes: as long as a shard holds
//! anything, a new item that may be stored at all can be stored, by letting go of older ones.

mod ahead;
mod change;
mod clock;
mod evict;
mod ghost;
mod index;
mod item;
mod locked;
mod log;
mod loss;
mod operations;
mod prefetch;
mod reads;
mod shard;
mod shared;
mod sharing;
mod trial;

use std::collections::TryReserveError;
use std::hash::{BuildHasher, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{self, AtomicUsize};

pub use ahead::{Ahead, MOST_AHEAD};
pub use change::{Access, Change, Mark, Mode, Removed, Seen, Stored, Sum, Summed, Total};
pub use clock::Clock;
pub use evict::Policy;
pub use item::{CAS_MASK as MOST_CAS, Entry, Item};
pub use loss::{Loss, Losses, Powers, Witness};
pub use operations::Cursor;
pub use reads::{MOST_WANTED, Reads, Wanted};
pub use sharing::Sharing;

use locked::Locked;
use shard::Shard;
use shared::Shared;

/// Seconds of the service's own clock. They start at [`FIRST_SECOND`], so that a second that has
/// certainly passed and is not 0 exists from the start.
pub type Seconds = u32;

/// What the service's clock says at its start.
pub const FIRST_SECOND: Seconds = 2;

/// An `expires_s` that has always passed.
pub const EXPIRED: Seconds = 1;

/// The hash function, seeded anew in every process so that nobody can choose colliding keys
/// beforehand.
type Hasher = foldhash::quality::SeedableRandomState;

/// A store's bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory for items and index together, in bytes.
    pub memory_bytes: usize,
    /// The largest item: key, value and what the store adds, in bytes.
    pub item_bytes: usize,
    /// How many threads will use the store at once; it decides the number of shards.
    pub threads: usize,
    /// What else holds for the store.
    pub rules: Rules,
}

/// What a store does and doesn't do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether items are let go to make room for new ones; otherwise new ones are refused.
    pub evict: bool,
    /// Whether each store has a unique number; otherwise they are all 0.
    pub cas: bool,
    /// Which items are let go.
    pub policy: Policy,
    /// How threads share the store.
    pub sharing: Sharing,
    /// Has keys spread in the same way in every process, for tests that repeat exactly.
    pub seed: Option<u64>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            evict: true,
            cas: true,
            policy: Policy::default(),
            sharing: Sharing::default(),
            seed: None,
        }
    }
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
    /// A store for one thread is to be used by several.
    #[error("a single store is for one thread")]
    ManyThreads,
    /// A store of one part is to be larger than a part can be.
    #[error("a store with one lock can have at most {most_bytes} bytes")]
    OnePart {
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
    /// There is no room, and nothing may be let go to make it.
    #[error("out of memory storing object")]
    NoRoom,
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
    /// Items refused because there is no room.
    pub store_no_memory: u64,
    /// Changes of an expiry asked for.
    pub cmd_touch: u64,
    /// Changes of an expiry that found an item.
    pub touch_hits: u64,
    /// Changes of an expiry that found none.
    pub touch_misses: u64,
    /// Increments that found an item.
    pub incr_hits: u64,
    /// Increments that found none.
    pub incr_misses: u64,
    /// Decrements that found an item.
    pub decr_hits: u64,
    /// Decrements that found none.
    pub decr_misses: u64,
    /// Stores whose unique number was the right one.
    pub cas_hits: u64,
    /// Stores with a unique number that found no item.
    pub cas_misses: u64,
    /// Stores whose unique number was another.
    pub cas_badval: u64,
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
#[derive(Clone, Copy, Debug, Default)]
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

/// The store.
#[derive(Debug)]
pub struct Store {
    shards: Locked,
    hasher: Hasher,
    /// What the shards have to tell one another.
    shared: Arc<Shared>,
    limits: Limits,
    memory_bytes: AtomicUsize,
}

/// A shard's log may be at most this long for its 32-bit positions.
const MOST_SHARD_BYTES: usize = item::GRANULE_BYTES << 31;

/// A shard holds at least this many of the largest items.
const LEAST_LARGE_ITEMS: usize = 8;

/// A store for one thread has no smaller shards, if it has several.
const LEAST_SHARD_BYTES: usize = 64 << 20;

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
        let count = part_count(&limits)?;
        let hasher = match limits.rules.seed {
            None => Hasher::random(),
            Some(seed) => Hasher::with_seed(seed, foldhash::SharedSeed::global_fixed()),
        };
        let budget_bytes = limits.memory_bytes / count;
        // Where nothing is evicted, there is nothing to choose.
        let policy = if limits.rules.evict { limits.rules.policy } else { Policy::Fifo };
        let shared = Arc::new(Shared::new(policy.at_first() as u8));
        let shard = |number| {
            let (hasher, shared) = (hasher.clone(), Arc::clone(&shared));
            Shard::new(budget_bytes, number, count, hasher, limits.rules, shared)
        };
        let shards = (0..count).map(shard).collect::<Result<_, TryReserveError>>();
        let refused = |_| MakeError::OutOfMemory { bytes: limits.memory_bytes };
        let shards = Locked::new(shards.map_err(refused)?, limits.threads == 1);
        let memory_bytes = AtomicUsize::new(limits.memory_bytes);
        Ok(Self { shards, hasher, shared, limits, memory_bytes })
    }

    /// The bounds that it was made with.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How many shards it has.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// The policy by which items go now: under [`Policy::Adaptive`], the one of its three.
    pub fn policy_in_force(&self) -> Policy {
        self.shards.at(0, |shard| shard.policy())
    }

    /// Calls `act` with the shard that has the key's item.
    #[inline]
    fn at<R>(&self, hashed: &Hashed<'_>, act: impl FnOnce(&mut Shard) -> R) -> R {
        self.shards.at(self.shards.number(hashed.shard), act)
    }

    /// Reads the item of `key`, if there is one, under its shard's lock.
    #[inline]
    pub fn get<R>(
        &self,
        now_s: Seconds,
        key: &[u8],
        use_item: impl FnOnce(&Item<'_>) -> R,
    ) -> Option<R> {
        self.reads(now_s).get::<false, R>(key, use_item)
    }

    /// Whether an item of such a key and value may be stored at all.
    #[inline]
    pub fn fits(&self, key_bytes: usize, value_bytes: usize) -> bool {
        key_bytes <= usize::from(u8::MAX)
            && value_bytes.saturating_add(key_bytes + item::MOST_HEAD_BYTES)
                <= self.limits.item_bytes
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
            store_no_memory: self.store_no_memory + other.store_no_memory,
            cmd_touch: self.cmd_touch + other.cmd_touch,
            touch_hits: self.touch_hits + other.touch_hits,
            touch_misses: self.touch_misses + other.touch_misses,
            incr_hits: self.incr_hits + other.incr_hits,
            incr_misses: self.incr_misses + other.incr_misses,
            decr_hits: self.decr_hits + other.decr_hits,
            decr_misses: self.decr_misses + other.decr_misses,
            cas_hits: self.cas_hits + other.cas_hits,
            cas_misses: self.cas_misses + other.cas_misses,
            cas_badval: self.cas_badval + other.cas_badval,
        }
    }
}

/// How many parts a store has.
fn part_count(limits: &Limits) -> Result<usize, MakeError> {
    let Rules { sharing, .. } = limits.rules;
    let least = limits.memory_bytes.div_ceil(MOST_SHARD_BYTES).next_power_of_two();
    let roomy = limits.memory_bytes / (LEAST_LARGE_ITEMS * limits.item_bytes.max(1 << 17));
    if sharing == Sharing::Single && limits.threads > 1 {
        return Err(MakeError::ManyThreads);
    }
    if matches!(sharing, Sharing::Single | Sharing::GlobalLock) && least > 1 {
        return Err(MakeError::OnePart { most_bytes: MOST_SHARD_BYTES });
    }
    // One thread waits for no lock; its shards are there to keep their indexes' growth short. With
    // less memory, one shard wastes less of it where large items meet the ends of rings.
    let wanted = match (sharing.shards(limits.threads), limits.threads) {
        (wanted, 1) => wanted.min((limits.memory_bytes / LEAST_SHARD_BYTES).max(1)),
        (wanted, _) => wanted,
    };
    let wanted = previous_power_of_two(wanted);
    Ok(wanted.min(previous_power_of_two(roomy)).clamp(least, MOST_SHARDS.max(least)))
}

fn previous_power_of_two(number: usize) -> usize {
    1 << number.max(1).ilog2()
}
