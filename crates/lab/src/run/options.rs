//! The inputs of a run, and how it may end.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ledger::{Ledger, LedgerError};

use super::progress::RunEvent;
use crate::deploy::DeployError;
use crate::plan::Plan;

/// The inputs of a run.
pub struct RunOptions<'a> {
    /// The points, targets and rounds to measure.
    pub plan: &'a Plan,
    /// This program, which serves services and guards targets.
    pub exe: &'a Path,
    /// Where results go.
    pub ledger: &'a mut Ledger,
    /// Facts of this program's build, for the fingerprint.
    pub build: &'a [(&'a str, String)],
    /// The parent of the run's log folder, which is called by the run's id.
    pub logs: &'a Path,
    /// The command line, for the ledger.
    pub command: String,
    /// The seed of all orders and operations.
    pub seed: u64,
    /// Short trials at the end.
    pub extras: Extras,
    /// Set by the caller to stop the run.
    pub stop: Arc<AtomicBool>,
    /// Called with every event.
    pub progress: &'a mut dyn FnMut(&RunEvent<'_>),
}

/// Short trials after the last round; their timings are not kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras {
    /// Whether the system calls of an operation are counted.
    pub trace: bool,
    /// How often each target is profiled.
    pub profiles: u32,
}

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The ledger can't be written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A target can't be built.
    #[error(transparent)]
    Build(#[from] DeployError),
    /// A system call of the lab itself failed.
    #[error("{what}: {source}")]
    System {
        /// What failed.
        what: String,
        /// What the system says.
        source: std::io::Error,
    },
}

/// The note of a run that was aborted begins with this, and goes on with the condition.
pub const ABORTED: &str = "aborted, because ";

/// That of a run that ended early, which goes on with why.
pub const ENDED_EARLY: &str = "ended early: ";

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All rounds are measured.
    Finished,
    /// The caller stopped it; what was measured is kept.
    Interrupted,
    /// A condition of the suite's `abort_on` was met; what was measured is kept.
    Aborted(String),
    /// A target fails at every start in the same way; what was measured is kept.
    Hopeless(String),
}
