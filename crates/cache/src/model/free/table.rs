//! Where each key's item is, for readers who hold no lock: a hash table of atomic entries in the
//! order of their tags, as in `model/index.rs`, but of a fixed size.
//!
//! An entry is 32 bits of hash (the tag), two marks, and 30 bits of the item's place plus one; zero
//! is a gap. Readers set marks, and nothing else: an entry that has become another one meanwhile
//! stays what it is.

use super::atomic::Ordering::Relaxed;
use super::atomic::{AtomicU32, AtomicU64};

/// The item has been read since it was stored.
pub(super) const FETCHED: u64 = 1 << 31;

/// The item has been read since the tail last passed it.
pub(super) const REFERENCED: u64 = 1 << 30;

const PLACE_BITS: u64 = REFERENCED - 1;

/// Slots after the last place, for what the last ones push on.
const SPARE_SLOTS: usize = 256;

/// A table fuller than this takes no more, in 1/1024.
const FULLEST: usize = 896;

/// The entries, and beside each the second in which its item was last read.
#[derive(Debug)]
pub(super) struct Table {
    slots: Box<[AtomicU64]>,
    seconds: Box<[AtomicU32]>,
    places: usize,
}

/// An entry that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) slot: usize,
    pub(super) entry: u64,
    /// When its item was last read.
    pub(super) second: u32,
}

impl Found {
    /// Where its item is.
    pub(super) fn place(&self) -> usize {
        place_of(self.entry)
    }
}

impl Table {
    /// A table of about `bytes`; `None` when there is no such memory.
    pub(super) fn new(bytes: usize) -> Option<Self> {
        let places = (bytes / Self::ENTRY_BYTES).max(64);
        let count = places + SPARE_SLOTS;
        let slots = bytemuck::allocation::try_zeroed_slice_box(count).ok()?;
        let seconds = bytemuck::allocation::try_zeroed_slice_box(count).ok()?;
        Some(Self { slots, seconds, places })
    }

    const ENTRY_BYTES: usize = size_of::<u64>() + size_of::<u32>();

    pub(super) fn bytes(&self) -> usize {
        self.slots.len() * Self::ENTRY_BYTES
    }

    /// Whether so many entries are as many as it takes.
    pub(super) fn is_full(&self, count: usize) -> bool {
        count * 1024 >= self.places * FULLEST
    }

    #[inline]
    fn wanted(&self, tag: u32) -> usize {
        ((u64::from(tag) * self.places as u64) >> 32) as usize
    }

    /// The first entry of `tag`, from the slot `from` on, which is 0 for the first of all.
    #[inline]
    pub(super) fn find(&self, tag: u32, from: usize) -> Option<Found> {
        let first = self.wanted(tag).max(from);
        for (slot, entry) in self.slots.iter().enumerate().skip(first) {
            let entry = entry.load(Relaxed);
            if entry == 0 || tag_of(entry) > tag {
                return None;
            }
            if tag_of(entry) == tag {
                return Some(Found { slot, entry, second: self.seconds[slot].load(Relaxed) });
            }
        }
        None
    }

    /// Notes that an item was read, if its entry is still the one that was found. Should another
    /// have taken its slot at this very moment, that one has its second: a mark and no more.
    #[inline]
    pub(super) fn note(&self, found: &Found, now_s: u32) {
        let marked = found.entry | FETCHED | REFERENCED;
        if found.entry != marked {
            let slot = &self.slots[found.slot];
            let _ = slot.compare_exchange(found.entry, marked, Relaxed, Relaxed);
        }
        if found.second != now_s {
            self.seconds[found.slot].store(now_s, Relaxed);
        }
    }

    /// Adds an entry; whether there was a slot for it.
    pub(super) fn insert(&self, tag: u32, place: usize, marks: u64, second: u32) -> bool {
        let mut at = self.wanted(tag);
        let is_before = |entry: u64| entry != 0 && tag_of(entry) <= tag;
        while self.slots.get(at).is_some_and(|slot| is_before(slot.load(Relaxed))) {
            at += 1;
        }
        let Some(gap) = self.slots[at..].iter().position(|slot| slot.load(Relaxed) == 0) else {
            return false;
        };
        (at..at + gap).rev().for_each(|slot| self.copy(slot, slot + 1));
        self.slots[at].store(entry_of(tag, place, marks), Relaxed);
        self.seconds[at].store(second, Relaxed);
        true
    }

