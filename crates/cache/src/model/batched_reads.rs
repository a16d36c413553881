//! Batched reads: consecutive reads of one batch of commands.
//!
//! An uncontended lock takes two atomic instructions that reads of other keys can't
//! overlap: 7 ns of the 60 ns that a get of a batch takes. A store for one thread therefore has one
//! lock, which is kept from one read of a batch to the next. One for several does not keep its
//! locks: others may wait for them.
//!
//! While that lock is kept, the items of a batch are found together: all index entries are asked
//! for from memory, then all items, and only then is the first of them read. A read waits twice for
//! memory, and the processor does not see the next command behind that.

use super::clock::Seconds;
use super::item::Item;
use super::key_hash::Hashed;
use super::locked::Shards;
use super::store::Store;
use crate::sync::MutexGuard;

/// The most keys of a batch.
pub const MAX_BATCH: usize = 16;

/// Reads that follow one another at one moment. While it lives, the thread that has it does nothing
/// else with the store.
#[derive(Debug)]
pub struct Reads<'s> {
    store: &'s Store,
    now_s: Seconds,
    kept: Option<MutexGuard<'s, Shards>>,
}

/// The keys of a batch, in their order.
#[derive(Debug, Default)]
pub struct Batch<'k> {
    all: [One<'k>; MAX_BATCH],
    count: usize,
}

/// One key, and where its item is likely to be.
#[derive(Clone, Copy, Debug, Default)]
struct One<'k> {
    hashed: Hashed<'k>,
    position: Option<u32>,
}

impl<'k> Batch<'k> {
    /// Adds a key that will be read in `store`; the caller sees to it that there is room.
    #[inline]
    pub fn add(&mut self, store: &Store, key: &'k [u8]) {
        self.all[self.count] = One { hashed: Hashed::of(&store.hasher, key), position: None };
        self.count += 1;
    }

    /// The key `number`, counted from 0.
    #[inline]
    pub fn key(&self, number: usize) -> &'k [u8] {
        self.all[number].hashed.key
    }

    /// The number of keys.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl Store {
    /// Begins reads at `now_s`.
    #[inline]
    pub fn reads(&self, now_s: Seconds) -> Reads<'_> {
        Reads { store: self, now_s, kept: None }
    }

    /// Whether [`Reads::find`] finds items.
    #[inline]
    pub fn finds_batches(&self) -> bool {
        self.limits.threads == 1
    }
}

impl<'s> Reads<'s> {
    /// Finds the items of these keys, where that can be done for all of them together.
    #[inline]
    pub fn find(&mut self, batch: &mut Batch<'_>) {
        let locked = &self.store.shards;
        let all = &mut batch.all[..batch.count];
        if all.len() < 2 || !self.keep() {
            return;
        }
        let Some(shards) = &self.kept else { return };
        for one in all.iter() {
            shards[locked.number(one.hashed.shard)].prefetch_entry(one.hashed.tag);
        }
        for one in all {
            let shard = &shards[locked.number(one.hashed.shard)];
            one.position = shard.prefetch_item(one.hashed.tag);
        }
    }

    /// Reads the item of `key`, if there is one, under its shard's lock. With `WINS`, the first
    /// reader of a stale item is to recache it: it finds the item [stale](Item::stale) and not
    /// yet [won](Item::won).
    #[inline]
    pub fn get<const WINS: bool, R>(
        &mut self,
        key: &[u8],
        use_item: impl FnOnce(&Item<'_>) -> R,
    ) -> Option<R> {
        let one = One { hashed: Hashed::of(&self.store.hasher, key), position: None };
        self.get_one::<WINS, R>(&one, use_item)
    }

    /// The same for the key `number` of a batch, counted from 0.
    #[inline]
    pub fn get_in_batch<const WINS: bool, R>(
        &mut self,
        batch: &Batch<'_>,
        number: usize,
        use_item: impl FnOnce(&Item<'_>) -> R,
    ) -> Option<R> {
        self.get_one::<WINS, R>(&batch.all[number], use_item)
    }

    #[inline]
    fn get_one<const WINS: bool, R>(
        &mut self,
        one: &One<'_>,
        use_item: impl FnOnce(&Item<'_>) -> R,
    ) -> Option<R> {
        let One { hashed, position } = one;
        let locked = &self.store.shards;
        let (number, now_s) = (locked.number(hashed.shard), self.now_s);
        if self.keep()
            && let Some(shards) = &mut self.kept
        {
            let item = shards[number].get::<WINS>(now_s, hashed, *position);
            return item.map(|item| use_item(&item));
        }
        locked
            .at(number, |shard| shard.get::<WINS>(now_s, hashed, None).map(|item| use_item(&item)))
    }

    /// Takes the store's only lock, if it has only one; whether that is kept now.
    #[inline]
    fn keep(&mut self) -> bool {
        if self.kept.is_none() && self.store.limits.threads == 1 {
            self.kept = self.store.shards.lock_all();
        }
        self.kept.is_some()
    }
}
