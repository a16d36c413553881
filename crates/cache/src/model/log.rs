//! A ring of bytes: items are appended at the head and leave at the tail, so there are no size
//! classes and no fragments that an item of another size could not use.
//!
//! An item never crosses the end of the ring; when it does not fit there the head starts again at
//! zero and `lap_end` remembers where the tail has to follow. Memory is reserved at once but only
//! touched as the head first reaches it.

use std::collections::TryReserveError;

/// The ring. Positions are offsets from its start.
#[derive(Debug, Default)]
pub(super) struct Log {
    bytes: Vec<u8>,
    /// The head may not pass this; it shrinks when the index needs the memory.
    capacity: usize,
    head: usize,
    tail: usize,
    /// Where the head turned back to zero, while the tail is still before that point.
    lap_end: Option<usize>,
    /// Bytes of items that have come to the head so far.
    taken: u64,
}

/// The ring's memory is touched in steps of this size.
pub(super) const STEP_BYTES: usize = 1 << 18;

impl Log {
    /// A ring of `capacity` bytes.
    pub(super) fn new(capacity: usize) -> Result<Self, TryReserveError> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(capacity)?;
        Ok(Self { bytes, capacity, head: 0, tail: 0, lap_end: None, taken: 0 })
    }

    /// The bytes from `at` on.
    #[inline]
    pub(super) fn at(&self, at: usize) -> &[u8] {
        &self.bytes[at..]
    }

    /// The bytes from `at` on, to change.
    #[inline]
    pub(super) fn at_mut(&mut self, at: usize) -> &mut [u8] {
        &mut self.bytes[at..]
    }

    /// Where the oldest item is, unless the ring is empty.
    #[inline]
    pub(super) fn oldest(&self) -> Option<usize> {
        (self.lap_end.is_some() || self.tail < self.head).then_some(self.tail)
    }

    /// The start of the item after the one that ends at `end`, unless that was the newest.
    pub(super) fn after(&self, end: usize) -> Option<usize> {
        match self.lap_end {
            Some(lap_end) if end == lap_end => (self.head > 0).then_some(0),
            // Between the tail and the end of the lap, or already in the new lap.
            Some(_) => (end != self.head).then_some(end),
            None => (end < self.head).then_some(end),
        }
    }

    /// How many bytes lie between the tail and the head.
    pub(super) fn span(&self) -> usize {
        match self.lap_end {
            Some(lap_end) => lap_end - self.tail + self.head,
            None => self.head - self.tail,
        }
    }

    /// How many bytes of items have come to the head so far.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Counts them on from what has come to another ring.
    pub(super) fn go_on_from(&mut self, other: &Self) {
        self.taken = other.taken;
    }

    /// How many had come when the oldest item came.
    pub(super) fn oldest_taken(&self) -> u64 {
        self.taken - self.span() as u64
    }

    /// How many bytes the ring may hold.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// How much memory the ring has touched.
    pub(super) fn touched_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Takes `count` bytes at the head, when they are free without moving the tail.
    pub(super) fn append(&mut self, count: usize) -> Option<usize> {
        match self.lap_end {
            Some(_) if self.head + count > self.tail || self.ends_before(count) => return None,
            None if self.head + count > self.capacity => {
                if count > self.tail {
                    return None;
                }
                self.lap_end = Some(self.head);
                self.head = 0;
            }
            _ => {}
        }
        let at = self.head;
        self.head += count;
        self.taken += count as u64;
        if self.head > self.bytes.len() {
            // Growing within the reserved capacity moves nothing.
            let touched = self.head.next_multiple_of(STEP_BYTES).min(self.capacity.max(self.head));
            self.bytes.resize(touched, 0);
        }
        Some(at)
    }

    /// Whether `count` more bytes would go over the capacity, although what is here would fit below
    /// it: the capacity has shrunk, and what lies beyond is to be left behind in this lap. As
    /// little as an item is left there by then, so little has to go at once.
    fn ends_before(&self, count: usize) -> bool {
        self.head <= self.capacity
            && self.head + count > self.capacity
            && self.span() <= self.capacity
    }

    /// Frees the oldest `count` bytes: one item.
    pub(super) fn drop_oldest(&mut self, count: usize) {
        self.tail += count;
        match self.lap_end {
            Some(lap_end) if self.tail == lap_end => {
                self.lap_end = None;
                self.tail = 0;
                self.release();
            }
            None if self.tail == self.head => {
                self.head = 0;
                self.tail = 0;
                self.release();
            }
            _ => debug_assert!(self.tail <= self.lap_end.unwrap_or(self.head)),
        }
    }

    /// Moves the oldest item, of `count` bytes, to the head: frees it there and takes it here.
    /// Returns its new position, or `None` when it can't be moved, and then nothing has changed.
    /// With `may_lose` it stays where it is rather than exceed a shrunk capacity.
    pub(super) fn move_oldest(&mut self, count: usize, may_lose: bool) -> Option<usize> {
        let from = self.tail;
        let fits_here = match self.lap_end {
            // The free gap lies just before the tail, so the item may slide over itself.
            Some(_) if may_lose && self.ends_before(count) => return None,
            Some(_) => true,
            None => self.head + count <= self.capacity,
        };
        if !fits_here && count > self.tail {
            return None;
        }
        if fits_here {
            let to = self.head;
            let end = to + count;
            if end > self.bytes.len() {
                self.bytes.resize(end, 0);
            }
            self.bytes.copy_within(from..from + count, to);
            self.head = end;
            self.taken += count as u64;
            self.drop_oldest(count);
            // An emptied ring starts at zero again, and so would lose what was just moved.
            debug_assert!(self.oldest().is_some());
            return Some(to);
        }
        let to = self.append(count)?;
        self.bytes.copy_within(from..from + count, to);
        self.drop_oldest(count);
        Some(to)
    }

    /// Reserves memory for a ring of `capacity` bytes; what is there may move.
    pub(super) fn reserve(&mut self, capacity: usize) -> Result<(), TryReserveError> {
        self.bytes.try_reserve_exact(capacity.saturating_sub(self.bytes.len()))
    }

    /// Lets the head go no further than `capacity`. What lies beyond leaves with the tail.
    pub(super) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.release();
    }

    /// Empties the ring and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.head = 0;
        self.tail = 0;
        self.lap_end = None;
    }

    /// Gives memory back that lies beyond the capacity, once nothing is there any more.
    fn release(&mut self) {
        if self.lap_end.is_none() && self.bytes.len() > self.capacity && self.head <= self.capacity
        {
            self.bytes.truncate(self.capacity);
            self.bytes.shrink_to(self.capacity);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Log;
    use std::collections::VecDeque;

    use proptest::prelude::*;

    #[test]
    fn the_head_turns_back_only_behind_the_tail() {
        let mut log = Log::new(100).unwrap();
        assert_eq!(log.append(60), Some(0));
        assert_eq!(log.append(30), Some(60));
        assert_eq!(log.append(20), None);
        log.drop_oldest(60);
        assert_eq!(log.append(20), Some(0));
        assert_eq!(log.append(50), None);
        assert_eq!(log.oldest(), Some(60));
        log.drop_oldest(30);
        assert_eq!(log.oldest(), Some(0));
        assert_eq!(log.append(80), Some(20));
        assert_eq!(log.append(1), None);
    }

    #[test]
    fn a_shorter_ring_gives_its_memory_back_after_a_lap_and_loses_little_at_once() {
        let mut log = Log::new(100_000).unwrap();
        let step = |log: &mut Log, moves: bool| {
            let (mut dropped, mut moved) = (0, !moves);
            while log.append(10).is_none() {
                if !moved && log.move_oldest(10, true).is_some() {
                    moved = true;
                    continue;
                }
                log.drop_oldest(10);
                dropped += 1;
            }
            dropped
        };
        (0..25_000).for_each(|_| _ = step(&mut log, false));
        assert_eq!(log.touched_bytes(), 100_000);
        log.set_capacity(90_000);
        for number in 0..20_000 {
            // As a shard does: twice as much goes with each store until all fits.
            for _ in 0..if log.span() > log.capacity() { 2 } else { 0 } {
                log.drop_oldest(10);
            }
            let dropped = step(&mut log, number % 3 == 0);
            assert!(dropped <= 2, "{dropped} at once");
        }
        assert!(log.touched_bytes() <= 90_000, "{} bytes", log.touched_bytes());
    }

    proptest! {
        /// Items keep their bytes and their order through any mix of appending, dropping and
        /// moving, compared with a plain queue.
        #[test]
        fn the_ring_is_a_queue(steps in prop::collection::vec((0..5_u8, 1..40_usize), 1..300)) {
            let mut log = Log::new(200).unwrap();
            let mut queue: VecDeque<(usize, usize, u8)> = VecDeque::new();
            let mut stamp = 0_u8;
            for (step, size) in steps {
                stamp = stamp.wrapping_add(1);
                match step {
                    0 => if let Some(at) = log.append(size) {
                        log.at_mut(at)[..size].fill(stamp);
                        queue.push_back((at, size, stamp));
                    },
                    1 => if let Some((_, count, _)) = queue.pop_front() { log.drop_oldest(count) },
                    2 => log.set_capacity(100 + size * 100 / 40),
                    _ => if let Some((at, count, stamp)) = queue.pop_front() {
                        match log.move_oldest(count, step == 3) {
                            Some(to) => queue.push_back((to, count, stamp)),
                            None => queue.push_front((at, count, stamp)),
                        }
                    },
                }
                prop_assert_eq!(log.oldest(), queue.front().map(|(at, ..)| *at));
                for (at, count, stamp) in &queue {
                    prop_assert!(log.at(*at)[..*count].iter().all(|byte| byte == stamp));
                }
            }
        }
    }
}
