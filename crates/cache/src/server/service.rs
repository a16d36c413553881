//! What all connections of one server share.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Options;
use crate::model::{Clock, MakeError, Store};

/// Reads the loop's counters.
pub(super) type ReadCounters = Box<dyn Fn() -> wire::Counters + Send + Sync>;

/// What one thread counts that the store does not. Aligned so that no two threads write to one
/// cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct ThreadCounts {
    /// Meta commands.
    pub(super) cmd_meta: AtomicU64,
}

/// Spoils values on purpose, to prove that a load generator finds wrong answers.
#[derive(Debug)]
struct Spoiler {
    every: u64,
    sent: AtomicU64,
}

/// The store and what belongs to it.
pub struct Service {
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) options: Options,
    pub(super) threads: Vec<ThreadCounts>,
    /// Set once the loop runs; a service without a loop, as in tests, has none.
    pub(super) counters: OnceLock<ReadCounters>,
    spoiler: Option<Spoiler>,
}

impl Service {
    /// A service with an empty store. `clock` says when it started.
    ///
    /// # Errors
    /// When the options make no sense or the system has not so much memory.
    pub fn new(options: Options, clock: Clock) -> Result<Self, MakeError> {
        let spoil = |every| Spoiler { every, sent: AtomicU64::new(0) };
        Ok(Self {
            store: Store::new(options.limits())?,
            clock,
            threads: (0..options.threads.max(1)).map(|_| ThreadCounts::default()).collect(),
            counters: OnceLock::new(),
            spoiler: options.corrupt_every.filter(|every| *every > 0).map(spoil),
            options,
        })
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Flips a bit in the first byte of a value of `value_bytes`, when a test has asked for it and
    /// it is this value's turn.
    #[inline]
    pub(super) fn corrupt(&self, sent: &mut [u8], value_bytes: usize) {
        if let Some(spoiler) = &self.spoiler {
            let number = spoiler.sent.fetch_add(1, Relaxed) + 1;
            if number % spoiler.every == 0 && value_bytes > 0 {
                sent[value_bytes / 2] ^= 1;
            }
        }
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("options", &self.options).finish_non_exhaustive()
    }
}
