//! A run by points and targets: what it showed, free of how that is presented.
//!
//! Indices (`point`, `target`, `trial`) point into the vectors of [`Summary`].

use std::collections::HashMap;

use judge::{SeriesInterval, median, series_interval};
use ledger::{
    FindingRow, FingerprintRow, HistogramKind, HistogramRow, LedgerError, PointId, PointRow,
    RequirementRow, RunId, RunRow, RunView, SuiteRow, TargetId, TargetRow, TrialId, TrialRow,
    Validity,
};

use crate::compare::{Compared, compare};
use crate::figures::Figures;

/// What a run showed.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The run's id.
    pub id: RunId,
    /// The run.
    pub run: RunRow,
    /// Its suite.
    pub suite: SuiteRow,
    /// Its host and build.
    pub fingerprint: FingerprintRow,
    /// Its targets, in the suite's order; the first is what comparisons are about.
    pub targets: Vec<TargetRow>,
    /// Its points, in the sweep's order.
    pub points: Vec<PointSummary>,
    /// Its trials, by point, round and target; invalid ones too.
    pub trials: Vec<TrialSummary>,
    /// The first target against each other one, by metric, point and target.
    pub comparisons: Vec<Compared>,
    /// Wrong answers, in the order in which they came.
    pub findings: Vec<FindingSummary>,
    /// Requirements, by point.
    pub requirements: Vec<RequirementSummary>,
}

/// What one point showed.
#[derive(Debug, Clone, PartialEq)]
pub struct PointSummary {
    /// The point.
    pub row: PointRow,
    /// Rounds begun.
    pub rounds: usize,
    /// Rounds in which the trials of all targets are valid.
    pub valid_rounds: usize,
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
    /// The rate over its valid trials, with its interval; `None` when there is none.
    pub rate: Option<SeriesInterval>,
    /// Its valid trials taken as one, with percentiles of the merged histograms.
    pub figures: Figures,
    /// Operations of all its trials: a wrong answer counts even in a trial that isn't valid.
    pub operations_of_all: u64,
    /// Wrong answers of all its trials.
    pub wrong_of_all: u64,
    /// Operations not answered in time, of all its trials.
    pub missing_of_all: u64,
}

/// One trial.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialSummary {
    /// Its id.
    pub id: TrialId,
    /// Its point.
    pub point: usize,
    /// Its round's number, from 1.
    pub round: u32,
    /// Its target.
    pub target: usize,
    /// The row.
    pub row: TrialRow,
    /// Its metrics.
    pub figures: Figures,
}

/// One wrong answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingSummary {
    /// Its trial.
    pub trial: usize,
    /// The row.
    pub row: FindingRow,
}

/// One requirement at one point.
#[derive(Debug, Clone, PartialEq)]
pub struct RequirementSummary {
    /// Its point.
    pub point: usize,
    /// The row.
    pub row: RequirementRow,
}

impl Summary {
    /// Sums a run up.
    ///
    /// Fails when a histogram in the ledger is damaged.
    pub fn of(view: RunView) -> Result<Summary, LedgerError> {
        let overall = overall_histograms(&view.histograms);
        let point_index = index_of(view.points.iter().map(|(id, _)| *id));
        let trials = trial_summaries(&view, &point_index, &overall);
        let mut points = Vec::with_capacity(view.points.len());
        for (index, (_, row)) in view.points.iter().enumerate() {
            let here: Vec<&TrialSummary> = trials.iter().filter(|t| t.point == index).collect();
            points.push(point_summary(row, &here, &view, &overall)?);
        }
        let trial_index = index_of(trials.iter().map(|trial| trial.id));
        let findings = view.findings.into_iter().filter_map(|row| {
            Some(FindingSummary { trial: *trial_index.get(&row.trial_id)?, row })
        });
        let requirements = view.requirements.into_iter().filter_map(|row| {
            Some(RequirementSummary { point: *point_index.get(&row.point_id)?, row })
        });
        let targets: Vec<TargetRow> = view.targets.into_iter().map(|(_, row)| row).collect();
        Ok(Summary {
            id: view.id,
            comparisons: compare(&view.run, targets.len(), points.len(), &trials),
            run: view.run,
            suite: view.suite,
            fingerprint: view.fingerprint,
            findings: findings.collect(),
            requirements: requirements.collect(),
            targets,
            points,
            trials,
        })
    }

    /// The comparisons of one point.
    pub fn comparisons_at(&self, point: usize) -> impl Iterator<Item = &Compared> {
        self.comparisons.iter().filter(move |compared| compared.point == point)
    }

    /// The trials of one point.
    pub fn trials_at(&self, point: usize) -> impl Iterator<Item = (usize, &TrialSummary)> {
        self.trials.iter().enumerate().filter(move |(_, trial)| trial.point == point)
    }
}

