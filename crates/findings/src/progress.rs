//! The progress of a run: each target's figures at each point over the rounds that have ended.
//!
//! Nothing is concluded here: verdicts wait for the end of the run.

use std::collections::{BTreeMap, BTreeSet};

use judge::{SeriesInterval, median, series_interval};
use ledger::{RoundId, RunState, SoFar, TrialRow, UNFINISHED, Validity};

use crate::assembly::index_of;
use crate::causes::Why;

/// The progress of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Its source.
    pub so_far: SoFar,
    /// Its points, in the sweep's order.
    pub points: Vec<PointProgress>,
    /// The point that is being measured and its round, from 1; `None` between rounds and when the
    /// run has ended.
    pub now: Option<(usize, u32)>,
    /// The rate of each target in each valid trial, by target: seconds since the run started, and
    /// operations per second.
    pub rates: Vec<Vec<(f64, f64)>>,
    /// The duration of a round, from its start to that of the next: the median, in ns; `None` while
    /// there is no second one.
    pub round_ns: Option<f64>,
}

/// The progress of one point.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PointProgress {
    /// Rounds that have ended.
    pub rounds: usize,
    /// Each target's figures, in the suite's order.
    pub targets: Vec<TargetProgress>,
}

/// One target's figures at one point so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TargetProgress {
    /// Trials that are valid.
    pub valid: usize,
    /// Disturbed ones.
    pub disturbed: usize,
    /// Invalid ones.
    pub invalid: usize,
    /// Why the last one that is not valid isn't.
    pub why: Vec<Why>,
    /// Operations of all its trials.
    pub operations: u64,
    /// Wrong answers of all its trials.
    pub wrong: u64,
    /// Operations that the target refused, of all its trials.
    pub refused: u64,
    /// Operations not answered in time, of all its trials.
    pub missing: u64,
    /// The greatest share of time that the generator was busy in a trial that is not invalid.
    pub generator_busy: Option<f64>,
    clean: Shown,
    disturbed_ones: Shown,
}

/// The figures of trials of one grade.
#[derive(Debug, Clone, PartialEq, Default)]
struct Shown {
    rates: Vec<f64>,
    p50_ns: Vec<f64>,
    p99_ns: Vec<f64>,
}

/// One trial, as live views show it.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialProgress {
    /// Whether it may be compared.
    pub validity: Validity,
    /// Why it may not.
    pub why: Vec<Why>,
    /// Operations answered.
    pub operations: u64,
    /// Those answered wrongly.
    pub wrong: u64,
    /// Those that the target refused.
    pub refused: u64,
    /// Those not answered in time.
    pub missing: u64,
    /// What the operations are divided by for their rate; 0 where nothing was measured.
    pub rate_ns: u64,
    /// Median and 99th percentile of its latencies in ns, where it has any.
    pub p50_p99_ns: Option<(u64, u64)>,
    /// The share of time that the generator was busy.
    pub generator_busy: Option<f64>,
}

impl TrialProgress {
    /// Operations per second; `None` where nothing was measured.
    pub fn rate(&self) -> Option<f64> {
        (self.rate_ns > 0).then(|| self.operations as f64 * 1e9 / self.rate_ns as f64)
    }
}

impl TargetProgress {
    /// Adds a trial that has ended.
    pub fn add(&mut self, trial: &TrialProgress) {
        let (count, shown) = match trial.validity {
            Validity::Valid => (&mut self.valid, Some(&mut self.clean)),
            Validity::Disturbed => (&mut self.disturbed, Some(&mut self.disturbed_ones)),
            Validity::Invalid => (&mut self.invalid, None),
        };
        *count += 1;
        self.operations += trial.operations;
        self.wrong += trial.wrong;
        self.refused += trial.refused;
        self.missing += trial.missing;
        if trial.validity != Validity::Valid && !trial.why.is_empty() {
            self.why.clone_from(&trial.why);
        }
        let Some(shown) = shown else { return };
        shown.rates.extend(trial.rate());
        shown.p50_ns.extend(trial.p50_p99_ns.map(|both| both.0 as f64));
        shown.p99_ns.extend(trial.p50_p99_ns.map(|both| both.1 as f64));
        self.generator_busy = match (self.generator_busy, trial.generator_busy) {
            (Some(most), Some(busy)) => Some(most.max(busy)),
            (one, other) => one.or(other),
        };
    }

    /// The rate over its valid trials, or over disturbed ones while none is valid.
    pub fn rate(&self, confidence: f64) -> Option<SeriesInterval> {
        series_interval(&self.shown().rates, confidence)
    }

    /// The median over the same trials of their median latency, in ns.
    pub fn p50_ns(&self) -> Option<f64> {
        median(&self.shown().p50_ns)
    }

