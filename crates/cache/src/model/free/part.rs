//! One part of the store: a table and a ring that anybody reads at any time, and one who writes.
//!
//! What a command does to an item is [`Shard`]'s business alone: a writer takes the one item out
//! into a small shard, has it changed there, and puts back what has become of it.

use std::collections::TryReserveError;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::super::evict::Policy;
use super::super::item::{self, FETCHED, Head, Item, REFERENCED};
use super::super::log::STEP_BYTES;
use super::super::shard::{Shard, tell_loss};
use super::super::shared::Shared;
use super::super::{Hashed, Hasher, Holdings, Rules};
use super::ring::Ring;
use super::sequence::Sequence;
use super::table::{self, Found, Table};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// A word of the ring.
const WORD_BYTES: usize = size_of::<u64>();

/// The part of the memory that the table takes.
const TABLE_PART: usize = 8;

/// The shard in which items are changed holds so many of the largest: what an item was, what it is
/// now, and room to spare.
const WORKBENCH_ITEMS: usize = 4;

/// What the workbench may keep of its memory between two changes; of a small part this part, but no
/// less than what it takes at once.
const WORKBENCH_BYTES: usize = 512 << 10;
const WORKBENCH_PART: usize = 32;

/// At most this many items are given another lap for one store.
const MOST_MOVES: usize = 2048;

/// An item without a long value is never longer.
const LONGEST_SMALL_BYTES: usize = 512;

/// The head of an item that a reader has to know its length from, in words.
const HEAD_WORDS: usize = 2;

/// One part.
#[derive(Debug)]
pub(in crate::model) struct Part {
    sequence: Sequence,
    table: Table,
    words: Box<[AtomicU64]>,
    /// No item is longer.
    most_words: usize,
    writer: Mutex<Writer>,
}

/// What only the one who writes touches.
#[derive(Debug)]
struct Writer {
    /// Where an item is changed. Its counts are those of the part.
    workbench: Shard,
    /// How much memory it may keep.
    keep_bytes: usize,
    ring: Ring,
    items: usize,
    live_words: usize,
    /// Whether what was read gets another lap.
    has_second_chance: bool,
    hasher: Hasher,
    /// The item as it was before a change, as it is after it, and one that is passed.
    before: Vec<u64>,
    after: Vec<u8>,
    passed: Vec<u64>,
}

/// What a look without a lock has come to.
pub(super) enum Look {
    /// The item is in the buffer.
    Found(Found),
    Missing,
    /// Somebody was writing.
    Torn,
}

