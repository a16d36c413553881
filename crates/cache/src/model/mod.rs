//! The store: keys and values within a bound of memory. Data plane: it opens no socket, knows no
//! clock but the second handed in, and allocates only when its index grows.
//!
//! Keys are spread over shards by their hash; each shard is a hash table of eight-byte entries
//! (`index`) into rings of bytes (`log`) behind a lock of its own, which is held for one
//! operation. The memory bound covers both. There are no size classes: as long as a shard holds
//! anything, a new item that may be stored at all can be stored, by evicting older ones.

mod batched_reads;
mod clock;
mod counts;
mod crawled;
mod eviction;
mod ghost;
mod index;
mod item;
mod key_hash;
mod limits;
mod locked;
mod log;
mod operations;
mod policy;
mod prefetch;
mod prefetch_keys;
mod requests;
mod shard;
mod shared;
mod sharing;
mod simulation;
mod store;

/// The atomics of [`shared`], whose test puts loom's in their place.
use std::sync::atomic;

pub use batched_reads::{Batch, MAX_BATCH, Reads};
pub use clock::{Clock, EXPIRED, FIRST_SECOND, Seconds};
pub use counts::{Counts, Holdings};
pub use eviction::{Eviction, EvictionObserver, EvictionStats, Log2Histogram};
pub use item::{CAS_MASK as MAX_CAS, Entry, Item};
pub use limits::{Limits, MAX_ITEM_BYTES, MIN_MEMORY_BYTES, MakeError, Rules, StoreError};
pub use operations::{Crawled, Cursor};
pub use policy::Policy;
pub use prefetch_keys::{MAX_PREFETCH, Prefetch};
pub use requests::{Access, Change, Mark, Mode, Removed, Seen, Stored, Sum, Summed, Total};
pub use sharing::Sharing;
pub use store::Store;
