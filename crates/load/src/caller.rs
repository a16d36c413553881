//! The other client side: for what exists only as a library or a program and can't be said as
//! bytes. A thread per slot calls it, with the same schedule, checks, histograms and ledger.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use wire::ProtocolError;

use crate::dialect::Finding;
use crate::mix::Op;

/// What a call gave.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// How many answers it brought, right or wrong: the unit of throughput.
    pub answers: u32,
    /// How many of them say that there is no such thing.
    pub misses: u32,
    /// How many of them are wrong.
    pub wrong: u32,
    /// How many of them say in good order that the operation is not done, and should not have.
    pub refused: u32,
    /// The first wrong answer's or refusal's bytes.
    pub finding: Option<Finding>,
    /// How long it took by the call's own measure; `None` is the time that the call took.
    pub took: Option<Took>,
    /// What it cost the target, where only the call can tell.
    pub cost: Option<Cost>,
    /// Figures that the call measured itself, by name: each is kept.
    pub figures: Vec<(String, f64)>,
}

/// How long a call took by its own measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Took {
    /// To the last answer: what the client looks at afterwards isn't in it.
    pub elapsed_ns: u64,
    /// CPU time of the calling thread meanwhile.
    pub cpu_ns: u64,
    /// Whether that is the target's work: a library that the client calls.
    pub by_target: bool,
}

impl Took {
    /// Adds what another call took.
    pub fn add(&mut self, other: Self) {
        self.elapsed_ns += other.elapsed_ns;
        self.cpu_ns += other.cpu_ns;
        self.by_target |= other.by_target;
    }
}

/// What measures how long a call took, on the thread that calls.
#[derive(Debug)]
pub struct Stopwatch {
    start: Instant,
    cpu_ns: u64,
}

impl Stopwatch {
    /// Begins now.
    pub fn start() -> Self {
        Self { cpu_ns: thread_ns(), start: Instant::now() }
    }

    /// What passed since.
    pub fn stop(&self) -> Took {
        let elapsed_ns = self.start.elapsed().as_nanos() as u64;
        let cpu_ns = thread_ns().saturating_sub(self.cpu_ns);
        Took { elapsed_ns, cpu_ns, by_target: false }
    }
}

/// CPU time of the calling thread.
fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What a call cost its target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// CPU time in user mode.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
    /// The most memory that was resident at once.
    pub peak_bytes: u64,
    /// CPU time of the processes that watch it, which are the load's: no part of the above.
    pub watcher_ns: u64,
}

impl Cost {
    /// Adds what another call cost; memory is the larger of the two.
    pub fn add(&mut self, other: Self) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
        self.watcher_ns += other.watcher_ns;
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
    }
}

impl Outcome {
    /// One right answer.
    pub fn right() -> Self {
        Self { answers: 1, ..Self::default() }
    }

    /// One right answer that says that there is no such thing.
    pub fn miss() -> Self {
        Self { answers: 1, misses: 1, ..Self::default() }
    }

    /// One wrong answer.
    pub fn wrong(finding: Finding) -> Self {
        Self { answers: 1, wrong: 1, finding: Some(finding), ..Self::default() }
    }
}

/// One slot's client: calls block until they are answered.
///
/// A call that is not back after the time-out of its clients is missing. One that doesn't come back
/// soon after that ends the slot: its thread is left behind, and the trial says why.
pub trait Caller: Send {
    /// Writes one part of the [preparation](crate::Preparation). Never called where there is none.
    ///
    /// # Errors
    /// A [`ProtocolError`] when nothing more can be called: the slot ends, and the trial says why.
    fn prepare(&mut self, part: u64) -> Result<Outcome, ProtocolError> {
        let _ = part;
        Ok(Outcome::default())
    }

    /// Does one operation and checks its answer.
    ///
    /// # Errors
    /// As [`Caller::prepare`].
    fn call(&mut self, op: Op) -> Result<Outcome, ProtocolError>;
}
