//! The other client side: for what exists only as a library or a program and can't be said as
//! bytes. A thread per slot calls it, with the same schedule, checks, histograms and ledger.

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
    /// How many of them refuse the operation, and should not have.
    pub refused: u32,
    /// The first wrong answer's bytes.
    pub finding: Option<Finding>,
    /// How long it took by the call's own measure; `None` is the time that the call took.
    pub took_ns: Option<u64>,
    /// What it cost the target, where only the call can tell.
    pub cost: Option<Cost>,
    /// Figures that the call measured itself, by name: each is kept.
    pub figures: Vec<(String, f64)>,
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
}

impl Cost {
    /// Adds what another call cost; memory is the larger of the two.
    pub fn add(&mut self, other: Self) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
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
