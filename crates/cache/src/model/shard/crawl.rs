//! A walk that removes expired items, some entries at a time.
//!
//! Each shard keeps a lower bound of the seconds at which its items expire. A walk resets it and
//! computes it again from the items that it passes, so a shard in which nothing can have expired
//! costs one comparison.

use super::super::crawled::{CrawledPart, NEVER_S};
use super::super::item::{FETCHED, Head};
use super::super::prefetch::prefetch;
use super::{Shard, byte_of};

/// How many slots ahead of the visited one an item is prefetched.
const AHEAD: usize = 16;

impl Shard {
    /// Lowers the bound for an item that expires at `expires_s`; 0 is never.
    #[inline]
    pub(super) fn note_expiry(&mut self, expires_s: u32) {
        if expires_s != 0 && expires_s < self.first_expiry_s {
            self.first_expiry_s = expires_s;
        }
    }

    /// Visits about `max_slots` slots of the index from the tag `from` on, and removes what has
    /// expired. From the tag 0, which is the start, nothing is visited where nothing can have
    /// expired, unless the walk is `full`.
    pub(in crate::model) fn crawl(
        &mut self,
        now_s: u32,
        from: u32,
        max_slots: usize,
        full: bool,
    ) -> CrawledPart {
        let mut part = CrawledPart::default();
        if from == 0 {
            if !full && self.first_expiry_s > now_s {
                return part;
            }
            self.first_expiry_s = NEVER_S;
        }
        let mut slot = self.index.first_slot(from);
        let mut last = None;
        while let Some(entry) = self.index.entry(slot) {
            let tag = entry.map(|(tag, _)| tag);
            // All items of one tag belong together: a tag is what a walk continues from.
            if part.slots >= max_slots && (tag.is_none() || tag != last) {
                // Never 0: that is the start.
                let next = tag.unwrap_or_else(|| self.index.first_tag(slot).max(from));
                part.next = Some(next.max(1));
                break;
            }
            self.prefetch_head(slot + AHEAD);
            match entry {
                Some((tag, _)) if tag < from => slot += 1,
                // The entries after a removed one move to its slot and those that follow.
                Some((_, position)) if self.crawl_item(now_s, slot, position) => {
                    part.reclaimed += 1;
                    part.checked += 1;
                    part.slots += 1;
                }
                _ => {
                    part.checked += u64::from(tag.is_some());
                    part.slots += 1;
                    slot += 1;
                }
            }
            last = tag;
        }
        self.counts.crawler_checked += part.checked;
        self.counts.crawler_reclaimed += part.reclaimed;
        part
    }

    /// Removes the item in `slot` if it has expired; whether it had.
    fn crawl_item(&mut self, now_s: u32, slot: usize, position: u32) -> bool {
        let at = byte_of(position);
        let log = self.bytes(at);
        let head = Head::read(log);
        if !head.is_expired(log, now_s) {
            let expires_s = head.expires_s(log);
            self.note_expiry(expires_s);
            return false;
        }
        self.counts.expired_unfetched += u64::from(head.bits & FETCHED == 0);
        self.remove_at(slot, at, &head);
        true
    }

    #[inline]
    fn prefetch_head(&self, slot: usize) {
        if let Some(Some((_, position))) = self.index.entry(slot)
            && let Some(first) = self.bytes(byte_of(position)).first()
        {
            prefetch(first);
        }
    }
}
