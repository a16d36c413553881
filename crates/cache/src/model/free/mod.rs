//! A store whose readers never take a lock: they copy an item while a sequence number says that
//! nobody has written meanwhile, and begin anew when somebody has. Writers of one part take turns.
//! It is a step of the ladder, kept small: one ring for each part, FIFO or with a second chance,
//! and a table of a fixed size.
//!
//! Two kinds of reads go the writers' way: one that meets an expired item, which it removes, and
//! the first of a stale one, which it may win. So does one that has begun in vain
//! [`MOST_TRIES`] times.

mod part;
mod ring;
mod sequence;
mod table;

use std::cell::Cell;
use std::sync::atomic;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use super::item::{Head, Item, STALE};
use super::shard::Shard;
use super::{Counts, Hashed, Hasher, MakeError, Rules, Seconds};
pub(super) use part::Part;
use part::{Look, restore_marks};

/// A reader begins at most so often before it waits for the writer.
const MOST_TRIES: usize = 100;

/// A thread keeps at most so much memory for the copies of what it reads, in words.
const MOST_KEPT_WORDS: usize = 16 << 10;

/// Threads count their reads in so many places.
const STRIPES: usize = 16;

/// All parts.
#[derive(Debug)]
pub(super) struct Free {
    parts: Box<[Part]>,
    reads: [Reads; STRIPES],
}

/// What some threads have read. On cache lines of its own: a count that all threads share would
/// be the lock that there isn't.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Reads {
    hits: AtomicU64,
    misses: AtomicU64,
}

/// How many threads have read so far.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Where the copy of an item goes.
    static BUFFER: Cell<Vec<u64>> = const { Cell::new(Vec::new()) };

    /// Where this thread counts.
    static STRIPE: usize = THREADS.fetch_add(1, Relaxed) % STRIPES;
}

impl Free {
    /// `count` parts, a power of two, with so much memory each.
    pub(super) fn new(
        count: usize,
        budget_bytes: usize,
        item_bytes: usize,
        hasher: &Hasher,
        rules: Rules,
    ) -> Result<Self, MakeError> {
        let refused = || MakeError::OutOfMemory { bytes: budget_bytes.saturating_mul(count) };
        let part = |number| {
            let part = Part::new(budget_bytes, number, count, hasher.clone(), rules, item_bytes);
            part.ok().flatten().ok_or_else(refused)
        };
        let parts = (0..count).map(part).collect::<Result<_, _>>()?;
        Ok(Self { parts, reads: Default::default() })
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    #[inline]
    fn part(&self, hashed: &Hashed<'_>) -> &Part {
        // Their number is a power of two, so the mask keeps the index within them.
        &self.parts[hashed.shard as usize & (self.parts.len() - 1)]
    }

    /// Reads an item, as [`Shard::get`] does.
    #[inline]
    pub(super) fn get<const WINS: bool, R>(
        &self,
        now_s: Seconds,
        hashed: &Hashed<'_>,
        use_item: impl FnOnce(&Item<'_>) -> R,
    ) -> Option<R> {
        let mut buffer = BUFFER.take();
        let found = self.look::<WINS>(now_s, hashed, &mut buffer);
        let shown = match found {
            Some(is_there) => is_there.then(|| {
                let bytes = bytemuck::cast_slice(&buffer);
                use_item(&Head::read(bytes).item(bytes))
            }),
            None => self.change(now_s, hashed, |shard| {
                shard.get::<WINS>(now_s, hashed, None).map(|item| use_item(&item))
            }),
        };
        buffer.clear();
        buffer.shrink_to(MOST_KEPT_WORDS);
        BUFFER.set(buffer);
        shown
    }

    /// Whether the item is there, and then copies it; `None` says that only a writer can tell.
    #[inline]
    fn look<const WINS: bool>(
        &self,
        now_s: Seconds,
        hashed: &Hashed<'_>,
        buffer: &mut Vec<u64>,
    ) -> Option<bool> {
        let part = self.part(hashed);
        for _ in 0..MOST_TRIES {
            match part.look(hashed, buffer) {
                Look::Torn => std::hint::spin_loop(),
                Look::Missing => {
                    self.reads[STRIPE.with(|stripe| *stripe)].misses.fetch_add(1, Relaxed);
                    return Some(false);
                }
                Look::Found(found) => {
                    let bytes = bytemuck::cast_slice_mut(buffer);
                    restore_marks(&found, bytes);
                    let head = Head::read(bytes);
                    if head.is_expired(bytes, now_s) || WINS && head.bits & STALE != 0 {
                        return None;
                    }
                    part.note(&found, now_s);
                    self.reads[STRIPE.with(|stripe| *stripe)].hits.fetch_add(1, Relaxed);
                    return Some(true);
                }
            }
        }
        None
    }

    /// Has the item of a key changed.
    pub(super) fn change<R>(
        &self,
        now_s: Seconds,
        hashed: &Hashed<'_>,
        change: impl FnOnce(&mut Shard) -> R,
    ) -> R {
        self.part(hashed).change(now_s, hashed, change)
    }

    /// What was read without a lock.
    pub(super) fn counts(&self) -> Counts {
        let sum = |count: fn(&Reads) -> &AtomicU64| {
            self.reads.iter().map(|reads| count(reads).load(Relaxed)).sum()
        };
        Counts { get_hits: sum(|r| &r.hits), get_misses: sum(|r| &r.misses), ..Counts::default() }
    }

    /// Starts counting reads again from zero.
    pub(super) fn reset_counts(&self) {
        for reads in &self.reads {
            reads.hits.store(0, Relaxed);
            reads.misses.store(0, Relaxed);
        }
    }
}
