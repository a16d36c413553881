//! The memory of all data blocks that are being received, with a limit: clients that announce large
//! blocks and never send them can only exhaust this.
//!
//! A block reserves all its bytes as soon as it is announced, so that one that has begun can always
//! be finished.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The memory that all blocks of a service have reserved.
#[derive(Debug)]
pub(super) struct IncomingMemory {
    limit_bytes: usize,
    reserved_bytes: AtomicUsize,
    refused: AtomicU64,
}

/// A part of it, released when this is dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    of: Arc<IncomingMemory>,
    bytes: usize,
}

impl IncomingMemory {
    /// Creates a limit of `limit_bytes` for all blocks together.
    pub(super) fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, reserved_bytes: AtomicUsize::new(0), refused: AtomicU64::new(0) }
    }

    /// Reserves `bytes`. Returns `None`, and counts it, where the limit would be passed.
    pub(super) fn reserve(self: &Arc<Self>, bytes: usize) -> Option<Reservation> {
        let more =
            |claimed: usize| claimed.checked_add(bytes).filter(|all| *all <= self.limit_bytes);
        if self.reserved_bytes.fetch_update(Relaxed, Relaxed, more).is_err() {
            self.refused.fetch_add(1, Relaxed);
            return None;
        }
        Some(Reservation { of: Arc::clone(self), bytes })
    }

    /// Returns the limit, in bytes.
    pub(super) fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Returns what is reserved now, in bytes.
    pub(super) fn reserved_bytes(&self) -> usize {
        self.reserved_bytes.load(Relaxed)
    }

    /// Returns the number of refused blocks.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Resets the number of refused blocks.
    pub(super) fn reset_refused(&self) {
        self.refused.store(0, Relaxed);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.of.reserved_bytes.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::IncomingMemory;
    use std::sync::Arc;

    use proptest::prelude::*;

    proptest! {
        #[test]
        fn claims_never_pass_the_limit_and_all_come_back(
            steps in prop::collection::vec((0_usize..60, 0_usize..8), 1..200),
        ) {
            let incoming = Arc::new(IncomingMemory::new(100));
            let mut reservations = Vec::new();
            let mut refused = 0;
            for (bytes, leaves) in steps {
                let before = incoming.reserved_bytes();
                match incoming.reserve(bytes) {
                    Some(reservation) => reservations.push((bytes, reservation)),
                    None => {
                        prop_assert!(before + bytes > 100);
                        refused += 1;
                    }
                }
                let held: usize = reservations.iter().map(|(bytes, _)| bytes).sum();
                prop_assert!(held <= 100 && held == incoming.reserved_bytes());
                reservations.truncate(leaves);
            }
            prop_assert_eq!(incoming.refused(), refused);
            reservations.clear();
            prop_assert_eq!(incoming.reserved_bytes(), 0);
            prop_assert!(incoming.reserve(usize::MAX).is_none() && incoming.reserve(100).is_some());
        }
    }
}
