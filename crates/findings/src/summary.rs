//! A run by points and targets: its results, free of how they are presented.
//!
//! Indices (`point`, `target`, `trial`) point into the vectors of [`Summary`].

use judge::{Metric, Metrics};
use ledger::{
    CallRow, CarriedRow, EventRow, FindingRow, FingerprintRow, FloorRow, ProfileRow,
    RequirementRow, RunId, RunRow, RungRow, SlowRow, SuiteRow, TargetRow,
};

use crate::capacity::CapacitySummary;
use crate::compare::{Compared, Contest};
use crate::littles_law::LawViolation;
use crate::modes::ModesSummary;
use crate::point_summary::PointSummary;
use crate::scaling::Scaling;
use crate::trial_summary::{TrialSummary, at_point};

/// The results of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The run's id.
    pub id: RunId,
    /// Its identity, the same in every ledger.
    pub uid: String,
    /// The run.
    pub run: RunRow,
    /// Its suite.
    pub suite: SuiteRow,
    /// Its host and build.
    pub fingerprint: FingerprintRow,
    /// Its metrics, with the figures that its programs report.
    pub metrics: Metrics,
    /// Its targets, in the suite's order; comparisons are about the first.
    pub targets: Vec<TargetRow>,
    /// Its points, in the sweep's order.
    pub points: Vec<PointSummary>,
    /// Its trials, by point, round and target; invalid ones too.
    pub trials: Vec<TrialSummary>,
    /// The first target against each other one, by metric, point and target.
    pub comparisons: Vec<Compared>,
    /// Of a ladder each rung against the one before and the first, by the primary metric.
    pub rung_comparisons: Vec<Compared>,
    /// Wrong answers and refusals, in the order in which they came.
    pub findings: Vec<FindingSummary>,
    /// Events that ran against targets, in the order of trials.
    pub events: Vec<EventSummary>,
    /// The slowest requests of each trial, by trial, the slowest first.
    pub slow: Vec<SlowSummary>,
    /// Requirements, by point.
    pub requirements: Vec<RequirementSummary>,
    /// Which named loads its targets carry, each with its point and target.
    pub carried: Vec<(usize, usize, CarriedRow)>,
    /// System calls that were counted, by point, target and side.
    pub calls: Vec<CallSummary>,
    /// The floors of its host.
    pub floors: Vec<FloorRow>,
    /// Those of its targets that are rungs of a ladder, in their order.
    pub rungs: Vec<(usize, RungRow)>,
    /// Where the CPU time of targets went, in several profiles.
    pub profiles: Vec<(usize, ProfileRow)>,
    /// The parameters fixed beforehand, when the run is one comparison of two targets.
    pub contest: Option<Contest>,
    /// The highest load, when the run searches it.
    pub capacity: Option<CapacitySummary>,
    /// Trials in which Little's law is broken.
    pub littles_law: Vec<LawViolation>,
    /// Scalability over connections or threads, where they are swept.
    pub scalings: Vec<Scaling>,
    /// Targets with bimodal figures.
    pub modes: Vec<ModesSummary>,
    /// The build facts of each target, by name.
    pub facts: Vec<Vec<(String, String)>>,
}

/// One system call of one side at one point.
#[derive(Debug, Clone, PartialEq)]
pub struct CallSummary {
    /// The point.
    pub point: usize,
    /// The target.
    pub target: usize,
    /// The row.
    pub row: CallRow,
}

/// A row that belongs to a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct InTrial<Row> {
    /// The trial.
    pub trial: usize,
    /// The row.
    pub row: Row,
}

/// One event that happened.
pub type EventSummary = InTrial<EventRow>;

/// One of the slowest requests of a trial.
pub type SlowSummary = InTrial<SlowRow>;

/// One wrong answer or refusal.
pub type FindingSummary = InTrial<FindingRow>;

/// One requirement at one point.
#[derive(Debug, Clone, PartialEq)]
pub struct RequirementSummary {
    /// Its point.
    pub point: usize,
    /// The row.
    pub row: RequirementRow,
}

impl Summary {
    /// The metric that carries its verdicts; `None` when a newer loadline chose it.
    pub fn primary(&self) -> Option<&Metric> {
        self.metrics.named(&self.run.primary_metric)
    }

    /// The comparisons of one point.
    pub fn comparisons_at(&self, point: usize) -> impl Iterator<Item = &Compared> {
        self.comparisons.iter().filter(move |compared| compared.point == point)
    }

    /// The data that a target had to hold and its memory, in words, where they don't fit it: then
    /// it evicts, and what it evicts is missed.
    pub fn overfull(&self, target: usize) -> Option<&str> {
        let facts = self.facts.get(target)?;
        facts.iter().find(|(name, _)| name == "overfull").map(|(_, words)| words.as_str())
    }

    /// The trials of one point, with their indices.
    pub fn trials_at(&self, point: usize) -> impl Iterator<Item = (usize, &TrialSummary)> {
        let first = self.trials.partition_point(|trial| trial.point < point);
        (first..).zip(at_point(&self.trials, point))
    }
}
