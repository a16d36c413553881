//! Space for new items: eviction, compaction, and the capacities of the rings.

use super::super::counts::Counts;
use super::super::eviction::{Eviction, EvictionObserver, EvictionStats};
use super::super::item::{self, DEAD, FETCHED, Head, REFERENCED};
use super::super::key_hash::Hashed;
use super::super::log::Log;
use super::super::policy::AGES;
use super::super::simulation::Simulation;
use super::{LARGE_BYTES, MAIN, SMALL_BIT, Shard, position_of, ring_of};

/// At most this many items are moved during one store: a bound on how long it can take.
const MAX_MOVES: usize = 2048;

/// While there is memory to reclaim, the log keeps this part of itself free for new items, ...
const RESERVE: usize = 16;

/// ... by passing at most this many times the bytes of each store. Together that is enough to
/// pass every live item before the reserve is used up, however they lie.
const PASS_FACTOR: usize = 16;

/// Live bytes are at most this part of the log before anything is evicted, in 1/1024; the rest is
/// reclaimed by moving. A larger part holds more, a smaller one moves less.
const FULLEST: usize = 896;

/// An index may grow before the main ring has given it the memory, by this part of the budget.
const OVERDRAFT: usize = 32;

impl Shard {
    /// Shrinks the main ring by as much as the index is about to grow.
    pub(super) fn make_index_room(&mut self, now_s: u32) {
        // A rare moment, and one that comes again while a store grows.
        if self.touched_bytes() as u64 * self.cas_step > LARGE_BYTES {
            self.shared.become_large();
        }
        let grown = self.index.grown_bytes();
        self.fit_main(grown);
        // The ring releases the memory after a lap. Until then each new item evicts one, which also
        // shortens the lap.
        let most = self.budget_bytes + self.budget_bytes / OVERDRAFT;
        let more = grown - self.index.bytes();
        let mut moves_left = MAX_MOVES;
        while self.rules.evict
            && self.index.is_full()
            && self.touched_bytes() + more > most
            && self.pass_oldest(now_s, true, &mut moves_left).is_some()
        {}
    }

    /// Lets the main ring have what the budget leaves beside an index of `index_bytes` and all
    /// else that is kept.
    pub(super) fn fit_main(&mut self, index_bytes: usize) {
        let beside = index_bytes + self.small_bytes + self.simulation_bytes;
        // An index that would take more than half is never needed: the smallest item takes twice
        // the bytes of its entry.
        let capacity = self.budget_bytes.saturating_sub(beside).max(self.budget_bytes / 2);
        // Where memory had been given back, it is reserved again before it may be used.
        if capacity <= self.logs[MAIN].capacity() || self.logs[MAIN].reserve(capacity).is_ok() {
            self.logs[MAIN].set_capacity(capacity);
        }
    }

    /// Makes room for a new item of `count` bytes, and returns its place.
    pub(super) fn make_room(
        &mut self,
        now_s: u32,
        tag: u32,
        level: u8,
        count: usize,
    ) -> Option<usize> {
        if self.small_bytes > 0 || self.policy().filters() {
            return self.make_filtered_room(now_s, tag, level, count);
        }
        self.make_main_room(now_s, count)
    }

    /// Makes room for `count` bytes at the main ring's head.
    pub(super) fn make_main_room(&mut self, now_s: u32, count: usize) -> Option<usize> {
        let is_crowded = |shard: &Self| {
            (shard.live_bytes[MAIN] + count) * 1024 > shard.logs[MAIN].capacity() * FULLEST
        };
        let mut moves_left = MAX_MOVES;
        let mut evict = false;
        if !is_crowded(self) {
            self.reclaim(now_s, count, &mut moves_left);
        } else if self.rules.evict {
            evict = true;
        } else {
            // What has expired may still make room, as far as one store may look for it.
            self.drop_expired(now_s);
            if is_crowded(self) {
                return None;
            }
        }
        let mut passed_bytes = 0;
        // After the ring has been shortened, the excess is evicted little by little.
        while evict
            && self.logs[MAIN].span() > self.logs[MAIN].capacity()
            && passed_bytes < 2 * count
        {
            passed_bytes += self.pass_oldest(now_s, evict, &mut moves_left)?;
        }
        loop {
            if let Some(at) = self.logs[MAIN].append(count) {
                self.go_on(count);
                return Some(at);
            }
            if evict && !self.is_full {
                self.become_full();
            }
            self.pass_oldest(now_s, evict, &mut moves_left)?;
        }
    }

