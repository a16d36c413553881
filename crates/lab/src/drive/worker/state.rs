//! The state of one thread of the event loop.

use load::Events;
use wire::{Input, Ns, Outcome};

use super::super::config::{Parts, WorkerConfig};
use super::super::recorder::Recorder;
use super::super::slot::{Slot, SlotConfig};
use super::super::timed::Timed;

/// The most bytes read for one slot by one submission; after as many a slot is read by calls of
/// its own, with more space. Not a power of two, so that the starts of all inputs don't share the
/// same few cache sets.
pub(super) const READ_BYTES: usize = (16 << 10) + 5 * 64;

/// The memory of a thread's submissions.
#[derive(Debug, Default)]
pub(super) struct Submissions {
    /// What each slot of a submission is read into.
    pub(super) inputs: Vec<Input>,
    /// The slots that are read, and their outcomes.
    pub(super) reading: Vec<usize>,
    pub(super) outcomes: Vec<Outcome>,
    /// The slots whose requests wait for the next submission of sends.
    pub(super) sending: Vec<usize>,
}

impl Submissions {
    /// The memory for a number of slots, of which one submission takes at most `most`.
    pub(super) fn new(slots: usize, most: usize) -> Self {
        let count = if most > 1 { slots.min(most) } else { 0 };
        Self { inputs: (0..count).map(|_| Input::new()).collect(), ..Self::default() }
    }
}

/// A thread's state.
pub(in crate::drive) struct Worker<T> {
    pub(super) config: WorkerConfig,
    pub(super) slot_config: SlotConfig,
    pub(super) slots: Vec<Slot>,
    pub(in crate::drive) transport: T,
    pub(super) recorder: Recorder,
    pub(super) events: Events,
    /// Lent to every connection in turn: only an unfinished answer stays with its connection.
    pub(super) lent: Input,
    pub(super) submissions: Submissions,
    pub(super) trouble: Option<String>,
    /// The first fault of a connection that broke and was made again.
    pub(super) fault: Option<String>,
    /// Whether every connection was made once.
    pub(super) is_open: bool,
    /// The largest datagram that has been sent to prepare, in bytes.
    pub(super) largest_bytes: usize,
    /// How many runs have begun: each gets arrivals of its own.
    pub(super) runs: u64,
    /// How far the wall clock is ahead of the run's, as of the last run's begin.
    pub(super) unix_ns: u64,
}

impl<T> Worker<T> {
    /// How long a command took that began at `start`, as far as its figures are about it.
    ///
    /// Slots of a closed loop end with their last answers, one soon and another late: their mean
    /// leaves out the time in which a slot has no more to do. A schedule lasts to its end, at
    /// least. What is read while streams end doesn't count.
    pub(super) fn duration_ns(&self, work: &Work, start: Ns) -> u64 {
        let last = match work {
            Work::Closed { .. } => {
                let took = |slot: &Slot| slot.last_answer.saturating_sub(start);
                return self.slots.iter().map(took).sum::<u64>() / self.slots.len().max(1) as u64;
            }
            Work::Streams { until, .. } => self.recorder.last_answer.min(*until),
            Work::Timed(timed) => self.recorder.last_answer.max(timed.ends()),
            Work::Prepare(_) | Work::Steps { .. } => self.recorder.last_answer,
        };
        last.saturating_sub(start)
    }

    /// What the answers of a closed loop that began at `start` are divided by for their rate; of
    /// other work zero.
    ///
    /// Where a target answers one request at a time, a slot's first answer comes sooner than its
    /// others, which queue behind those of all slots: answers over the mean of the slots' ends are
    /// too many. From the slots' first answers to their last the rate is that of the loop. It lies
    /// between all answers over the end of the last slot and over the mean of their ends, which are
    /// right where the target is always busy, and where each slot has a server of its own.
    pub(super) fn loop_ns(&self, work: &Work, start: Ns) -> u64 {
        let Work::Closed { .. } = work else { return 0 };
        let mean_ns = self.duration_ns(work, start);
        let last = self.slots.iter().map(|slot| slot.last_answer).max();
        let last_ns = last.unwrap_or(start).saturating_sub(start);
        let settled: u64 = self.slots.iter().map(|slot| slot.settled).sum();
        let behind = self.slots.iter().map(Slot::behind_the_first);
        let (requests, took_ns) = behind.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let of_each_ns = took_ns as f64 / requests.max(1) as f64;
        let loop_ns = of_each_ns * settled as f64 / self.slots.len().max(1) as f64;
        (loop_ns as u64).clamp(mean_ns.min(last_ns), last_ns)
    }
}

/// What the slots are filled with while a command is executed.
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

    /// Requests that were under way on a slot are lost: of a schedule their places are free. Those
    /// of a slot that is gone are taken out when they are next tried.
    pub(super) fn free(&mut self, slot: usize, lost: usize, now: Ns) {
        if let Self::Timed(timed) = self {
            (0..lost).for_each(|_| timed.free(slot, now));
        }
    }
}
