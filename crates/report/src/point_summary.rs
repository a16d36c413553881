//! The results of one point, by target.

use judge::SeriesInterval;
use ledger::PointRow;

use crate::call_values::ValueFigures;
use crate::counters::CounterFigures;
use crate::figures::Figures;
use crate::groups::ClientsFigures;
use crate::limits::LimitsSummary;
use crate::slices::Drift;
use crate::streams::StreamFigures;

/// What one point showed.
#[derive(Debug, Clone, PartialEq)]
pub struct PointSummary {
    /// The point.
    pub row: PointRow,
    /// Rounds begun.
    pub rounds: usize,
    /// Rounds in which the trials of all targets are valid.
    pub valid_rounds: usize,
    /// Rounds in which no trial is invalid and one is disturbed.
    pub disturbed_rounds: usize,
    /// How long a trial was measured: the median, in ns.
    pub measured_ns: Option<u64>,
    /// How long a slice was: the median over trials of the longest, in ns; `None` when trials
    /// weren't sliced.
    pub slice_ns: Option<u64>,
    /// What each target that was measured here showed, in the suite's order.
    pub targets: Vec<TargetSummary>,
}

/// What one target showed at one point.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetSummary {
    /// The target.
    pub target: usize,
    /// Its trials here.
    pub trials: usize,
    /// Those of them that are valid.
    pub valid_trials: usize,
    /// Those of them that are disturbed.
    pub disturbed_trials: usize,
    /// Those of its valid trials in which it was overloaded.
    pub overloaded_trials: usize,
    /// Its trials in which it didn't start.
    pub failed_starts: usize,
    /// Slices that were disturbed, set aside, and measured again.
    pub slices_measured_again: usize,
    /// The rate over its valid trials, with its interval; `None` when there is none.
    pub rate: Option<SeriesInterval>,
    /// The run's primary metric in the same way.
    pub primary: Option<SeriesInterval>,
    /// Its valid trials taken as one, with percentiles of the merged histograms.
    pub figures: Figures,
    /// Each group of clients over its operations, of all valid trials.
    pub groups: Vec<ClientsFigures>,
    /// What the streams of each group of clients have brought, of all valid trials.
    pub stream_groups: Vec<(String, StreamFigures)>,
    /// How long its valid trials were measured, together.
    pub measured_ns: u64,
    /// What its calls measured themselves, of all valid trials.
    pub values: Vec<ValueFigures>,
    /// What it counted itself, in all valid trials.
    pub counters: Vec<CounterFigures>,
    /// How its rate changed from the first to the last slices; `None` when it wasn't sliced finely
    /// enough.
    pub drift: Option<Drift>,
    /// What limited it.
    pub limits: LimitsSummary,
    /// Operations of all its trials: a wrong answer counts even in a trial that isn't valid.
    pub operations_of_all: u64,
    /// Wrong answers of all its trials.
    pub wrong_of_all: u64,
    /// Operations not answered in time, of all its trials.
    pub missing_of_all: u64,
    /// Operations whose answers nobody checked, of all its trials.
    pub unchecked_of_all: u64,
}

impl PointSummary {
    /// What one target showed here; `None` when it has no trial at this point.
    pub fn of_target(&self, target: usize) -> Option<&TargetSummary> {
        self.targets.iter().find(|summary| summary.target == target)
    }
}
