//! The other client side: for what exists only as a library or a program and can't be said as
//! bytes. A thread per slot calls it, with the same schedule, checks, histograms and ledger.

use wire::ProtocolError;

use crate::{Finding, Op};

/// What a call gave.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// How many keys or updates were answered, right or wrong: the unit of throughput.
    pub keys: u32,
    /// How many of them were answered with "not there".
    pub misses: u32,
    /// How many of them were answered wrongly.
    pub wrong: u32,
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
    /// One key, answered rightly.
    pub fn right() -> Self {
        Self { keys: 1, ..Self::default() }
    }

    /// One key that is not there.
    pub fn miss() -> Self {
        Self { keys: 1, misses: 1, ..Self::default() }
    }

    /// One key, answered wrongly.
    pub fn wrong(finding: Finding) -> Self {
        Self { keys: 1, wrong: 1, finding: Some(finding), ..Self::default() }
    }
}

/// One slot's client: calls block until they are answered.
pub trait Caller: Send {
    /// Writes the first version of `key`.
    ///
    /// # Errors
    /// A [`ProtocolError`] when nothing more can be called: the slot ends, and the trial says why.
    fn prepare(&mut self, key: u64) -> Result<Outcome, ProtocolError>;

    /// Does one operation and checks its answer.
    ///
    /// # Errors
    /// As [`Caller::prepare`].
    fn call(&mut self, op: &Op<'_>) -> Result<Outcome, ProtocolError>;
}
