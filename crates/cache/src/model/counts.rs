//! The counters of a store, and the totals of its contents.

/// The counters since the start, or since [`Store::reset_counts`](super::Store::reset_counts).
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
    /// Store requests.
    pub cmd_set: u64,
    /// Items stored.
    pub stored: u64,
    /// Evicted items.
    pub evictions: u64,
    /// Of those, items never read.
    pub evicted_unfetched: u64,
    /// Of those, items read since they last came to the front.
    pub evicted_active: u64,
    /// Expired items whose memory was used again.
    pub reclaimed: u64,
    /// Expired items that had never been read.
    pub expired_unfetched: u64,
    /// Items that walks have examined.
    pub crawler_checked: u64,
    /// Expired items that walks have removed.
    pub crawler_reclaimed: u64,
    /// Items refused because they are too large.
    pub store_too_large: u64,
    /// Items refused because there is no room.
    pub store_no_memory: u64,
    /// Requests to change an expiry.
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

/// The totals of a store's contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Items, including expired ones not yet found to be so.
    pub items: u64,
    /// Bytes in items.
    pub item_bytes: u64,
    /// Bytes in the indexes.
    pub index_bytes: u64,
    /// Bytes of memory in use for both, and for what waits to be reclaimed.
    pub touched_bytes: u64,
}

impl Counts {
    /// The sums of both.
    pub(super) fn plus(&self, other: &Self) -> Self {
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
            crawler_checked: self.crawler_checked + other.crawler_checked,
            crawler_reclaimed: self.crawler_reclaimed + other.crawler_reclaimed,
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

impl Holdings {
    /// The sums of both.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            items: self.items + other.items,
            item_bytes: self.item_bytes + other.item_bytes,
            index_bytes: self.index_bytes + other.index_bytes,
            touched_bytes: self.touched_bytes + other.touched_bytes,
        }
    }
}