    /// Marks the shard as full at its first eviction.
    #[cold]
    fn become_full(&mut self) {
        self.is_full = true;
        self.start_simulation();
    }

    /// Starts the simulations, if this shard has memory for them.
    pub(super) fn start_simulation(&mut self) {
        if self.simulation_bytes > 0 && self.simulation.is_none() {
            self.simulation = Simulation::new(self.budget_bytes, self.items()).map(Box::new);
        }
    }

    /// Lets items have the simulations' memory while sizes decide, and takes it back after that;
    /// the simulations start again once the small ring is closed.
    #[cold]
    pub(super) fn follow_density(&mut self) {
        if !self.does_simulate {
            return;
        }
        self.simulation = None;
        self.simulation_bytes = match self.density.is_in_force() {
            true => 0,
            false => Simulation::bytes(self.budget_bytes),
        };
        self.fit_main(self.index.bytes());
    }

    /// The main ring's front has gone on by `count` bytes.
    #[inline]
    fn go_on(&mut self, count: usize) {
        self.age_left_bytes = match self.age_left_bytes.checked_sub(count) {
            Some(left) => left,
            None => {
                // An item of several fifteenths of a ring is rare and as good as one.
                self.age = (self.age + 1) % (AGES + 1);
                self.logs[MAIN].capacity() / usize::from(AGES)
            }
        };
    }

    /// Keeps the reserve free by passing what is oldest: the dead are dropped, the living moved.
    fn reclaim(&mut self, now_s: u32, count: usize, moves_left: &mut usize) {
        let capacity = self.logs[MAIN].capacity();
        let mut bytes_left = count * PASS_FACTOR;
        while self.logs[MAIN].span() + capacity / RESERVE > capacity
            && bytes_left > 0
            && *moves_left > 0
        {
            match self.pass_oldest(now_s, false, moves_left) {
                Some(passed) => bytes_left = bytes_left.saturating_sub(passed),
                None => return,
            }
        }
    }

    /// Frees or moves the main ring's oldest item, and returns its length; `None` when there is
    /// none.
    fn pass_oldest(&mut self, now_s: u32, evict: bool, moves_left: &mut usize) -> Option<usize> {
        let at = self.logs[MAIN].oldest()?;
        let log = self.bytes(at);
        let head = Head::read(log);
        let count = head.stored_bytes();
        if head.bits & DEAD != 0 {
            self.logs[MAIN].drop_oldest(count);
            return Some(count);
        }
        let is_expired = head.is_expired(log, now_s);
        let tag = Hashed::of(&self.hasher, head.key(log)).tag;
        let (stays, level) = if is_expired { (false, 0) } else { self.judge_oldest(&head, evict) };
        let position = position_of(at);
        let slot = self.index.find(tag, |found| found == position)?;
        if stays && *moves_left > 0 {
            *moves_left -= 1;
            if let Some(to) = self.logs[MAIN].move_oldest(count, self.rules.evict) {
                let log = self.bytes_mut(to);
                item::clear_bits(log, REFERENCED);
                item::set_level(log, level);
                self.index.set_position(slot, position_of(to));
                self.go_on(count);
                return Some(count);
            }
        }
        if !is_expired && !self.rules.evict {
            return None;
        }
        self.count_eviction(now_s, at, is_expired);
        self.index.remove(slot);
        if !is_expired && self.density.is_in_force() {
            self.ghosts.insert(tag, level);
        }
        self.live_bytes[MAIN] -= count;
        self.logs[MAIN].drop_oldest(count);
        Some(count)
    }

    /// Whether the policy gives the main ring's oldest item another lap, which it does in any case
    /// when nothing is to be evicted, and the item's level then.
    fn judge_oldest(&mut self, head: &Head, evict: bool) -> (bool, u8) {
        let is_read = head.bits & REFERENCED != 0;
        if !self.density.is_in_force() {
            let age = self.age.wrapping_sub(head.accessed.age) % (AGES + 1);
            return (!evict || self.policy().keeps(is_read.then_some(age)), head.level);
        }
        let main = &self.logs[MAIN];
        let level = self.density.aged(head.level, main.oldest_taken(), is_read);
        if !evict {
            return (true, level);
        }
        (self.density.stays(level, head.stored_bytes(), main.capacity()), level)
    }

