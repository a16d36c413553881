//! The results of one point, by target.

use judge::SeriesInterval;
use ledger::PointRow;

use crate::advice::ActivitySummary;
use crate::call_values::{OF_RUNS, ValueFigures};
use crate::counters::CounterFigures;
use crate::figures::Figures;
use crate::grade::Grade;
use crate::groups::GroupFigures;
use crate::limits::LimitsSummary;
use crate::sample_spread::SampleSpread;
use crate::slices::Drift;
use crate::streams::StreamFigures;
use crate::stretches::StretchFigures;

/// The results of one point.
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
    /// The measured time of a trial: the median, in ns.
    pub measured_ns: Option<u64>,
    /// The length of a slice: the median over trials of the longest, in ns; `None` when trials
    /// weren't sliced.
    pub slice_ns: Option<u64>,
    /// The results of each target that was measured here, in the suite's order.
    pub targets: Vec<TargetSummary>,
}

/// The results of one target at one point.
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
    /// Those of its trials in which it was overloaded, but for invalid ones.
    pub overloaded_trials: usize,
    /// Its trials in which it didn't start.
    pub failed_starts: usize,
    /// Slices that were disturbed, set aside, and measured again.
    pub slices_measured_again: usize,
    /// What the figures are worth, and of which trials they are: of the valid ones, else of the
    /// disturbed ones, else of the invalid ones.
    pub grade: Grade,
    /// The rate over these trials, with its interval; `None` when there is none.
    pub rate: Option<SeriesInterval>,
    /// The run's primary metric in the same way.
    pub primary: Option<SeriesInterval>,
    /// These trials taken as one, with percentiles of the merged histograms.
    pub figures: Figures,
    /// Each group of clients over its operations, of all valid trials.
    pub groups: Vec<GroupFigures>,
    /// The updates of each group of clients that subscribed, of all valid trials.
    pub stream_groups: Vec<(String, StreamFigures)>,
    /// The stretches of each group's schedule, of all valid trials.
    pub stretches: Vec<StretchFigures>,
    /// The measured time of its valid trials, together.
    pub measured_ns: u64,
    /// What their operations are divided by for their rate.
    pub rate_ns: u64,
    /// Figures that its calls measured themselves, of all valid trials.
    pub values: Vec<ValueFigures>,
    /// The samples of its operations, where they are evaluated in a process.
    pub samples: Option<SampleSpread>,
    /// Its own counters, over all valid trials.
    pub counters: Vec<CounterFigures>,
    /// The change of its rate from the first to the last slices; `None` when it wasn't sliced
    /// finely enough.
    pub drift: Option<Drift>,
    /// Its limits.
    pub limits: LimitsSummary,
    /// What its connections did, and what would help it, where it says so.
    pub activity: ActivitySummary,
    /// Operations of all its trials: a wrong answer counts even in a trial that isn't valid.
    pub operations_of_all: u64,
    /// Wrong answers among them.
    pub wrong_of_all: u64,
    /// Wrong answers beside them: while preparing and warming up, and in slices that were measured
    /// again.
    pub wrong_outside: u64,
    /// Operations that the target refused, of all its trials.
    pub refused_of_all: u64,
    /// Operations not answered in time, of all its trials.
    pub missing_of_all: u64,
    /// Operations whose answers were not checked, of all its trials.
    pub unchecked_of_all: u64,
}

impl PointSummary {
    /// The results of one target; `None` when it has no trial at this point.
    pub fn of_target(&self, target: usize) -> Option<&TargetSummary> {
        self.targets.iter().find(|summary| summary.target == target)
    }
}

impl TargetSummary {
    /// Whether its calls measured a figure of this name themselves.
    pub fn reports(&self, name: &str) -> bool {
        self.values.iter().any(|values| values.name == name)
    }

    /// Whether its operations are runs of a program, each a process.
    pub fn is_batch(&self) -> bool {
        OF_RUNS.iter().all(|name| self.reports(name))
    }
}
