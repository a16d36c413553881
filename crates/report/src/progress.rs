//! The progress of a run: each target's figures at each point over the rounds that have ended.
//!
//! Nothing is concluded here: verdicts wait for the end of the run.

use std::collections::{BTreeMap, HashMap};

use judge::{SeriesInterval, median, series_interval};
use ledger::{RoundId, RunState, SoFar, TrialId, TrialRow, UNFINISHED, Validity};
use serde_json::{Value, json};

use crate::json::SCHEMA;

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
    /// Trials that are valid, disturbed and invalid.
    pub valid: usize,
    /// Disturbed ones.
    pub disturbed: usize,
    /// Invalid ones, and why the last is.
    pub invalid: usize,
    /// Why the last one that is not valid isn't.
    pub reason: Option<String>,
    /// Operations of all its trials.
    pub operations: u64,
    /// Wrong answers of all its trials.
    pub wrong: u64,
    /// Operations not answered in time, of all its trials.
    pub missing: u64,
    /// The rate over valid trials.
    pub rate: Option<SeriesInterval>,
    /// The median over valid trials of their median latency, in ns.
    pub p50_ns: Option<f64>,
    /// The same of their 99th percentile.
    pub p99_ns: Option<f64>,
    /// The greatest share of time that the generator was busy.
    pub generator_busy: Option<f64>,
}

impl Progress {
    /// The progress so far.
    pub fn of(so_far: SoFar) -> Progress {
        let places: HashMap<_, _> =
            so_far.points.iter().enumerate().map(|(at, (id, _))| (*id, at)).collect();
        let targets: HashMap<_, _> =
            so_far.targets.iter().enumerate().map(|(at, (id, _))| (*id, at)).collect();
        let rounds: BTreeMap<RoundId, (usize, u32)> = so_far
            .rounds
            .iter()
            .filter_map(|(id, row)| Some((*id, (*places.get(&row.point_id)?, row.ordinal))))
            .collect();
        let mut here: BTreeMap<(usize, usize), Vec<(TrialId, &TrialRow)>> = BTreeMap::new();
        let mut ended: BTreeMap<RoundId, usize> = BTreeMap::new();
        let mut rates = vec![Vec::new(); so_far.targets.len()];
        let is_finished =
            |trial: &TrialRow| trial.reason.as_deref().is_none_or(|why| why != UNFINISHED);
        for (id, trial) in so_far.trials.iter().filter(|(_, trial)| is_finished(trial)) {
            let place = (rounds.get(&trial.round_id), targets.get(&trial.target_id));
            let (Some((point, _)), Some(target)) = place else { continue };
            here.entry((*point, *target)).or_default().push((*id, trial));
            *ended.entry(trial.round_id).or_default() += 1;
            let moment = (trial.started_ns + trial.measured_ns) as f64 / 1e9;
            rates[*target].extend(rate(trial).map(|rate| (moment, rate)));
        }
        let mut begun = rounds.iter().filter(|(id, _)| !ended.contains_key(id)).map(|(_, at)| *at);
        let now = begun.next_back().filter(|_| so_far.run.state == RunState::Running);
        let confidence = so_far.run.confidence;
        let point = |point: usize| PointProgress {
            rounds: rounds
                .iter()
                .filter(|(id, at)| at.0 == point && ended.contains_key(id))
                .count(),
            targets: (0..so_far.targets.len())
                .map(|target| {
                    let own = here.get(&(point, target)).map(Vec::as_slice).unwrap_or_default();
                    TargetProgress::of(own, &so_far.percentiles, confidence)
                })
                .collect(),
        };
        let points = (0..so_far.points.len()).map(point).collect();
        rates.iter_mut().for_each(|line: &mut Vec<(f64, f64)>| {
            line.sort_by(|a, b| a.0.total_cmp(&b.0));
        });
        let mut starts: Vec<u64> = so_far.rounds.iter().map(|(_, row)| row.started_ns).collect();
        starts.sort_unstable();
        let took: Vec<f64> = starts.windows(2).map(|two| (two[1] - two[0]) as f64).collect();
        Progress { points, now, rates, round_ns: median(&took), so_far }
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let so_far = &self.so_far;
        let target = |(at, one): (usize, &TargetProgress)| {
            json!({
                "target": so_far.targets[at].1.name,
                "valid_trials": one.valid,
                "disturbed_trials": one.disturbed,
                "invalid_trials": one.invalid,
                "reason": one.reason,
                "operations": one.operations,
                "wrong": one.wrong,
                "missing": one.missing,
                "rate_per_s": one.rate.map(|rate| rate.mean),
                "latency_ns": { "p50": one.p50_ns, "p99": one.p99_ns },
                "busy": one.generator_busy,
            })
        };
        let point = |(at, one): (usize, &PointProgress)| {
            json!({
                "point": so_far.points[at].1.keys,
                "label": so_far.points[at].1.label,
                "rounds": one.rounds,
                "is_measured_now": self.now.is_some_and(|(point, _)| point == at),
                "targets": one.targets.iter().enumerate().map(target).collect::<Vec<_>>(),
            })
        };
        json!({
            "schema": SCHEMA,
            "run": so_far.id.get(),
            "state": so_far.run.state.word(),
            "started_at": so_far.run.started_at,
            "title": so_far.title,
            "round": self.now.map(|(_, round)| round),
            "points": self.points.iter().enumerate().map(point).collect::<Vec<_>>(),
        })
    }
}

impl TargetProgress {
    fn of(
        trials: &[(TrialId, &TrialRow)],
        percentiles: &HashMap<TrialId, (u64, u64)>,
        confidence: f64,
    ) -> TargetProgress {
        let with =
            |validity: Validity| trials.iter().filter(move |(_, trial)| trial.validity == validity);
        let sum = |of: fn(&TrialRow) -> u64| trials.iter().map(|(_, trial)| of(trial)).sum();
        let valid = || with(Validity::Valid);
        let rates: Vec<f64> = valid().filter_map(|(_, trial)| rate(trial)).collect();
        let middle = |of: fn(&(u64, u64)) -> u64| {
            let values = valid().filter_map(|(id, _)| percentiles.get(id));
            median(&values.map(|both| of(both) as f64).collect::<Vec<_>>())
        };
        let busy = valid().filter_map(|(_, trial)| trial.generator_busy);
        TargetProgress {
            valid: valid().count(),
            disturbed: with(Validity::Disturbed).count(),
            invalid: with(Validity::Invalid).count(),
            reason: trials.iter().rev().find_map(|(_, trial)| trial.reason.clone()),
            operations: sum(|trial| trial.operations),
            wrong: sum(|trial| trial.wrong),
            missing: sum(|trial| trial.missing),
            rate: series_interval(&rates, confidence),
            p50_ns: middle(|both| both.0),
            p99_ns: middle(|both| both.1),
            generator_busy: busy.reduce(f64::max),
        }
    }
}

/// Operations per second of a valid trial.
fn rate(trial: &TrialRow) -> Option<f64> {
    let is_known = trial.validity == Validity::Valid && trial.measured_ns > 0;
    is_known.then(|| trial.operations as f64 * 1e9 / trial.measured_ns as f64)
}
