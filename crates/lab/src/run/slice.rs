//! A stretch of a trial between two changes of target.

use judge::Stretch;
use ledger::Cause;
use wire::Ns;

use crate::observe::{Cpu, Reading};

/// One slice.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    pub(crate) start: Ns,
    pub(crate) duration_ns: u64,
    pub(crate) operations: u64,
    pub(crate) server: Option<Cpu>,
    pub(crate) generator: Cpu,
    /// The target's own counters.
    pub(crate) counters: Reading,
    /// What disturbed it.
    pub(crate) causes: Vec<Cause>,
    /// Whether anything did, and the suite doesn't ignore that.
    pub(crate) is_disturbed: bool,
    /// What time that took from it, where it is disturbed; `None` is unseen.
    pub(crate) taken: Option<Vec<Stretch>>,
}
