//! The configuration of one thread of load, and its commands.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use load::{Scenario, Stream, Workload};
use wire::Ns;

use super::arrivals::Arrivals;
use super::live_stats::LiveStats;
use super::schedule::{ArrivalTimes, Seed};
use super::timed::Timed;

/// The configuration of one thread of load.
pub(super) struct WorkerConfig {
    pub(super) group: usize,
    /// The operations of its slots.
    pub(super) scenario: Scenario,
    /// The workload about the target of this session, shared by all slots.
    pub(super) workload: Arc<dyn Workload>,
    pub(super) arrivals: Arrivals,
    pub(super) spin: bool,
    pub(super) slots: std::ops::Range<usize>,
    /// This thread's index in its group, and the number of threads there.
    pub(super) thread: (usize, usize),
    pub(super) timeout_ns: u64,
    pub(super) cpu: Option<usize>,
    pub(super) round: u64,
    pub(super) clock_zero: Ns,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) live: Option<Arc<LiveStats>>,
}

impl WorkerConfig {
    /// The operations of a slot.
    pub(super) fn stream(&self, slot: usize) -> Stream {
        let name = (self.group as u64) << 32 | slot as u64;
        let make = match self.arrivals {
            Arrivals::Steps => Stream::of_steps,
            Arrivals::Subscribe { .. } => Stream::of_streams,
            Arrivals::Closed | Arrivals::Think(_) | Arrivals::Open(_) => Stream::new,
        };
        make(&self.scenario, &*self.workload, self.round, name)
    }

    /// The schedule of this thread's run of that number; `None` in a closed loop. Each run gets
    /// arrivals of its own, the same for every target.
    pub(super) fn timed(&self, run: u64, start: Ns, until: Ns, places: &[usize]) -> Option<Timed> {
        match &self.arrivals {
            Arrivals::Closed | Arrivals::Steps | Arrivals::Subscribe { .. } => None,
            Arrivals::Think(pause) => Some(Timed::think(start, until, pause.ns, places)),
            Arrivals::Open(schedule) => {
                let seed = Seed { of_group: self.round ^ (self.group as u64) << 48, run };
                let arrivals = ArrivalTimes::new(schedule, seed, self.thread);
                Some(Timed::open(start, until, arrivals, places))
            }
        }
    }
}

/// What a thread is commanded to do.
#[derive(Clone, Debug)]
pub(super) enum Command {
    /// Write these parts of the preparation.
    Prepare(Parts),
    /// Send operations for this many nanoseconds.
    Run(u64),
}

/// Parts of the preparation.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// Those that are still to be written.
    pub(super) left: std::ops::Range<u64>,
    /// Whether each waits for the answer to the one before.
    pub(super) in_order: bool,
    /// How long an answer may take, in nanoseconds, where that differs from other answers.
    pub(super) within_ns: Option<u64>,
    /// How many all threads have begun to write.
    pub(super) begun: Arc<AtomicU64>,
}

impl Parts {
    /// The next one to be written.
    pub(super) fn next(&mut self) -> Option<u64> {
        let part = self.left.next()?;
        self.begun.fetch_add(1, Ordering::Relaxed);
        Some(part)
    }
}
