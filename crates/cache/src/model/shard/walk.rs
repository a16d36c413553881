//! A walk through all items, some at a time.

use super::super::item::{Head, Item};
use super::{Shard, byte_of};

impl Shard {
    /// Shows at least `most` items, unless there are fewer, from the tag `from` on; expired ones
    /// are skipped. Returns the tag to go on from, or `None` at the end.
    pub(in crate::model) fn walk(
        &self,
        now_s: u32,
        from: u32,
        most: usize,
        show: &mut dyn FnMut(&Item<'_>),
    ) -> Option<u32> {
        let mut last = None;
        for (shown, (tag, position)) in self.index.entries_from(from).enumerate() {
            // All items of one tag belong together, because a tag is what one goes on from.
            if shown >= most && last != Some(tag) {
                return Some(tag);
            }
            last = Some(tag);
            let log = self.bytes(byte_of(position));
            let head = Head::read(log);
            if !head.is_expired(log, now_s) {
                show(&head.item(log));
            }
        }
        None
    }
}
