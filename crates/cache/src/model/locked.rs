//! Shards behind locks: one lock for each, or one for all of them where they are for one thread, so
//! that a batch of reads takes it once.

use super::shard::Shard;
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// Shards that one lock covers.
pub(super) type Shards = Box<[Shard]>;

/// A lock on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Cell(Mutex<Shards>);

impl Cell {
    #[inline]
    fn lock(&self) -> MutexGuard<'_, Shards> {
        // A shard is never left half-changed by a panic that its own code could cause; the worst
        // that a poisoned lock can mean is a wrong count.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A power of two of shards.
#[derive(Debug)]
pub(super) struct Locked {
    cells: Box<[Cell]>,
    /// Each lock covers two to this power of shards.
    bits: u32,
}

impl Locked {
    /// These shards, behind a lock each or all behind one.
    pub(super) fn new(shards: Vec<Shard>, one_lock: bool) -> Self {
        let cell = |shards| Cell(Mutex::new(shards));
        if one_lock {
            let bits = shards.len().ilog2();
            return Self { cells: [cell(shards.into())].into(), bits };
        }
        let cells = shards.into_iter().map(|shard| cell([shard].into())).collect();
        Self { cells, bits: 0 }
    }

    /// The number of shards.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.cells.len() << self.bits
    }

    /// The shard of keys with this part of their hash.
    #[inline]
    pub(super) fn number(&self, hash: u32) -> usize {
        hash as usize & (self.len() - 1)
    }

    /// Takes the one lock, where there is only one.
    #[inline]
    pub(super) fn lock_all(&self) -> Option<MutexGuard<'_, Shards>> {
        match &*self.cells {
            [only] => Some(only.lock()),
            _ => None,
        }
    }

    /// Calls `act` with a shard, under its lock.
    #[inline]
    pub(super) fn at<R>(&self, number: usize, act: impl FnOnce(&mut Shard) -> R) -> R {
        let mut shards = self.cells[number >> self.bits].lock();
        act(&mut shards[number & ((1 << self.bits) - 1)])
    }

    /// Calls `look` with each shard, under its lock.
    pub(super) fn each(&self, mut look: impl FnMut(&mut Shard)) {
        for cell in &self.cells {
            cell.lock().iter_mut().for_each(&mut look);
        }
    }
}
