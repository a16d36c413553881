//! Several reads in a row, as a batch of commands brings them.
//!
//! A lock that nobody else wants takes two steps of the processor that reads of other keys can't
//! overlap: 7 ns of the 60 ns that a get of a batch takes. A store for one thread therefore keeps
//! its locks from one read of a batch to the next. One for several does not: others may wait for
//! them.

use super::{Cell, Hashed, Item, Parts, Seconds, Shard, Store};
use crate::sync::{MutexGuard, PoisonError, TryLockError};

/// At most so many locks are kept: as many as a store for one thread has, unless it is very large.
const MOST_KEPT: usize = 4;

/// Reads that follow one another at one moment. While it lives, the thread that has it does nothing
/// else with the store.
#[derive(Debug)]
pub struct Reads<'s> {
    store: &'s Store,
    now_s: Seconds,
    kept: [Option<MutexGuard<'s, Shard>>; MOST_KEPT],
}

impl Store {
    /// Begins reads at `now_s`.
    #[inline]
    pub fn reads(&self, now_s: Seconds) -> Reads<'_> {
        Reads { store: self, now_s, kept: [const { None }; MOST_KEPT] }
    }
}

impl<'s> Reads<'s> {
    /// Reads the item of `key`, if there is one, under its shard's lock. `WINS` says that of all
    /// who read a stale item, the first is told to store it anew, by finding it
    /// [stale](Item::stale) and not yet [won](Item::won).
    #[inline]
    pub fn get<const WINS: bool, R>(
        &mut self,
        key: &[u8],
        use_item: impl FnOnce(&Item<'_>) -> R,
    ) -> Option<R> {
        let hashed = Hashed::of(&self.store.hasher, key);
        let cells = match &self.store.parts {
            Parts::Locked(cells) => cells,
            Parts::Free(free) => return free.get::<WINS, R>(self.now_s, &hashed, use_item),
        };
        // The number of shards is a power of two, so the mask keeps the index within them.
        let number = hashed.shard as usize & (cells.len() - 1);
        if self.store.limits.threads > 1 || cells.len() > MOST_KEPT {
            let mut shard = cells[number].lock();
            return shard.get::<WINS>(self.now_s, &hashed).map(|item| use_item(&item));
        }
        if self.kept[number].is_none() {
            self.take(&cells[number], number);
        }
        let shard = self.kept[number].as_mut()?;
        shard.get::<WINS>(self.now_s, &hashed).map(|item| use_item(&item))
    }

    /// Takes one more lock. Who would have to wait for it lets go of the others first, so that
    /// nobody ever waits in a circle.
    #[cold]
    fn take(&mut self, cell: &'s Cell, number: usize) {
        let guard = match cell.0.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.kept = [const { None }; MOST_KEPT];
                cell.0.lock().unwrap_or_else(PoisonError::into_inner)
            }
        };
        self.kept[number] = Some(guard);
    }
}
