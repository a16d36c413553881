//! One shard: an index into two rings of bytes, within a budget of memory.
//!
//! The oldest item of a ring is the next to go; the policy decides which of them get another lap
//! instead. Items are also moved, and none is lost, while much of the main ring is occupied by what
//! has been replaced or removed: memory is reclaimed before anything is evicted.
//!
//! The small ring is there for policies that have new items prove themselves; the others leave it
//! empty and without memory.

mod conditional;
mod crawl;
mod density;
mod small;
mod space;
mod walk;

use std::collections::TryReserveError;
use std::sync::Arc;

use density::{Density, NEW_LEVEL};

use super::counts::{Counts, Holdings};
use super::crawled::NEVER_S;
use super::eviction::{EvictionObserver, EvictionStats};
use super::ghost::Ghosts;
use super::index::Index;
use super::item::{
    self, CAS_MASK, DEAD, Entry, FETCHED, GRANULE_BYTES, Head, Item, Marks, Moment, REFERENCED,
    STALE, WON,
};
use super::key_hash::{Hashed, Hasher};
use super::limits::{MAX_SHARD_BYTES, Rules};
use super::log::Log;
use super::policy::{AGES, Policy, small_part_of};
use super::prefetch::prefetch;
use super::shared::Shared;
use super::simulation::Simulation;

/// Index and rings with one budget, on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Shard {
    index: Index,
    /// The main ring and the small one.
    logs: [Log; 2],
    budget_bytes: usize,
    /// What of the budget is kept from the main ring for the small one and what belongs to it.
    small_bytes: usize,
    /// What of the budget simulations may take.
    simulation_bytes: usize,
    /// Whether it is the one shard that simulates for all.
    does_simulate: bool,
    /// Bytes of each ring in items that can be read.
    live_bytes: [usize; 2],
    /// How far the main ring's front is, in fifteenths of a lap, modulo 16.
    age: u8,
    /// After how many bytes it is one further.
    age_left_bytes: usize,
    /// No item expires before this second, but for those that a walk has not yet passed.
    first_expiry_s: u32,
    /// Whether anything has been evicted for lack of room.
    is_full: bool,
    /// The keys of evicted items.
    ghosts: Ghosts,
    /// Which items are worth their memory, where sizes matter.
    density: Density,
    shared: Arc<Shared>,
    /// Simulations, in the one shard that does them for all, once it is full.
    simulation: Option<Box<Simulation>>,
    /// The unique number of the last store.
    cas: u64,
    /// How far apart this shard's unique numbers are, so that no two shards assign the same.
    cas_step: u64,
    hasher: Hasher,
    rules: Rules,
    /// Where a value is put together that is made of one that is here already.
    scratch: Vec<u8>,
    pub(super) counts: Counts,
    pub(super) eviction_stats: EvictionStats,
    /// The callback for each eviction.
    pub(super) observer: Option<EvictionObserver>,
}

/// The main ring, which has most of the memory.
const MAIN: usize = 0;

/// The ring of new items, from which only proven ones move to the main ring.
const SMALL: usize = 1;

/// Memory comes in lines of this size.
const LINE_BYTES: usize = 64;

/// The lines of an item that are prefetched; the hardware prefetcher finds those after them.
const PREFETCHED_LINES: usize = 3;

/// A store larger than this is larger than a processor's caches.
const LARGE_BYTES: u64 = 32 << 20;

/// The bit of a byte offset that marks the small ring: no ring is that long.
const SMALL_BIT: usize = MAX_SHARD_BYTES;

