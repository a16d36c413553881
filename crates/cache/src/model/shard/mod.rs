//! One shard: an index into a log, within a budget of memory.
//!
//! The oldest item is the next to go. One that has been read since it came here is moved to the
//! log's head instead (second chance, also called CLOCK), so frequently read items stay. Items are
//! also moved, and none is lost, while much of the log is occupied by what has been replaced or
//! removed: memory is reclaimed before anything is evicted.

mod change;
mod walk;

use std::collections::TryReserveError;

use super::index::Index;
use super::item::{
    self, CAS_MASK, DEAD, Entry, FETCHED, GRANULE_BYTES, Head, Item, REFERENCED, STALE, WON,
};
use super::log::Log;
use super::loss::{Loss, Losses, Witness};
use super::{Counts, Hashed, Hasher, Rules};

/// Index and log with one budget.
#[derive(Debug)]
pub(super) struct Shard {
    index: Index,
    log: Log,
    budget_bytes: usize,
    /// Bytes of the log in items that can be read.
    live_bytes: usize,
    /// The unique number of the last store.
    cas: u64,
    /// How far apart this shard's unique numbers are, so that no two shards give the same.
    cas_step: u64,
    hasher: Hasher,
    rules: Rules,
    /// Where a value is put together that is made of one that is here already.
    scratch: Vec<u8>,
    pub(super) counts: Counts,
    pub(super) losses: Losses,
    /// Who is told of what is let go.
    pub(super) witness: Option<Witness>,
}

/// At most this many items are moved during one store: a bound on how long it can take.
const MOST_MOVES: usize = 2048;

/// While there is memory to reclaim, the log keeps this part of itself free for new items, ...
const RESERVE: usize = 16;

/// ... by passing at most this many times the bytes of each store. Together that is enough to
/// pass every live item before the reserve is used up, however they lie.
const PASS_FACTOR: usize = 16;

/// Live bytes are at most this part of the log before anything is evicted, in 1/1024; the rest is
/// reclaimed by moving. A larger part holds more, a smaller one moves less.
const FULLEST: usize = 896;

impl Shard {
    /// Shard `number` of `shards`, which takes at most about `budget_bytes`.
    pub(super) fn new(
        budget_bytes: usize,
        number: usize,
        shards: usize,
        hasher: Hasher,
        rules: Rules,
    ) -> Result<Self, TryReserveError> {
        let index = Index::new();
        Ok(Self {
            log: Log::new(budget_bytes.saturating_sub(index.bytes()))?,
            index,
            budget_bytes,
            live_bytes: 0,
            cas: number as u64,
            cas_step: shards as u64,
            hasher,
            rules,
            scratch: Vec::new(),
            counts: Counts::default(),
            losses: Losses::default(),
            witness: None,
        })
    }

    /// How many items it holds, expired ones that nobody has met included.
    pub(super) fn items(&self) -> usize {
        self.index.len()
    }

    /// How many bytes of its log are in items that can be read.
    pub(super) fn live_bytes(&self) -> usize {
        self.live_bytes
    }

    /// How much memory its index takes.
    pub(super) fn index_bytes(&self) -> usize {
        self.index.bytes()
    }

    /// How much memory it has touched.
    pub(super) fn touched_bytes(&self) -> usize {
        self.log.touched_bytes() + self.index.bytes()
    }

    #[inline]
    fn find(&self, hashed: &Hashed<'_>) -> Option<(usize, usize)> {
        let slot = self.index.find(hashed.tag, |position| {
            let log = self.log.at(byte_of(position));
            Head::read(log).key(log) == hashed.key
        })?;
        Some((slot, byte_of(self.index.position(slot))))
    }

    /// Finds an item that is not expired, removing one that is.
    #[inline]
    fn find_live(&mut self, now_s: u32, hashed: &Hashed<'_>) -> Option<(usize, usize, Head)> {
        let (slot, at) = self.find(hashed)?;
        let log = self.log.at(at);
        let head = Head::read(log);
        if head.is_expired(log, now_s) {
            self.counts.expired_unfetched += u64::from(head.bits & FETCHED == 0);
            self.remove_at(slot, at, &head);
            self.counts.get_expired += 1;
            return None;
        }
        Some((slot, at, head))
    }

