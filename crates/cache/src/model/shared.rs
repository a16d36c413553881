//! The few cells that threads share without a lock. Each stands for itself: nothing else is read or
//! written in an order with it, so all accesses are relaxed.
//!
//! `tests/shared.rs` carries this file out under loom, which tries all orders that the memory model
//! allows: `super::atomic` is the standard library's here and loom's there.

use super::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};

/// What all parts of a store share.
#[derive(Debug)]
pub(super) struct Shared {
    /// The number of the policy that they go by now.
    policy: AtomicU8,
    /// Whether one of them has found that it holds more than a processor's caches do.
    is_large: AtomicBool,
    /// The second from which on everything stored before is gone; 0 is none.
    flush_s: AtomicU32,
}

impl Shared {
    /// Begins with the policy of this number.
    pub(super) fn new(policy: u8) -> Self {
        Self {
            policy: AtomicU8::new(policy),
            is_large: AtomicBool::new(false),
            flush_s: AtomicU32::new(0),
        }
    }

    /// Whether a shard has reported that it is large.
    #[inline]
    pub(super) fn is_large(&self) -> bool {
        self.is_large.load(Relaxed)
    }

    /// Reports that a shard is large.
    pub(super) fn become_large(&self) {
        self.is_large.store(true, Relaxed);
    }

    /// The number of the policy in force.
    #[inline]
    pub(super) fn policy(&self) -> u8 {
        self.policy.load(Relaxed)
    }

    /// Puts another policy in force.
    pub(super) fn set_policy(&self, policy: u8) {
        self.policy.store(policy, Relaxed);
    }

    /// Schedules a flush for that second, in place of an earlier schedule.
    pub(super) fn flush_at(&self, at_s: u32) {
        self.flush_s.store(at_s, Relaxed);
    }

    /// Whether a flush is due: exactly one caller gets true.
    #[inline]
    pub(super) fn is_due(&self, now_s: u32) -> bool {
        let flush_s = self.flush_s.load(Relaxed);
        flush_s != 0
            && flush_s <= now_s
            && self.flush_s.compare_exchange(flush_s, 0, Relaxed, Relaxed).is_ok()
    }
}
