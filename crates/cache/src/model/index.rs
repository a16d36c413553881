//! Where each key's item is: a hash table whose entries are eight bytes and lie in hash order.
//!
//! An entry is 32 bits of hash (the tag) and 32 bits of position. The wanted place of a tag grows
//! with the tag, and entries are kept sorted by tag with gaps between them (Robin Hood hashing with
//! linear probing is the same order), so that
//! - a search for what isn't there ends at the first larger tag, not at the next gap;
//! - removing shifts a few entries back and leaves no tombstones;
//! - growing is one pass from left to right that needs no key, so the table may grow in small
//!   steps and stays more than two thirds full.

use super::prefetch::prefetch;

/// An entry: the tag in the upper half, the position plus one in the lower. Zero is a gap.
type Slot = u64;

/// The table.
#[derive(Debug)]
pub(super) struct Index {
    slots: Vec<Slot>,
    /// How many places tags are spread over; the slots beyond are for what the last ones push on.
    places: usize,
    count: usize,
}

/// The places of an empty table.
const FIRST_PLACES: usize = 1024;

/// Slots after the last place.
const SPARE_SLOTS: usize = 64;

/// A table grows by this part of itself: in small steps, because memory kept for a step that is
/// still to come holds nothing.
const GROWTH: usize = 8;

/// A table fuller than this grows first, in 1/1024.
const FULLEST: usize = 896;

impl Index {
    /// An empty table.
    pub(super) fn new() -> Self {
        Self { slots: vec![0; FIRST_PLACES + SPARE_SLOTS], places: FIRST_PLACES, count: 0 }
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// How much memory the table takes.
    pub(super) fn bytes(&self) -> usize {
        self.slots.len() * size_of::<Slot>()
    }

    #[inline]
    fn place(&self, tag: u32) -> usize {
        ((u64::from(tag) * self.places as u64) >> 32) as usize
    }

    /// The slot of an entry with `tag` whose position `is_it` accepts.
    #[inline]
    pub(super) fn find(&self, tag: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<usize> {
        let first = self.place(tag);
        for (offset, slot) in self.slots[first..].iter().enumerate() {
            let found = tag_of(*slot);
            if *slot == 0 || found > tag {
                return None;
            }
            if found == tag && is_it(position_of(*slot)) {
                return Some(first + offset);
            }
        }
        None
    }

    /// Asks for the memory in which an entry with `tag` would be.
    #[inline]
    pub(super) fn prefetch(&self, tag: u32) {
        prefetch(&self.slots[self.place(tag)]);
    }

    /// The position in `slot`, which [`Index::find`] returned.
    #[inline]
    pub(super) fn position(&self, slot: usize) -> u32 {
        position_of(self.slots[slot])
    }

    /// Changes the position in `slot`, which [`Index::find`] returned.
    #[inline]
    pub(super) fn set_position(&mut self, slot: usize, position: u32) {
        self.slots[slot] = entry(tag_of(self.slots[slot]), position);
    }

    /// Whether the next [`Index::insert`] has to make the table larger first.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.count * 1024 >= self.places * FULLEST
    }

    /// How much memory the table will take once it has grown, about.
    pub(super) fn grown_bytes(&self) -> usize {
        self.bytes() + self.bytes() / GROWTH + size_of::<Slot>()
    }

    /// Adds an entry. The caller has made sure that no entry of the same key is there.
    pub(super) fn insert(&mut self, tag: u32, position: u32) {
        if self.is_full() {
            self.grow();
        }
        while !self.try_insert(tag, position) {
            self.grow();
        }
        self.count += 1;
    }

    fn try_insert(&mut self, tag: u32, position: u32) -> bool {
        let mut at = self.place(tag);
        while self.slots.get(at).is_some_and(|slot| *slot != 0 && tag_of(*slot) <= tag) {
            at += 1;
        }
        let Some(gap) = self.slots[at..].iter().position(|slot| *slot == 0) else {
            return false;
        };
        self.slots.copy_within(at..at + gap, at + 1);
        self.slots[at] = entry(tag, position);
        true
    }

    /// Removes the entry in `slot`, which [`Index::find`] returned.
    pub(super) fn remove(&mut self, slot: usize) {
        // Entries that were pushed on by this one move back by one, until one is where it wants.
        let mut end = slot + 1;
        while end < self.slots.len()
            && self.slots[end] != 0
            && self.place(tag_of(self.slots[end])) < end
        {
            end += 1;
        }
        self.slots.copy_within(slot + 1..end, slot);
        self.slots[end - 1] = 0;
        self.count -= 1;
    }

    /// The first slot in which an entry with `tag` or a larger one can be.
    #[inline]
    pub(super) fn first_slot(&self, tag: u32) -> usize {
        self.place(tag)
    }

    /// The smallest tag whose wanted place is `slot` or a later one; the largest tag where there
    /// is no such place.
    pub(super) fn first_tag(&self, slot: usize) -> u32 {
        let tag = ((slot as u64) << 32).div_ceil(self.places as u64);
        u32::try_from(tag).unwrap_or(u32::MAX)
    }

    /// The tag and the position in `slot`, or a gap; `None` after the last slot.
    #[inline]
    pub(super) fn entry(&self, slot: usize) -> Option<Option<(u32, u32)>> {
        let slot = *self.slots.get(slot)?;
        Some((slot != 0).then(|| (tag_of(slot), position_of(slot))))
    }

    /// The positions of the entries with the tag `from` and above, in the order of their tags, each
    /// with its tag.
    pub(super) fn entries_from(&self, from: u32) -> impl Iterator<Item = (u32, u32)> {
        let first = self.place(from);
        self.slots[first..]
            .iter()
            .filter(move |slot| **slot != 0 && tag_of(**slot) >= from)
            .map(|slot| (tag_of(*slot), position_of(*slot)))
    }

    /// Empties the table and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.slots.fill(0);
        self.count = 0;
    }

