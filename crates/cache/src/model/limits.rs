//! The bounds and rules of a store, and the errors of exceeding them.

use super::item::GRANULE_BYTES;
use super::policy::Policy;
use super::sharing::Sharing;

/// A store's bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory for items and index together, in bytes.
    pub memory_bytes: usize,
    /// The largest item: key, value and what the store adds, in bytes.
    pub item_bytes: usize,
    /// The threads that use the store at once; they decide the number of shards.
    pub threads: usize,
    /// The rules beside the bounds.
    pub rules: Rules,
}

/// The rules of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether items are evicted to make room for new ones; otherwise new ones are refused.
    pub evict: bool,
    /// Whether each store has a unique number; otherwise they are all 0.
    pub cas: bool,
    /// The eviction policy.
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

/// The largest [`Limits::item_bytes`] that is accepted.
pub const MAX_ITEM_BYTES: usize = 1 << 28;

/// The smallest [`Limits::memory_bytes`] that is accepted.
pub const MIN_MEMORY_BYTES: usize = 1 << 20;

/// A store that can't be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MakeError {
    /// The memory bound is too small for anything.
    #[error("memory has to be at least {MIN_MEMORY_BYTES} bytes")]
    LittleMemory,
    /// The largest item would not leave room for others.
    #[error("the largest item may take at most {most_bytes} bytes of this much memory")]
    LargeItem {
        /// The largest value that is accepted.
        most_bytes: usize,
    },
    /// A store for one thread is to be used by several.
    #[error("a single store is for one thread")]
    ManyThreads,
    /// A store of one part is to be larger than a part can be.
    #[error("a store with one lock can have at most {most_bytes} bytes")]
    OnePart {
        /// The largest value that is accepted.
        most_bytes: usize,
    },
    /// The system has no such memory.
    #[error("the system does not give {bytes} bytes of memory")]
    OutOfMemory {
        /// The bytes requested.
        bytes: usize,
    },
}

/// An item that can't be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It is larger than [`Limits::item_bytes`].
    #[error("object too large for cache")]
    TooLarge,
    /// There is no room, and nothing may be evicted to make it.
    #[error("out of memory storing object")]
    NoRoom,
}

/// A shard's log may be at most this long for its 32-bit positions.
pub(super) const MAX_SHARD_BYTES: usize = GRANULE_BYTES << 31;

/// A shard holds at least this many of the largest items, as memcached's memory does.
pub(super) const MIN_LARGE_ITEMS: usize = 2;

/// A store has several shards only where each has room for this many of the largest items.
pub(super) const ROOMY_ITEMS: usize = 8;
