//! How readers find out whether what they have read was being written: a sequence lock. It is odd
//! while somebody writes; who finds it even and the same before and after has read what was there
//! at one moment. Everything that is read and written between is atomic in itself, so that a read
//! in vain is a wrong value and never undefined behaviour (Boehm, "Can seqlocks get along with
//! programming language memory models?", MSPC 2012).
//!
//! `tests/shared.rs` carries this file out under loom: `super::atomic` is the standard library's
//! here and loom's there.

use super::atomic::Ordering::{Acquire, Relaxed, Release};
use super::atomic::{AtomicU64, fence};

/// How often something has begun or ended to be written.
#[derive(Debug)]
pub(super) struct Sequence(AtomicU64);

impl Sequence {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Begins to read; `None` while somebody writes.
    #[inline]
    pub(super) fn begin(&self) -> Option<u64> {
        let begun = self.0.load(Acquire);
        begun.is_multiple_of(2).then_some(begun)
    }

    /// Whether nothing has been written since a read has `begun`.
    #[inline]
    pub(super) fn is_same(&self, begun: u64) -> bool {
        fence(Acquire);
        self.0.load(Relaxed) == begun
    }

    /// Has something written by the one who has the writers' lock.
    pub(super) fn write<R>(&self, write: impl FnOnce() -> R) -> R {
        let before = self.0.load(Relaxed);
        self.0.store(before + 1, Relaxed);
        // Whoever sees anything of what is written sees that it is being written.
        fence(Release);
        let written = write();
        self.0.store(before + 2, Release);
        written
    }
}