    /// Reads an item and notes that it was read. `WINS` says that whoever reads a stale item
    /// first is told to store it anew.
    #[inline]
    pub(super) fn get<const WINS: bool>(
        &mut self,
        now_s: u32,
        hashed: &Hashed<'_>,
    ) -> Option<Item<'_>> {
        let Some((_, at, head)) = self.find_live(now_s, hashed) else {
            self.counts.get_misses += 1;
            return None;
        };
        self.counts.get_hits += 1;
        if head.bits & (REFERENCED | FETCHED) != REFERENCED | FETCHED {
            item::set_bits(self.log.at_mut(at), REFERENCED | FETCHED);
        }
        if head.accessed_s != now_s {
            item::set_accessed(self.log.at_mut(at), now_s);
        }
        if WINS && head.bits & (STALE | WON) == STALE {
            item::set_bits(self.log.at_mut(at), WON);
        }
        Some(head.item(self.log.at(at)))
    }

    /// Looks at an item that is not expired.
    pub(super) fn peek(&self, now_s: u32, hashed: &Hashed<'_>) -> Option<Item<'_>> {
        let (_, at) = self.find(hashed)?;
        let log = self.log.at(at);
        let head = Head::read(log);
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

    /// Stores an entry and gives its unique number, or `None` when there is no room for it.
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
        if let Some((slot, at)) = self.find(hashed) {
            let head = Head::read(self.log.at(at));
            if head.stored_bytes() == count {
                // The same size: it stays where it is, and what was read stays known as read.
                let bits = bits | head.bits & REFERENCED;
                entry.write(cas, bits, now_s, self.log.at_mut(at));
                return true;
            }
            if self.rules.evict {
                self.remove_at(slot, at, &head);
            }
        }
        if self.index.is_full() {
            self.make_index_room();
        }
        let Some(at) = self.make_room(now_s, count) else { return false };
        if !self.rules.evict
            && let Some((slot, old)) = self.find(hashed)
        {
            // Where nothing may be lost, the old value goes only once there is room for the new.
            let head = Head::read(self.log.at(old));
            self.remove_at(slot, old, &head);
        }
        entry.write(cas, bits, now_s, self.log.at_mut(at));
        self.index.insert(hashed.tag, position_of(at));
        self.live_bytes += count;
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
        self.log.clear();
        self.live_bytes = 0;
    }

    fn remove_at(&mut self, slot: usize, at: usize, head: &Head) {
        self.index.remove(slot);
        item::set_bits(self.log.at_mut(at), DEAD);
        self.live_bytes -= head.stored_bytes();
    }

    /// The index is about to grow by a quarter: the log has to give as much.
    fn make_index_room(&mut self) {
        let grown = self.index.bytes() + self.index.bytes() / 4 + GRANULE_BYTES;
        let capacity = self.budget_bytes.saturating_sub(grown);
        // An index that would take more than half is never needed: the smallest item takes twice
        // the bytes of its entry.
        self.log.set_capacity(capacity.max(self.budget_bytes / 2));
    }

    /// Makes room for `count` bytes at the log's head.
    fn make_room(&mut self, now_s: u32, count: usize) -> Option<usize> {
        let is_crowded = (self.live_bytes + count) * 1024 > self.log.capacity() * FULLEST;
        let mut moves_left = MOST_MOVES;
        if is_crowded && !self.rules.evict {
            // What has expired may still make room, as far as one store may look for it.
            self.drop_expired(now_s);
            if (self.live_bytes + count) * 1024 > self.log.capacity() * FULLEST {
                return None;
            }
        }
        let is_crowded = is_crowded && self.rules.evict;
        if !is_crowded {
            self.reclaim(now_s, count, &mut moves_left);
        }
        loop {
            if let Some(at) = self.log.append(count) {
                return Some(at);
            }
            self.pass_oldest(now_s, is_crowded, &mut moves_left)?;
        }
    }

    /// Keeps the reserve free by passing what is oldest: the dead are dropped, the living moved.
    fn reclaim(&mut self, now_s: u32, count: usize, moves_left: &mut usize) {
        let capacity = self.log.capacity();
        let mut bytes_left = count * PASS_FACTOR;
        while self.log.span() + capacity / RESERVE > capacity && bytes_left > 0 && *moves_left > 0 {
            match self.pass_oldest(now_s, false, moves_left) {
                Some(passed) => bytes_left = bytes_left.saturating_sub(passed),
                None => return,
            }
        }
    }

    /// Frees or moves the oldest item, and says how long it is; `None` when there is none.
    fn pass_oldest(&mut self, now_s: u32, evict: bool, moves_left: &mut usize) -> Option<usize> {
        let at = self.log.oldest()?;
        let log = self.log.at(at);
        let head = Head::read(log);
        let count = head.stored_bytes();
        if head.bits & DEAD != 0 {
            self.log.drop_oldest(count);
            return Some(count);
        }
        let is_expired = head.is_expired(log, now_s);
        let stays = !is_expired && (head.bits & REFERENCED != 0 || !evict);
        let tag = Hashed::of(&self.hasher, head.key(log)).tag;
        let position = position_of(at);
        let slot = self.index.find(tag, |found| found == position)?;
        if stays && *moves_left > 0 {
            *moves_left -= 1;
            if let Some(to) = self.log.move_oldest(count) {
                item::clear_bits(self.log.at_mut(to), REFERENCED);
                self.index.set_position(slot, position_of(to));
                return Some(count);
            }
        }
        if !is_expired && !self.rules.evict {
            return None;
        }
        self.count_loss(now_s, at, &head, is_expired);
        self.index.remove(slot);
        self.live_bytes -= count;
        self.log.drop_oldest(count);
        Some(count)
    }

    /// Passes a bounded number of the oldest items, dropping what has expired and moving the rest.
    #[cold]
    fn drop_expired(&mut self, now_s: u32) {
        let mut moves_left = MOST_MOVES;
        while moves_left > 0 && self.pass_oldest(now_s, false, &mut moves_left).is_some() {}
    }

    /// Changes the budget, letting go of the oldest items that are too much; whether that could
    /// be done.
    pub(super) fn set_budget(&mut self, budget_bytes: usize) -> bool {
        let capacity = budget_bytes.saturating_sub(self.index.bytes());
        if capacity >= self.log.capacity() {
            if self.log.reserve(capacity).is_err() {
                return false;
            }
            self.log.set_capacity(capacity);
        } else if !self.shrink(capacity) {
            return false;
        }
        self.budget_bytes = budget_bytes;
        true
    }

    /// Moves what fits into a smaller log, the newest first to stay. It takes as long as there are
    /// items, which is why memory is rarely changed.
    fn shrink(&mut self, capacity: usize) -> bool {
        let is_crowded = |shard: &Self| shard.live_bytes * 1024 > capacity * FULLEST;
        if is_crowded(self) && !self.rules.evict {
            return false;
        }
        let Ok(mut smaller) = Log::new(capacity) else { return false };
        while is_crowded(self) && self.pass_oldest(0, true, &mut 0).is_some() {}
        while let Some(at) = self.log.oldest() {
            let log = self.log.at(at);
            let head = Head::read(log);
            let count = head.stored_bytes();
            let tag = Hashed::of(&self.hasher, head.key(log)).tag;
            // Of two items with one tag, the places may be swapped here: each is still found.
            if head.bits & DEAD == 0
                && let Some(slot) = self.index.find(tag, |found| found == position_of(at))
                && let Some(to) = smaller.append(count)
            {
                smaller.at_mut(to)[..count].copy_from_slice(&self.log.at(at)[..count]);
                self.index.set_position(slot, position_of(to));
            }
            self.log.drop_oldest(count);
        }
        self.log = smaller;
        true
    }

    fn count_loss(&mut self, now_s: u32, at: usize, head: &Head, is_expired: bool) {
        let unfetched = u64::from(head.bits & FETCHED == 0);
        if is_expired {
            self.counts.reclaimed += 1;
            self.counts.expired_unfetched += unfetched;
            return;
        }
        let active = head.bits & REFERENCED != 0;
        self.counts.evictions += 1;
        self.counts.evicted_unfetched += unfetched;
        self.counts.evicted_active += u64::from(active);
        let item = head.item(self.log.at(at));
        let loss = Loss {
            key: item.key,
            bytes: head.stored_bytes(),
            value_bytes: item.value.len(),
            idle_s: now_s.saturating_sub(item.accessed_s),
            left_s: (item.expires_s != 0).then(|| item.expires_s.saturating_sub(now_s)),
            fetched: item.fetched,
            active,
        };
        self.losses.add(&loss);
        if let Some(witness) = &self.witness {
            witness.tell(&loss);
        }
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