impl PointSummary {
    /// What one target showed here; `None` when it has no trial at this point.
    pub fn of_target(&self, target: usize) -> Option<&TargetSummary> {
        self.targets.iter().find(|summary| summary.target == target)
    }
}

impl TrialSummary {
    /// Whether it may be compared.
    pub fn is_valid(&self) -> bool {
        self.row.validity == Validity::Valid
    }
}

type Overall<'view> = HashMap<TrialId, &'view HistogramRow>;

/// The latency histogram of all clients and operations of each trial.
fn overall_histograms(rows: &[HistogramRow]) -> Overall<'_> {
    let overall = rows.iter().filter(|row| {
        let whole = row.clients.is_empty() && row.operation.is_empty() && row.second.is_none();
        whole && row.kind == HistogramKind::Latency
    });
    overall.map(|row| (row.trial_id, row)).collect()
}

fn index_of<Id: std::hash::Hash + Eq>(ids: impl Iterator<Item = Id>) -> HashMap<Id, usize> {
    ids.enumerate().map(|(index, id)| (id, index)).collect()
}

fn trial_summaries(
    view: &RunView,
    point_index: &HashMap<PointId, usize>,
    overall: &Overall<'_>,
) -> Vec<TrialSummary> {
    let target_index: HashMap<TargetId, usize> = index_of(view.targets.iter().map(|(id, _)| *id));
    let rounds: HashMap<_, _> = view.rounds.iter().map(|(id, row)| (*id, row)).collect();
    let summary = |(id, row): &(TrialId, TrialRow)| {
        let round = rounds.get(&row.round_id)?;
        Some(TrialSummary {
            id: *id,
            point: *point_index.get(&round.point_id)?,
            round: round.ordinal,
            target: *target_index.get(&row.target_id)?,
            figures: Figures::of_trial(row, overall.get(id).copied()),
            row: row.clone(),
        })
    };
    // Foreign keys rule out trials without round or target; one would belong nowhere.
    view.trials.iter().filter_map(summary).collect()
}

fn point_summary(
    row: &PointRow,
    here: &[&TrialSummary],
    view: &RunView,
    overall: &Overall<'_>,
) -> Result<PointSummary, LedgerError> {
    let measured = |target: usize| here.iter().any(|trial| trial.target == target);
    let wanted: Vec<usize> = (0..view.targets.len()).filter(|target| measured(*target)).collect();
    let mut round_numbers: Vec<u32> = here.iter().map(|trial| trial.round).collect();
    round_numbers.dedup();
    let whole = |round: &&u32| {
        let valid = here.iter().filter(|trial| trial.round == **round && trial.is_valid());
        valid.count() == wanted.len()
    };
    let slices = view
        .slices
        .iter()
        .filter(|slices| slices.count > 1 && here.iter().any(|trial| trial.id == slices.trial_id));
    let slice_ns: Vec<u64> = slices.map(|slices| slices.longest_ns).collect();
    let finished = here.iter().filter(|trial| trial.row.measured_ns > 0);
    let measured_ns: Vec<u64> = finished.map(|trial| trial.row.measured_ns).collect();
    let mut targets = Vec::with_capacity(wanted.len());
    for target in &wanted {
        targets.push(target_summary(*target, here, view.run.confidence, overall)?);
    }
    Ok(PointSummary {
        row: row.clone(),
        rounds: round_numbers.len(),
        valid_rounds: round_numbers.iter().filter(whole).count(),
        measured_ns: median_ns(&measured_ns),
        slice_ns: median_ns(&slice_ns),
        targets,
    })
}

fn target_summary(
    target: usize,
    here: &[&TrialSummary],
    confidence: f64,
    overall: &Overall<'_>,
) -> Result<TargetSummary, LedgerError> {
    let all: Vec<&&TrialSummary> = here.iter().filter(|trial| trial.target == target).collect();
    let valid: Vec<&&&TrialSummary> = all.iter().filter(|trial| trial.is_valid()).collect();
    let rows: Vec<&TrialRow> = valid.iter().map(|trial| &trial.row).collect();
    let histograms = valid.iter().filter_map(|trial| overall.get(&trial.id).copied());
    let rates: Vec<f64> = valid.iter().filter_map(|trial| trial.figures.rate_per_s).collect();
    let sum = |of: fn(&TrialRow) -> u64| all.iter().map(|trial| of(&trial.row)).sum();
    Ok(TargetSummary {
        target,
        trials: all.len(),
        valid_trials: valid.len(),
        rate: series_interval(&rates, confidence),
        figures: Figures::merged(&rows, &histograms.collect::<Vec<_>>())?,
        operations_of_all: sum(|trial| trial.operations),
        wrong_of_all: sum(|trial| trial.wrong),
        missing_of_all: sum(|trial| trial.missing),
    })
}

fn median_ns(values: &[u64]) -> Option<u64> {
    let values: Vec<f64> = values.iter().map(|value| *value as f64).collect();
    median(&values).map(|value| value as u64)
}
