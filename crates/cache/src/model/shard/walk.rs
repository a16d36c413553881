//! A walk through all items, some at a time.

use super::super::item::{DEAD, Head, Item};
use super::{MAIN, Shard, byte_of};

/// The age of the oldest item is looked for among this many of a ring's oldest places.
const MAX_DEAD: usize = 256;

impl Shard {
    /// The time since the main ring's oldest item was last read, or stored; 0 where there is none,
    /// or only removed ones are met.
    pub(in crate::model) fn oldest_age_s(&self, now_s: u32) -> u32 {
        let places = self.logs[MAIN].oldest().into_iter().flat_map(|first| {
            std::iter::successors(Some(first), |at| {
                let head = Head::read(self.bytes(*at));
                self.logs[MAIN].after(at + head.stored_bytes())
            })
        });
        let heads = places.take(MAX_DEAD).map(|at| Head::read(self.bytes(at)));
        let mut live = heads.filter(|head| head.bits & DEAD == 0);
        live.next().map_or(0, |head| now_s.saturating_sub(head.accessed_s()))
    }

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
