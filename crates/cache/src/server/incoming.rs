//! What data blocks on their way in may take together: a client that announces a large block and
//! never sends it keeps memory from nobody but others who announce one.
//!
//! A block claims all its bytes as soon as it is announced, so that one that has begun can always
//! be finished.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// What all blocks of a service have claimed.
#[derive(Debug)]
pub(super) struct Incoming {
    limit_bytes: usize,
    claimed_bytes: AtomicUsize,
    refused: AtomicU64,
}

/// Some of it, given back when this goes.
#[derive(Debug)]
pub(super) struct Claim {
    of: Arc<Incoming>,
    bytes: usize,
}

impl Incoming {
    /// Blocks may claim `limit_bytes` together.
    pub(super) fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, claimed_bytes: AtomicUsize::new(0), refused: AtomicU64::new(0) }
    }

    /// Claims `bytes`; `None`, and counted, when others have claimed too much already.
    pub(super) fn claim(self: &Arc<Self>, bytes: usize) -> Option<Claim> {
        let more =
            |claimed: usize| claimed.checked_add(bytes).filter(|all| *all <= self.limit_bytes);
        if self.claimed_bytes.fetch_update(Relaxed, Relaxed, more).is_err() {
            self.refused.fetch_add(1, Relaxed);
            return None;
        }
        Some(Claim { of: Arc::clone(self), bytes })
    }

    /// What blocks may claim together, in bytes.
    pub(super) fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// What they have claimed now, in bytes.
    pub(super) fn claimed_bytes(&self) -> usize {
        self.claimed_bytes.load(Relaxed)
    }

    /// How many blocks were refused.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Counts those refused from 0 again.
    pub(super) fn reset_refused(&self) {
        self.refused.store(0, Relaxed);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.of.claimed_bytes.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::Incoming;
    use std::sync::Arc;

    use proptest::prelude::*;

    proptest! {
        #[test]
        fn claims_never_pass_the_limit_and_all_come_back(
            steps in prop::collection::vec((0_usize..60, 0_usize..8), 1..200),
        ) {
            let incoming = Arc::new(Incoming::new(100));
            let mut claims = Vec::new();
            let mut refused = 0;
            for (bytes, leaves) in steps {
                let before = incoming.claimed_bytes();
                match incoming.claim(bytes) {
                    Some(claim) => claims.push((bytes, claim)),
                    None => {
                        prop_assert!(before + bytes > 100);
                        refused += 1;
                    }
                }
                let held: usize = claims.iter().map(|(bytes, _)| bytes).sum();
                prop_assert!(held <= 100 && held == incoming.claimed_bytes());
                claims.truncate(leaves);
            }
            prop_assert_eq!(incoming.refused(), refused);
            claims.clear();
            prop_assert_eq!(incoming.claimed_bytes(), 0);
            prop_assert!(incoming.claim(usize::MAX).is_none() && incoming.claim(100).is_some());
        }
    }
}