    /// Passes a bounded number of the oldest items, dropping what has expired and moving the rest.
    #[cold]
    fn drop_expired(&mut self, now_s: u32) {
        let mut moves_left = MAX_MOVES;
        while moves_left > 0 && self.pass_oldest(now_s, false, &mut moves_left).is_some() {}
    }

    /// Changes the budget, evicting the oldest items that exceed it; whether that succeeded.
    pub(in crate::model) fn set_budget(&mut self, now_s: u32, budget_bytes: usize) -> bool {
        self.close_small_at_once();
        let beside = self.index.bytes() + self.simulation_bytes;
        let capacity = budget_bytes.saturating_sub(beside);
        if capacity >= self.logs[MAIN].capacity() {
            if self.logs[MAIN].reserve(capacity).is_err() {
                return false;
            }
            self.logs[MAIN].set_capacity(capacity);
        } else if !self.shrink(now_s, capacity) {
            return false;
        }
        self.budget_bytes = budget_bytes;
        true
    }

    /// Moves what fits into a smaller log, the newest first to stay. It takes as long as there are
    /// items, which is why memory is rarely changed.
    fn shrink(&mut self, now_s: u32, capacity: usize) -> bool {
        let is_crowded = |shard: &Self| shard.live_bytes[MAIN] * 1024 > capacity * FULLEST;
        if is_crowded(self) && !self.rules.evict {
            return false;
        }
        let Ok(mut smaller) = Log::new(capacity) else { return false };
        smaller.go_on_from(&self.logs[MAIN]);
        while is_crowded(self) && self.pass_oldest(now_s, true, &mut 0).is_some() {}
        while let Some(at) = self.logs[MAIN].oldest() {
            let log = self.bytes(at);
            let head = Head::read(log);
            let count = head.stored_bytes();
            let tag = Hashed::of(&self.hasher, head.key(log)).tag;
            // Of two items with one tag, the places may be swapped here: each is still found.
            if head.bits & DEAD == 0
                && let Some(slot) = self.index.find(tag, |found| found == position_of(at))
                && let Some(to) = smaller.append(count)
            {
                smaller.at_mut(to)[..count].copy_from_slice(&self.bytes(at)[..count]);
                self.index.set_position(slot, position_of(to));
            }
            self.logs[MAIN].drop_oldest(count);
        }
        self.logs[MAIN] = smaller;
        true
    }

    pub(super) fn count_eviction(&mut self, now_s: u32, at: usize, is_expired: bool) {
        let Self { logs, counts, eviction_stats, observer, .. } = self;
        let log = logs[ring_of(at)].at(at & !SMALL_BIT);
        record_eviction(counts, eviction_stats, observer.as_ref(), now_s, log, is_expired);
    }
}

/// Counts the item at the start of `log` as evicted or expired, and notifies the observer.
pub(in crate::model) fn record_eviction(
    counts: &mut Counts,
    eviction_stats: &mut EvictionStats,
    observer: Option<&EvictionObserver>,
    now_s: u32,
    log: &[u8],
    is_expired: bool,
) {
    let head = Head::read(log);
    let unfetched = u64::from(head.bits & FETCHED == 0);
    if is_expired {
        counts.reclaimed += 1;
        counts.expired_unfetched += unfetched;
        return;
    }
    let active = head.bits & REFERENCED != 0;
    counts.evictions += 1;
    counts.evicted_unfetched += unfetched;
    counts.evicted_active += u64::from(active);
    let item = head.item(log);
    let eviction = Eviction {
        key: item.key,
        bytes: head.stored_bytes(),
        value_bytes: item.value.len(),
        idle_s: now_s.saturating_sub(item.accessed_s),
        left_s: (item.expires_s != 0).then(|| item.expires_s.saturating_sub(now_s)),
        fetched: item.fetched,
        active,
    };
    eviction_stats.add(&eviction);
    if let Some(observer) = observer {
        observer.notify(&eviction);
    }
}
