//! The small ring, in which new items prove themselves while the policy has them do so.
//!
//! Its memory comes from the main ring and goes back to it: the main ring is made shorter, and
//! once its front has turned back and its end has come by, what lay beyond is the small ring's.

use super::super::ghost::Ghosts;
use super::super::item::{self, DEAD, Head, REFERENCED};
use super::super::key_hash::Hashed;
use super::super::limits::ROOMY_ITEMS;
use super::super::log::Log;
use super::super::policy::small_part_of;
use super::{MAIN, SMALL, SMALL_BIT, Shard, position_of};

/// While the ring is being closed, each store moves this many of its items on.
const MOVES_WHEN_CLOSING: usize = 4;

/// Where sizes are mixed, the number of items is a poor prediction of later ones, so ghosts take
/// this part of the budget.
const GHOSTS_PART: usize = 128;

/// Where sizes are mixed, the small ring and the ghosts have this part of the budget. Frequencies
/// survive eviction there, so a new item needs less time to prove itself.
const DENSITY_PART: usize = 26;

impl Shard {
    /// Makes room where the policy filters, or has until now.
    pub(super) fn make_filtered_room(
        &mut self,
        now_s: u32,
        tag: u32,
        level: u8,
        count: usize,
    ) -> Option<usize> {
        if !self.policy().filters() {
            self.close_small(now_s);
            return self.make_main_room(now_s, count);
        }
        self.open_small();
        // While there is memory for all, the small ring has none.
        let capacity = self.logs[SMALL].capacity();
        let is_proven = match self.density.is_in_force() {
            true => count > capacity || self.density.is_worth(level, count),
            false => count > capacity / ROOMY_ITEMS || self.ghosts.take(tag).is_some(),
        };
        if is_proven {
            return self.make_main_room(now_s, count);
        }
        loop {
            if let Some(at) = self.logs[SMALL].append(count) {
                return Some(at | SMALL_BIT);
            }
            self.pass_small(now_s, true)?;
        }
    }

    /// Opens the small ring once the main ring has released the memory.
    fn open_small(&mut self) {
        if self.small_bytes == 0 {
            self.small_bytes = match self.density.is_in_force() {
                true => self.budget_bytes / DENSITY_PART,
                false => small_part_of(self.budget_bytes),
            };
            self.fit_main(self.index.bytes());
        }
        let main = &self.logs[MAIN];
        let waits = !self.is_full || main.touched_bytes() > main.capacity();
        if self.logs[SMALL].capacity() > 0 || waits {
            return;
        }
        let places = match self.density.is_in_force() {
            true => self.budget_bytes / GHOSTS_PART / Ghosts::PLACE_BYTES,
            false => self.items().min(self.small_bytes / 2 / Ghosts::PLACE_BYTES),
        };
        if let Ok(log) = Log::new(self.small_bytes - places * Ghosts::PLACE_BYTES) {
            self.ghosts.reset(places);
            self.logs[SMALL] = log;
        }
    }

    /// Moves some of the small ring's items on, and frees its memory after the last.
    fn close_small(&mut self, now_s: u32) {
        for _ in 0..MOVES_WHEN_CLOSING {
            if self.pass_small(now_s, false).is_none() {
                return self.end_small();
            }
        }
    }

    /// The same at once, for when all the memory is needed.
    pub(super) fn close_small_at_once(&mut self) {
        while self.pass_small(0, false).is_some() {}
        self.end_small();
    }

    fn end_small(&mut self) {
        self.logs[SMALL] = Log::default();
        self.ghosts.reset(0);
        self.small_bytes = 0;
        self.fit_main(self.index.bytes());
        if self.is_full {
            self.start_simulation();
        }
    }

    /// Evicts the small ring's oldest item, or moves it on to the main ring when it was read
    /// there, or in any case when nothing is filtered. Returns its length.
    fn pass_small(&mut self, now_s: u32, filter: bool) -> Option<usize> {
        let from = self.logs[SMALL].oldest()?;
        let at = from | SMALL_BIT;
        let log = self.bytes(at);
        let head = Head::read(log);
        let count = head.stored_bytes();
        if head.bits & DEAD == 0 {
            let tag = Hashed::of(&self.hasher, head.key(log)).tag;
            let is_expired = head.is_expired(log, now_s);
            let is_proven = match self.density.is_in_force() {
                true => self.density.is_worth(head.level, count),
                false => head.bits & REFERENCED != 0,
            };
            let stays = !is_expired && (!filter || is_proven);
            let to = if stays { self.make_main_room(now_s, count) } else { None };
            // Only now: what went to make room has left the index.
            let position = position_of(at);
            let slot = self.index.find(tag, |found| found == position)?;
            match to {
                Some(to) => {
                    let [main, small] = &mut self.logs;
                    let bytes = main.at_mut(to);
                    bytes[..count].copy_from_slice(&small.at(from)[..count]);
                    item::clear_bits(bytes, REFERENCED);
                    self.index.set_position(slot, position_of(to));
                    self.live_bytes[MAIN] += count;
                }
                None => {
                    self.count_eviction(now_s, at, is_expired);
                    self.index.remove(slot);
                    if !is_expired {
                        self.ghosts.insert(tag, head.level);
                    }
                }
            }
            self.live_bytes[SMALL] -= count;
        }
        self.logs[SMALL].drop_oldest(count);
        Some(count)
    }
}