impl Part {
    /// Part `number` of `parts`, which takes about `budget_bytes`.
    pub(super) fn new(
        budget_bytes: usize,
        number: usize,
        parts: usize,
        hasher: Hasher,
        rules: Rules,
        item_bytes: usize,
    ) -> Result<Option<Self>, TryReserveError> {
        let Some(table) = Table::new(budget_bytes / TABLE_PART) else { return Ok(None) };
        let bench = Rules { policy: Policy::Fifo, ..rules };
        let bench_bytes = WORKBENCH_ITEMS * item_bytes + (64 << 10);
        let shared = Arc::new(Shared::new(Policy::Fifo as u8));
        let workbench = Shard::new(bench_bytes, number, parts, hasher.clone(), bench, shared)?;
        let keep_bytes = WORKBENCH_BYTES.min(budget_bytes / WORKBENCH_PART).max(STEP_BYTES);
        let beside = table.bytes() + keep_bytes;
        let count = budget_bytes.saturating_sub(beside) / WORD_BYTES;
        let Ok(words) = bytemuck::allocation::try_zeroed_slice_box(count) else {
            return Ok(None);
        };
        let writer = Writer {
            workbench,
            keep_bytes,
            ring: Ring::new(count),
            items: 0,
            live_words: 0,
            has_second_chance: rules.policy != Policy::Fifo,
            hasher,
            before: Vec::new(),
            after: Vec::new(),
            passed: Vec::new(),
        };
        // A number that a command makes is not measured against the largest item.
        let most_words = (item_bytes + LONGEST_SMALL_BYTES) / WORD_BYTES;
        let writer = Mutex::new(writer);
        Ok(Some(Self { sequence: Sequence::new(), table, words, most_words, writer }))
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks for an item, without a lock, and copies it.
    #[inline]
    pub(super) fn look(&self, hashed: &Hashed<'_>, buffer: &mut Vec<u64>) -> Look {
        let Some(begun) = self.sequence.begin() else { return Look::Torn };
        let mut next = 0;
        while let Some(found) = self.table.find(hashed.tag, next) {
            let is_whole = self.copy(found.place(), buffer);
            let bytes = bytemuck::cast_slice::<u64, u8>(buffer);
            if is_whole && Head::read(bytes).key(bytes) == hashed.key {
                return if self.sequence.is_same(begun) { Look::Found(found) } else { Look::Torn };
            }
            next = found.slot + 1;
        }
        if self.sequence.is_same(begun) { Look::Missing } else { Look::Torn }
    }

    /// Copies the item at `place`; whether there can be one. What is copied while somebody writes
    /// may be anything, but is never more than an item's length.
    #[inline]
    fn copy(&self, place: usize, buffer: &mut Vec<u64>) -> bool {
        buffer.clear();
        let Some(words) = self.words.get(place..).filter(|words| words.len() >= HEAD_WORDS) else {
            return false;
        };
        buffer.extend(words[..HEAD_WORDS].iter().map(|word| word.load(Relaxed)));
        let count = words_of(bytemuck::cast_slice(buffer));
        if count > self.most_words || count > words.len() {
            return false;
        }
        buffer.extend(words[HEAD_WORDS..count.max(HEAD_WORDS)].iter().map(|w| w.load(Relaxed)));
        true
    }

    /// Notes that an item was read.
    #[inline]
    pub(super) fn note(&self, found: &Found, now_s: u32) {
        self.table.note(found, now_s);
    }

    /// Has the item of a key changed, and others let go if that takes more room.
    pub(super) fn change<R>(
        &self,
        now_s: u32,
        hashed: &Hashed<'_>,
        change: impl FnOnce(&mut Shard) -> R,
    ) -> R {
        let mut writer = self.lock();
        let mut before = mem::take(&mut writer.before);
        let found = match self.look(hashed, &mut before) {
            Look::Found(found) => Some(found),
            // Nobody else writes, so that nothing is ever torn here.
            Look::Missing | Look::Torn => None,
        };
        if let Some(found) = &found {
            let bytes = bytemuck::cast_slice_mut(&mut before);
            restore_marks(found, bytes);
            writer.workbench.put_alone(hashed, bytes);
        }
        let changed = change(&mut writer.workbench);
        let mut after = mem::take(&mut writer.after);
        let keep_bytes = writer.keep_bytes;
        let is_there = writer.workbench.take_alone(hashed, keep_bytes, &mut after);
        let was = bytemuck::cast_slice::<u64, u8>(&before);
        let is_same = found.is_some() && is_there && was.starts_with(&after);
        if !is_same {
            self.settle(&mut writer, now_s, hashed, found, is_there.then_some(after.as_slice()));
        }
        before.shrink_to(keep_bytes / WORD_BYTES);
        after.shrink_to(keep_bytes);
        (writer.before, writer.after) = (before, after);
        changed
    }

    /// Puts what has become of an item in the place of what it was.
    fn settle(
        &self,
        writer: &mut Writer,
        now_s: u32,
        hashed: &Hashed<'_>,
        found: Option<Found>,
        after: Option<&[u8]>,
    ) {
        let Some(after) = after else {
            if let Some(found) = found {
                self.remove(writer, &found);
            }
            return;
        };
        let head = Head::read(after);
        let (marks, second) = (marks_of(&head), head.accessed.second);
        let count = words_of(after);
        if let Some(found) = found.filter(|found| self.count_at(found.place()) == count) {
            return self.sequence.write(|| {
                self.write(found.place(), after);
                self.table.set(found.slot, found.place(), marks, second);
            });
        }
        let (mut found, mut moves_left) = (found, MOST_MOVES);
        loop {
            if (found.is_some() || !self.table.is_full(writer.items))
                && let Some(place) = writer.ring.append(count)
            {
                let old = found.map(|found| self.count_at(found.place()));
                // In one step, so that who reads meanwhile finds the one or the other.
                let is_in = self.sequence.write(|| {
                    self.write(place, after);
                    match &found {
                        Some(found) => self.table.set(found.slot, place, marks, second),
                        None => return self.table.insert(hashed.tag, place, marks, second),
                    }
                    true
                });
                if is_in {
                    writer.items += usize::from(old.is_none());
                    writer.live_words = writer.live_words + count - old.unwrap_or(0);
                    return;
                }
                // Without a slot, its words are passed as nobody's in their turn.
            }
            if !self.pass_oldest(writer, now_s, &mut moves_left) {
                // What it was is not kept for what it should be.
                found.inspect(|found| self.remove(writer, found));
                return;
            }
            // It may have had another lap, or gone.
            found = found.and_then(|_| self.find_again(writer, hashed));
        }
    }

    fn find_again(&self, writer: &mut Writer, hashed: &Hashed<'_>) -> Option<Found> {
        match self.look(hashed, &mut writer.passed) {
            Look::Found(found) => Some(found),
            Look::Missing | Look::Torn => None,
        }
    }

    fn count_at(&self, place: usize) -> usize {
        let head = [0, 1].map(|at| self.words[place + at].load(Relaxed));
        words_of(bytemuck::cast_slice(&head))
    }

    /// Writes an item without its marks, which are the table's.
    fn write(&self, place: usize, bytes: &[u8]) {
        for (at, chunk) in bytes.chunks(WORD_BYTES).enumerate() {
            let mut word = [0; WORD_BYTES];
            word[..chunk.len()].copy_from_slice(chunk);
            if at == 0 {
                item::clear_bits(&mut word, FETCHED | REFERENCED);
            }
            self.words[place + at].store(u64::from_ne_bytes(word), Relaxed);
        }
    }

    fn remove(&self, writer: &mut Writer, found: &Found) {
        writer.items -= 1;
        writer.live_words -= self.count_at(found.place());
        self.sequence.write(|| self.table.remove(found.slot));
    }

    /// Passes the oldest item of the ring: it goes, or has another lap. Whether there was one.
    fn pass_oldest(&self, writer: &mut Writer, now_s: u32, moves_left: &mut usize) -> bool {
        let Some(place) = writer.ring.oldest() else { return false };
        let mut passed = mem::take(&mut writer.passed);
        self.copy(place, &mut passed);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut passed);
        let count = words_of(bytes);
        let hashed = Hashed::of(&writer.hasher, Head::read(bytes).key(bytes));
        let mut entry = self.table.find(hashed.tag, 0);
        while let Some(other) = entry.filter(|found| found.place() != place) {
            entry = self.table.find(hashed.tag, other.slot + 1);
        }
        writer.ring.drop_oldest(count);
        if let Some(found) = entry {
            restore_marks(&found, bytes);
            let head = Head::read(bytes);
            let is_expired = head.is_expired(bytes, now_s);
            let stays = writer.has_second_chance && head.bits & REFERENCED != 0 && !is_expired;
            let to = if stays && *moves_left > 0 { writer.ring.append(count) } else { None };
            *moves_left = moves_left.saturating_sub(1);
            if let Some(to) = to {
                self.sequence.write(|| {
                    self.write(to, bytes);
                    self.table.set(found.slot, to, table::FETCHED, found.second);
                });
            } else {
                let bench = &mut writer.workbench;
                let (counts, losses) = (&mut bench.counts, &mut bench.losses);
                tell_loss(counts, losses, bench.witness.as_ref(), now_s, bytes, is_expired);
                // The words are still there: they have not been given to anybody.
                self.remove(writer, &found);
            }
        }
        writer.passed = passed;
        true
    }