    /// Makes a table an eighth larger. Entries are met in the order of their tags, so each goes
    /// to its wanted place or right behind the one before.
    fn grow(&mut self) {
        let mut places = self.places + self.places / GROWTH;
        'larger: loop {
            let mut slots: Vec<Slot> = vec![0; places + SPARE_SLOTS];
            let mut next = 0;
            for slot in self.slots.iter().filter(|slot| **slot != 0) {
                let place = ((u64::from(tag_of(*slot)) * places as u64) >> 32) as usize;
                let at = place.max(next);
                if at >= slots.len() {
                    places += places / GROWTH;
                    continue 'larger;
                }
                slots[at] = *slot;
                next = at + 1;
            }
            self.slots = slots;
            self.places = places;
            return;
        }
    }
}

#[inline]
fn entry(tag: u32, position: u32) -> Slot {
    u64::from(tag) << 32 | (u64::from(position) + 1)
}

#[inline]
fn tag_of(slot: Slot) -> u32 {
    (slot >> 32) as u32
}

#[inline]
fn position_of(slot: Slot) -> u32 {
    (slot as u32).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::Index;
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    proptest! {
        /// Compared with an ordered map of the same tags; few tags, so that they collide often.
        #[test]
        fn the_table_is_a_map(
            steps in prop::collection::vec((any::<bool>(), 0..600_u32, any::<bool>()), 1..4000),
        ) {
            let mut index = Index::new();
            let mut map: BTreeMap<(u32, u32), ()> = BTreeMap::new();
            for (step, (add, number, low)) in steps.into_iter().enumerate() {
                let tag = if low { number % 7 } else { number.wrapping_mul(0x9e37_79b9) };
                if add {
                    index.insert(tag, step as u32);
                    map.insert((tag, step as u32), ());
                } else if let Some((&(tag, position), ())) = map.range((tag, 0)..).next() {
                    let slot = index.find(tag, |found| found == position).expect("is there");
                    prop_assert_eq!(index.position(slot), position);
                    index.remove(slot);
                    map.remove(&(tag, position));
                    prop_assert_eq!(index.find(tag, |found| found == position), None);
                }
                prop_assert_eq!(index.len(), map.len());
            }
            for (tag, position) in map.keys() {
                prop_assert!(index.find(*tag, |found| found == *position).is_some());
            }
            let tags: Vec<_> = index.slots.iter().filter(|slot| **slot != 0).collect();
            prop_assert!(tags.is_sorted_by_key(|slot| **slot >> 32));
        }
    }

    #[test]
    fn a_large_table_stays_dense() {
        let mut index = Index::new();
        let count = 100_000_u32;
        for number in 0..count {
            index.insert(number.wrapping_mul(0x9e37_79b9) ^ number.rotate_left(9), number);
        }
        let bytes_per_entry = index.bytes() as f64 / f64::from(count);
        assert!((9.0..11.6).contains(&bytes_per_entry), "{bytes_per_entry}");
    }
}