impl Shard {
    /// Shard `number` of `shards`, which takes at most about `budget_bytes`.
    pub(super) fn new(
        budget_bytes: usize,
        number: usize,
        shards: usize,
        hasher: Hasher,
        rules: Rules,
        shared: Arc<Shared>,
    ) -> Result<Self, TryReserveError> {
        let index = Index::new();
        let small_bytes =
            if Policy::of(shared.policy()).filters() { small_part_of(budget_bytes) } else { 0 };
        let does_simulate = number == 0 && rules.evict && rules.policy == Policy::Adaptive;
        let simulation_bytes = if does_simulate { Simulation::bytes(budget_bytes) } else { 0 };
        let beside = index.bytes() + small_bytes + simulation_bytes;
        let capacity = budget_bytes.saturating_sub(beside);
        Ok(Self {
            logs: [Log::new(capacity)?, Log::new(0)?],
            index,
            budget_bytes,
            small_bytes,
            simulation_bytes,
            does_simulate,
            live_bytes: [0; 2],
            age: 0,
            age_left_bytes: capacity / usize::from(AGES),
            first_expiry_s: NEVER_S,
            is_full: false,
            ghosts: Ghosts::default(),
            density: Density::new(
                rules.evict && rules.policy == Policy::Density,
                rules.evict && rules.policy == Policy::Adaptive,
                number,
            ),
            shared,
            simulation: None,
            cas: number as u64,
            cas_step: shards as u64,
            hasher,
            rules,
            scratch: Vec::new(),
            counts: Counts::default(),
            eviction_stats: EvictionStats::default(),
            observer: None,
        })
    }

    /// The number of items, including expired ones not yet found to be so.
    pub(super) fn items(&self) -> usize {
        self.index.len()
    }

    /// How much memory it has touched.
    pub(super) fn touched_bytes(&self) -> usize {
        let logs: usize = self.logs.iter().map(Log::touched_bytes).sum();
        logs + self.index.bytes() + self.ghosts.bytes() + self.simulation_bytes
    }

    /// What it holds.
    pub(super) fn holdings(&self) -> Holdings {
        Holdings {
            items: self.items() as u64,
            item_bytes: self.live_bytes.iter().sum::<usize>() as u64,
            index_bytes: self.index.bytes() as u64,
            touched_bytes: self.touched_bytes() as u64,
        }
    }

    /// The bytes from the place `at` on.
    #[inline]
    fn bytes(&self, at: usize) -> &[u8] {
        self.logs[ring_of(at)].at(at & !SMALL_BIT)
    }

    /// The bytes from the place `at` on, to change.
    #[inline]
    fn bytes_mut(&mut self, at: usize) -> &mut [u8] {
        self.logs[ring_of(at)].at_mut(at & !SMALL_BIT)
    }

    /// The policy in force.
    #[inline]
    pub(super) fn policy(&self) -> Policy {
        match self.density.is_in_force() {
            true => Policy::Density,
            false => Policy::of(self.shared.policy()),
        }
    }

    #[inline]
    fn moment(&self, now_s: u32) -> Moment {
        Moment::new(now_s, self.age)
    }

    #[inline]
    fn find(&self, hashed: &Hashed<'_>) -> Option<(usize, usize)> {
        self.find_with_head(hashed).map(|(slot, at, _)| (slot, at))
    }

    /// Where the item is, and its head, which was read to find it.
    #[inline]
    fn find_with_head(&self, hashed: &Hashed<'_>) -> Option<(usize, usize, Head)> {
        let mut found = None;
        let slot = self.index.find(hashed.tag, |position| {
            let at = byte_of(position);
            let log = self.bytes(at);
            let head = Head::read(log);
            let is_it = is_same(head.key(log), hashed.key);
            if is_it {
                found = Some((at, head));
            }
            is_it
        })?;
        found.map(|(at, head)| (slot, at, head))
    }

    /// Prefetches the index entry of `tag`.
    #[inline]
    pub(super) fn prefetch_entry(&self, tag: u32) {
        self.index.prefetch(tag);
    }

    /// Prefetches the start of the first item with `tag`, and returns its position.
    #[inline]
    pub(super) fn prefetch_item(&self, tag: u32) -> Option<u32> {
        let slot = self.index.find(tag, |_| true)?;
        let position = self.index.position(slot);
        let item = self.bytes(byte_of(position));
        for line in 0..PREFETCHED_LINES {
            item.get(line * LINE_BYTES).into_iter().for_each(prefetch);
        }
        Some(position)
    }

