//! The memory of all data blocks that are being received, with a limit: clients that announce large
//! blocks and never send them can only exhaust this.
//!
//! A block reserves all its bytes as soon as it is announced, so that one that has begun can always
//! be finished. While others are refused, it has to come with at least [`MIN_BYTES`] each
//! [`CHECK_NS`], or its connection is closed: data that are announced and not sent would otherwise
//! keep large values of all clients out for ever. Without refusals it may take its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use wire::Ns;

/// How often the progress of a block is checked.
const CHECK_NS: Ns = 1_000_000_000;

/// What has to come of a block between two checks, while others are refused.
const MIN_BYTES: usize = 64 << 10;

/// The memory that all blocks of a service have reserved.
#[derive(Debug)]
pub(super) struct IncomingMemory {
    limit_bytes: usize,
    reserved_bytes: AtomicUsize,
    /// Refused blocks since the start.
    refused: AtomicU64,
    /// How many of them are no longer counted.
    forgotten: AtomicU64,
}

/// The progress of a block at its last check.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    filled_bytes: usize,
    refused: u64,
    /// When it is checked next.
    pub(super) check_at: Ns,
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
        let (reserved_bytes, refused) = (AtomicUsize::new(0), AtomicU64::new(0));
        Self { limit_bytes, reserved_bytes, refused, forgotten: AtomicU64::new(0) }
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

    /// Returns the progress of a block of which `filled_bytes` have come.
    pub(super) fn progress(&self, now: Ns, filled_bytes: usize) -> Progress {
        Progress { filled_bytes, refused: self.refused.load(Relaxed), check_at: now + CHECK_NS }
    }

    /// Whether a block came too slowly since a check while others were refused.
    pub(super) fn is_too_slow(&self, since: &Progress, filled_bytes: usize) -> bool {
        debug_assert!(filled_bytes >= since.filled_bytes, "a block has lost bytes");
        let is_slow = filled_bytes - since.filled_bytes < MIN_BYTES;
        is_slow && self.refused.load(Relaxed) != since.refused
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
        self.refused.load(Relaxed) - self.forgotten.load(Relaxed)
    }

    /// Resets the number of refused blocks.
    pub(super) fn reset_refused(&self) {
        self.forgotten.store(self.refused.load(Relaxed), Relaxed);
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