    /// The same of their 99th percentile.
    pub fn p99_ns(&self) -> Option<f64> {
        median(&self.shown().p99_ns)
    }

    fn shown(&self) -> &Shown {
        if self.valid > 0 { &self.clean } else { &self.disturbed_ones }
    }
}

impl Progress {
    /// The progress so far.
    pub fn of(so_far: SoFar) -> Progress {
        let places = index_of(so_far.points.iter().map(|(id, _)| *id));
        let targets = index_of(so_far.targets.iter().map(|(id, _)| *id));
        let rounds: BTreeMap<RoundId, (usize, u32)> = so_far
            .rounds
            .iter()
            .filter_map(|(id, row)| Some((*id, (*places.get(&row.point_id)?, row.ordinal))))
            .collect();
        let mut points = vec![PointProgress::default(); so_far.points.len()];
        for point in &mut points {
            point.targets = vec![TargetProgress::default(); so_far.targets.len()];
        }
        let mut ended: BTreeSet<RoundId> = BTreeSet::new();
        let mut rates = vec![Vec::new(); so_far.targets.len()];
        let is_finished =
            |trial: &TrialRow| trial.reason.as_deref().is_none_or(|why| why != UNFINISHED);
        for (id, row) in so_far.trials.iter().filter(|(_, trial)| is_finished(trial)) {
            let place = (rounds.get(&row.round_id), targets.get(&row.target_id));
            let (Some((point, _)), Some(target)) = place else { continue };
            let trial = trial_of(row, so_far.percentiles.get(id).copied());
            points[*point].rounds += usize::from(ended.insert(row.round_id));
            let moment = (row.started_ns + row.measured_ns) as f64 / 1e9;
            let valid = trial.rate().filter(|_| trial.validity == Validity::Valid);
            rates[*target].extend(valid.map(|rate| (moment, rate)));
            points[*point].targets[*target].add(&trial);
        }
        let mut begun = rounds.iter().filter(|(id, _)| !ended.contains(id)).map(|(_, at)| *at);
        let now = begun.next_back().filter(|_| so_far.run.state == RunState::Running);
        rates.iter_mut().for_each(|line: &mut Vec<(f64, f64)>| {
            line.sort_by(|a, b| a.0.total_cmp(&b.0));
        });
        let mut starts: Vec<u64> = so_far.rounds.iter().map(|(_, row)| row.started_ns).collect();
        starts.sort_unstable();
        let took: Vec<f64> = starts.windows(2).map(|two| (two[1] - two[0]) as f64).collect();
        Progress { points, now, rates, round_ns: median(&took), so_far }
    }
}

/// A trial of the ledger, with the percentiles of its latencies.
fn trial_of(row: &TrialRow, p50_p99_ns: Option<(u64, u64)>) -> TrialProgress {
    TrialProgress {
        validity: row.validity,
        why: Why::of(row.validity, row.reason.as_deref(), &row.causes),
        operations: row.operations,
        wrong: row.wrong,
        refused: row.refused,
        missing: row.missing,
        rate_ns: row.rate_ns,
        p50_p99_ns,
        generator_busy: row.generator_busy,
    }
}

#[cfg(test)]
mod tests {
    use ledger::{Cause, CauseKind};

    use super::*;

    #[test]
    fn figures_of_disturbed_trials_are_shown_until_one_is_valid() {
        let trial = |validity, operations| TrialProgress {
            validity,
            why: Why::of(validity, None, &[Cause::new(CauseKind::Swap, 17.0)]),
            operations,
            wrong: 1,
            refused: 0,
            missing: 0,
            rate_ns: 2_000_000_000,
            p50_p99_ns: Some((operations, 2 * operations)),
            generator_busy: Some(0.5),
        };
        let rate = |progress: &TargetProgress| progress.rate(0.95).map(|rate| rate.mean.round());
        let mut progress = TargetProgress::default();
        assert!(progress.rate(0.95).is_none() && progress.p99_ns().is_none());
        progress.add(&trial(Validity::Invalid, 2));
        assert!(progress.rate(0.95).is_none() && progress.generator_busy.is_none());
        progress.add(&trial(Validity::Disturbed, 400));
        assert_eq!(rate(&progress), Some(200.0));
        progress.add(&trial(Validity::Valid, 600));
        assert_eq!(rate(&progress), Some(300.0));
        assert_eq!((progress.p50_ns(), progress.p99_ns()), (Some(600.0), Some(1_200.0)));
        assert_eq!((progress.valid, progress.disturbed, progress.invalid), (1, 1, 1));
        let swapped = Why::Disturbed(Cause::new(CauseKind::Swap, 17.0));
        assert_eq!((progress.wrong, progress.why), (3, vec![swapped]));
    }
}
