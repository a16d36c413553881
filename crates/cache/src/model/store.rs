//! A store's construction, its shards, and the plain read. The other operations are in
//! `operations`.

use std::collections::TryReserveError;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use super::clock::Seconds;
use super::item::{Item, MAX_HEAD_BYTES};
use super::key_hash::{Hashed, Hasher};
use super::limits::{
    Limits, MAX_ITEM_BYTES, MAX_SHARD_BYTES, MIN_LARGE_ITEMS, MIN_MEMORY_BYTES, MakeError,
    ROOMY_ITEMS, Rules,
};
use super::locked::Locked;
use super::policy::Policy;
use super::shard::Shard;
use super::shared::Shared;
use super::sharing::Sharing;

/// The store.
#[derive(Debug)]
pub struct Store {
    pub(super) shards: Locked,
    pub(super) hasher: Hasher,
    /// The cells that the shards share.
    pub(super) shared: Arc<Shared>,
    pub(super) limits: Limits,
    pub(super) memory_bytes: AtomicUsize,
}

/// A store for one thread has no smaller shards, if it has several.
const MIN_SHARD_BYTES: usize = 64 << 20;

/// At most this many shards.
const MAX_SHARDS: usize = 1024;

impl Store {
    /// An empty store.
    ///
    /// # Errors
    /// When the limits contradict each other or the memory is not available.
    pub fn new(limits: Limits) -> Result<Self, MakeError> {
        if limits.memory_bytes < MIN_MEMORY_BYTES {
            return Err(MakeError::LittleMemory);
        }
        let most_bytes = (limits.memory_bytes / MIN_LARGE_ITEMS).min(MAX_ITEM_BYTES);
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

    /// Returns the limits that it was made with.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the number of shards.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Returns the policy in force: under [`Policy::Adaptive`], the one of its three.
    pub fn policy_in_force(&self) -> Policy {
        self.shards.at(0, |shard| shard.policy())
    }

    /// Calls `act` with the shard that has the key's item.
    #[inline]
    pub(super) fn at<R>(&self, hashed: &Hashed<'_>, act: impl FnOnce(&mut Shard) -> R) -> R {
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
            && value_bytes.saturating_add(key_bytes + MAX_HEAD_BYTES) <= self.limits.item_bytes
    }
}

/// How many parts a store has.
fn part_count(limits: &Limits) -> Result<usize, MakeError> {
    let Rules { sharing, .. } = limits.rules;
    let least = limits.memory_bytes.div_ceil(MAX_SHARD_BYTES).next_power_of_two();
    let roomy = limits.memory_bytes / (ROOMY_ITEMS * limits.item_bytes.max(1 << 17));
    if sharing == Sharing::Single && limits.threads > 1 {
        return Err(MakeError::ManyThreads);
    }
    if matches!(sharing, Sharing::Single | Sharing::GlobalLock) && least > 1 {
        return Err(MakeError::OnePart { most_bytes: MAX_SHARD_BYTES });
    }
    // One thread waits for no lock; its shards are there to keep their indexes' growth short. With
    // less memory, one shard wastes less of it where large items meet the ends of rings.
    let wanted = match (sharing.shards(limits.threads), limits.threads) {
        (wanted, 1) => wanted.min((limits.memory_bytes / MIN_SHARD_BYTES).max(1)),
        (wanted, _) => wanted,
    };
    let wanted = previous_power_of_two(wanted);
    Ok(wanted.min(previous_power_of_two(roomy)).clamp(least, MAX_SHARDS.max(least)))
}

fn previous_power_of_two(number: usize) -> usize {
    1 << number.max(1).ilog2()
}