    /// Changes an entry where it is.
    pub(super) fn set(&self, slot: usize, place: usize, marks: u64, second: u32) {
        let tag = tag_of(self.slots[slot].load(Relaxed));
        self.slots[slot].store(entry_of(tag, place, marks), Relaxed);
        self.seconds[slot].store(second, Relaxed);
    }

    /// Removes an entry.
    pub(super) fn remove(&self, slot: usize) {
        // Entries that were pushed on by this one move back by one, until one is where it wants.
        let mut at = slot;
        while let Some(next) = self.slots.get(at + 1).map(|next| next.load(Relaxed))
            && next != 0
            && self.wanted(tag_of(next)) <= at
        {
            self.copy(at + 1, at);
            at += 1;
        }
        self.slots[at].store(0, Relaxed);
    }

    fn copy(&self, from: usize, to: usize) {
        self.slots[to].store(self.slots[from].load(Relaxed), Relaxed);
        self.seconds[to].store(self.seconds[from].load(Relaxed), Relaxed);
    }

    /// The entries with the tag `from` and above, in the order of their tags.
    pub(super) fn entries_from(&self, from: u32) -> impl Iterator<Item = (u32, Found)> {
        let first = self.wanted(from);
        let entries = self.slots.iter().enumerate().skip(first);
        entries.map(|(slot, entry)| (slot, entry.load(Relaxed))).filter_map(move |(slot, entry)| {
            let second = self.seconds[slot].load(Relaxed);
            let wanted = entry != 0 && tag_of(entry) >= from;
            wanted.then_some((tag_of(entry), Found { slot, entry, second }))
        })
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.slots.iter().for_each(|slot| slot.store(0, Relaxed));
    }
}

#[inline]
fn entry_of(tag: u32, place: usize, marks: u64) -> u64 {
    u64::from(tag) << 32 | marks | (place as u64 + 1)
}

#[inline]
fn tag_of(entry: u64) -> u32 {
    (entry >> 32) as u32
}

#[inline]
fn place_of(entry: u64) -> usize {
    (entry & PLACE_BITS).wrapping_sub(1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    proptest! {
        /// Compared with an ordered set; few tags, so that they collide often.
        #[test]
        fn the_table_is_a_map(steps in prop::collection::vec((any::<bool>(), 0..90_u32), 1..600)) {
            let table = Table::new(200 * Table::ENTRY_BYTES).expect("memory");
            let mut set = BTreeSet::new();
            for (place, (adds, number)) in steps.into_iter().enumerate() {
                let tag = number / 3 * 0x0600_0000;
                if adds && !table.is_full(set.len()) {
                    prop_assert!(table.insert(tag, place, FETCHED, 7));
                    set.insert((tag, place));
                } else if let Some(found) = table.find(tag, 0) {
                    prop_assert!(set.remove(&(tag, found.place())));
                    table.remove(found.slot);
                }
                let entries: Vec<_> = table.entries_from(0).collect();
                prop_assert!(entries.is_sorted_by_key(|(tag, _)| *tag));
                let all = entries.iter().map(|(tag, found)| (*tag, found.place()));
                prop_assert_eq!(all.collect::<BTreeSet<_>>(), set.clone());
                for (tag, _) in &set {
                    prop_assert!(table.find(*tag, 0).is_some_and(|found| found.second == 7));
                }
            }
        }
    }

    #[test]
    fn a_note_on_an_entry_that_has_become_another_is_lost() {
        let table = Table::new(6400).expect("memory");
        assert!(table.insert(5, 1, 0, 1));
        let found = table.find(5, 0).expect("is there");
        table.set(found.slot, 2, 0, 1);
        table.note(&found, 1);
        let now = table.find(5, 0).expect("is there");
        assert_eq!((now.place(), now.entry & (FETCHED | REFERENCED)), (2, 0));
        table.note(&now, 9);
        let noted = table.find(5, 0).expect("is there");
        assert_eq!((noted.entry, noted.second), (now.entry | FETCHED | REFERENCED, 9));
    }
}