    /// Shows items as [`Shard::walk`] does.
    pub(in crate::model) fn walk(
        &self,
        now_s: u32,
        from: u32,
        most: usize,
        show: &mut dyn FnMut(&Item<'_>),
    ) -> Option<u32> {
        let mut writer = self.lock();
        let mut buffer = mem::take(&mut writer.passed);
        let (mut last, mut next) = (None, None);
        for (shown, (tag, found)) in self.table.entries_from(from).enumerate() {
            // All items of one tag belong together, because a tag is what one goes on from.
            if shown >= most && last != Some(tag) {
                next = Some(tag);
                break;
            }
            last = Some(tag);
            self.copy(found.place(), &mut buffer);
            let bytes = bytemuck::cast_slice_mut(&mut buffer);
            restore_marks(&found, bytes);
            let head = Head::read(bytes);
            if !head.is_expired(bytes, now_s) {
                show(&head.item(bytes));
            }
        }
        writer.passed = buffer;
        next
    }

    /// Calls `look` with the shard that has the part's counts.
    pub(in crate::model) fn counted<R>(&self, look: impl FnOnce(&mut Shard) -> R) -> R {
        look(&mut self.lock().workbench)
    }

    /// Forgets everything.
    pub(in crate::model) fn clear(&self) {
        let mut writer = self.lock();
        self.sequence.write(|| self.table.clear());
        writer.ring.clear();
        (writer.items, writer.live_words) = (0, 0);
    }

    /// What it holds.
    pub(in crate::model) fn holdings(&self) -> Holdings {
        let writer = self.lock();
        let index_bytes = self.table.bytes();
        let touched = writer.ring.touched() * WORD_BYTES + writer.workbench.touched_bytes();
        Holdings {
            items: writer.items as u64,
            item_bytes: (writer.live_words * WORD_BYTES) as u64,
            index_bytes: index_bytes as u64,
            touched_bytes: (touched + index_bytes) as u64,
        }
    }
}

/// How many words the item takes whose head `bytes` begins with.
#[inline]
fn words_of(bytes: &[u8]) -> usize {
    Head::read(bytes).stored_bytes().div_ceil(WORD_BYTES)
}

/// The marks of an item, as its entry keeps them.
fn marks_of(head: &Head) -> u64 {
    let fetched = if head.bits & FETCHED != 0 { table::FETCHED } else { 0 };
    let referenced = if head.bits & REFERENCED != 0 { table::REFERENCED } else { 0 };
    fetched | referenced
}

/// Gives the copy of an item what only its entry knows: whether and when it was read.
#[inline]
pub(super) fn restore_marks(found: &Found, bytes: &mut [u8]) {
    let fetched = if found.entry & table::FETCHED != 0 { FETCHED } else { 0 };
    let referenced = if found.entry & table::REFERENCED != 0 { REFERENCED } else { 0 };
    item::set_bits(bytes, fetched | referenced);
    let age = Head::read(bytes).accessed.age;
    item::set_accessed(bytes, item::Moment { second: found.second, age });
}
