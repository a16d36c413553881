//! What one thread of the event loop holds, and what it is doing.

use load::Events;
use wire::{Input, Ns};

use super::super::config::{Parts, WorkerConfig};
use super::super::recorder::Recorder;
use super::super::slot::{Slot, SlotConfig};
use super::super::timed::Timed;

/// A thread's state.
pub(in crate::drive) struct Worker<T> {
    pub(super) config: WorkerConfig,
    pub(super) slot_config: SlotConfig,
    pub(super) slots: Vec<Slot>,
    pub(super) transport: T,
    pub(super) recorder: Recorder,
    pub(super) events: Events,
    /// Lent to every connection in turn: only an unfinished answer stays with its connection.
    pub(super) lent: Input,
    pub(super) trouble: Option<String>,
    /// The largest datagram that has been sent to prepare, in bytes.
    pub(super) largest_bytes: usize,
    /// How many runs have begun: each gets arrivals of its own.
    pub(super) runs: u64,
    /// How far the wall clock is ahead of the run's, as of the last run's begin.
    pub(super) unix_ns: u64,
}

/// What the slots are filled with while a piece runs.
pub(super) enum Work {
    Prepare(Parts),
    Closed {
        until: Ns,
    },
    /// Each slot's steps, until all are done or the run is stopped.
    Steps {
        stopped: bool,
    },
    /// A slow reader pauses for this long after what it has read.
    Streams {
        until: Ns,
        pause_ns: u64,
    },
    Timed(Timed),
}

impl Work {
    pub(super) fn is_timed(&self) -> bool {
        matches!(self, Self::Timed(_))
    }
}