    /// The item of a key, if it is at `position` and there to be read.
    #[inline]
    fn look_at(&self, now_s: u32, hashed: &Hashed<'_>, position: u32) -> Option<(usize, Head)> {
        let at = byte_of(position);
        let log = self.bytes(at);
        let head = Head::read(log);
        let is_it = head.bits & DEAD == 0
            && is_same(head.key(log), hashed.key)
            && !head.is_expired(log, now_s);
        is_it.then_some((at, head))
    }

    /// Finds an item that is not expired, removing one that is.
    #[inline]
    fn find_live(&mut self, now_s: u32, hashed: &Hashed<'_>) -> Option<(usize, usize, Head)> {
        let (slot, at, head) = self.find_with_head(hashed)?;
        if head.is_expired(self.bytes(at), now_s) {
            self.counts.expired_unfetched += u64::from(head.bits & FETCHED == 0);
            self.remove_at(slot, at, &head);
            self.counts.get_expired += 1;
            return None;
        }
        Some((slot, at, head))
    }

    /// Reads an item and notes that it was read. It is likely to be at `position`, which
    /// [`Shard::prefetch_item`] returned since the last store. With `WINS`, the first reader of a
    /// stale item is to recache it.
    #[inline]
    pub(super) fn get<const WINS: bool>(
        &mut self,
        now_s: u32,
        hashed: &Hashed<'_>,
        position: Option<u32>,
    ) -> Option<Item<'_>> {
        let there = position.and_then(|position| self.look_at(now_s, hashed, position));
        let found = there.or_else(|| self.find_live(now_s, hashed).map(|(_, at, head)| (at, head)));
        if self.density.is_in_force() {
            self.note_request(found.as_ref().map(|(at, head)| (*at, head)));
        } else if self.simulation.is_some() {
            self.note_read(hashed, found.is_some());
        }
        let Some((at, head)) = found else {
            self.counts.get_misses += 1;
            return None;
        };
        self.counts.get_hits += 1;
        let now = self.moment(now_s);
        let log = self.bytes_mut(at);
        if head.bits & (REFERENCED | FETCHED) != REFERENCED | FETCHED {
            item::set_bits(log, REFERENCED | FETCHED);
        }
        if head.accessed != now {
            item::set_accessed(log, now);
        }
        if WINS && head.bits & (STALE | WON) == STALE {
            item::set_bits(log, WON);
        }
        Some(head.item(log))
    }

    /// Feeds a read to the simulations.
    fn note_read(&mut self, hashed: &Hashed<'_>, found: bool) {
        let items = self.items();
        if let Some(simulation) = &mut self.simulation
            && let Some(policy) = simulation.read(hashed.tag, found, items)
        {
            self.shared.set_policy(policy as u8);
        }
    }

    /// Counts a request of the item at a place and with a head, or of one that isn't there. Kept
    /// out of line: reads where sizes are alike, which are most, do without it.
    #[cold]
    #[inline(never)]
    fn note_request(&mut self, found: Option<(usize, &Head)>) {
        if let Some((at, head)) = found {
            self.density.note_hit(head.stored_bytes());
            let raised = self.density.raised(head.level);
            if raised != head.level {
                item::set_level(self.bytes_mut(at), raised);
            }
        }
        if self.density.note_request(self.index.len()) {
            self.density.age(self.logs[MAIN].taken());
            self.ghosts.age();
        }
    }

    /// The level of a new item in the place of one with the level `old`, or of an evicted one.
    fn level_of_new(&mut self, tag: u32, old: Option<u8>) -> u8 {
        if !self.density.is_in_force() {
            return NEW_LEVEL;
        }
        self.note_request(None);
        old.or_else(|| self.ghosts.take(tag)).map_or(NEW_LEVEL, |level| self.density.raised(level))
    }

    /// Looks at an item that is not expired.
    pub(super) fn peek(&self, now_s: u32, hashed: &Hashed<'_>) -> Option<Item<'_>> {
        let (_, at, head) = self.find_with_head(hashed)?;
        let log = self.bytes(at);
        (!head.is_expired(log, now_s)).then(|| head.item(log))
    }

    /// The unique number of the next store; always 0 where they are not kept.
    fn next_cas(&mut self) -> u64 {
        if !self.rules.cas {
            return 0;
        }
        self.cas = (self.cas + self.cas_step) & CAS_MASK;
        self.cas
    }

    /// Stores an entry and returns its unique number, or `None` when there is no room for it.
    #[inline]
    pub(super) fn set(
        &mut self,
        now_s: u32,
        hashed: &Hashed<'_>,
        entry: &Entry<'_>,
    ) -> Option<u64> {
        let cas = self.next_cas();
        self.counts.stored += 1;
        self.put(now_s, hashed, entry, cas, 0).then_some(cas)
    }

    /// Puts an entry into the place of what its key has; whether there was room.
    fn put(
        &mut self,
        now_s: u32,
        hashed: &Hashed<'_>,
        entry: &Entry<'_>,
        cas: u64,
        bits: u8,
    ) -> bool {
        let count = entry.stored_bytes();
        self.note_expiry(entry.expires_s);
        let mut old_level = None;
        if let Some((slot, at)) = self.find(hashed) {
            let head = Head::read(self.bytes(at));
            if head.stored_bytes() == count {
                // The same size: it stays where it is, and counts as used, not only as stored.
                let level = match self.density.is_in_force() {
                    true => self.density.raised(head.level),
                    false => head.level,
                };
                let (marks, now) = (Marks { bits: bits | REFERENCED, level }, self.moment(now_s));
                entry.write(cas, marks, now, self.bytes_mut(at));
                return true;
            }
            old_level = Some(head.level);
            if self.rules.evict {
                self.remove_at(slot, at, &head);
            }
        }
        if self.index.is_full() {
            self.make_index_room(now_s);
        }
        let live_bytes = self.live_bytes.iter().sum();
        if self.density.note_size(count, self.index.len(), live_bytes) {
            self.follow_density();
        }
        let level = self.level_of_new(hashed.tag, old_level);
        let Some(at) = self.make_room(now_s, hashed.tag, level, count) else { return false };
        if !self.rules.evict
            && let Some((slot, old)) = self.find(hashed)
        {
            // Where nothing may be lost, the old value goes only once there is room for the new.
            let head = Head::read(self.bytes(old));
            self.remove_at(slot, old, &head);
        }
        let now = self.moment(now_s);
        entry.write(cas, Marks { bits, level }, now, self.bytes_mut(at));
        self.index.insert(hashed.tag, position_of(at));
        self.live_bytes[ring_of(at)] += count;
        if let Some(simulation) = &mut self.simulation {
            simulation.store(hashed.tag);
        }
        true
    }

    /// Removes an item; whether there was one.
    pub(super) fn delete(&mut self, now_s: u32, hashed: &Hashed<'_>) -> bool {
        let found = self.find_live(now_s, hashed);
        if let Some((slot, at, head)) = &found {
            self.remove_at(*slot, *at, head);
        }
        found.is_some()
    }

    /// Removes everything.
    pub(super) fn clear(&mut self) {
        self.index.clear();
        self.logs.iter_mut().for_each(Log::clear);
        self.live_bytes = [0; 2];
        self.first_expiry_s = NEVER_S;
        self.is_full = false;
        self.density.clear();
    }

    fn remove_at(&mut self, slot: usize, at: usize, head: &Head) {
        self.index.remove(slot);
        item::set_bits(self.bytes_mut(at), DEAD);
        self.live_bytes[ring_of(at)] -= head.stored_bytes();
    }
}

/// Which ring the place `at` is in.
#[inline]
fn ring_of(at: usize) -> usize {
    usize::from(at & SMALL_BIT != 0)
}

/// Whether two keys are the same. Most are of 8 to 16 bytes, which need no call to be compared.
#[inline]
fn is_same(one: &[u8], other: &[u8]) -> bool {
    match one.len() {
        length if length != other.len() => false,
        8..=16 => {
            one.first_chunk::<8>() == other.first_chunk::<8>()
                && one.last_chunk::<8>() == other.last_chunk::<8>()
        }
        _ => one == other,
    }
}

#[inline]
fn byte_of(position: u32) -> usize {
    position as usize * GRANULE_BYTES
}

#[inline]
fn position_of(byte: usize) -> u32 {
    (byte / GRANULE_BYTES) as u32
}
