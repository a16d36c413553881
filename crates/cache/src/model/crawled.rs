//! What a walk that removes expired items has done in one shard, and what bounds it.

/// The bound of a shard in which nothing expires.
pub(super) const NEVER_S: u32 = u32::MAX;

/// A part of a walk through one shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CrawledPart {
    /// The tag to continue from; `None` at the shard's end.
    pub(super) next: Option<u32>,
    /// Slots of the index that were visited, gaps included.
    pub(super) slots: usize,
    /// Items that were examined.
    pub(super) checked: u64,
    /// Items that were removed.
    pub(super) reclaimed: u64,
}
