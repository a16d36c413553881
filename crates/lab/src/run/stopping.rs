//! When a point has had enough rounds. Only looks that were fixed beforehand may stop one, at a
//! confidence that counts them all (`judge`'s looks): a comparison stops at one that shows a
//! verdict, a run at one whose interval is tight.

use judge::{Comparison, Interval, Metric, Rule, Verdict};

use super::trial::Trial;
use crate::plan::{Plan, Rounds};

/// When the points of a run have enough rounds.
pub(super) struct Stopping {
    primary: Metric,
    /// How tight the interval has to be, as a relative half-width.
    until: Option<f64>,
    /// The confidence of the run's intervals.
    pub(super) confidence: f64,
    /// The numbers of rounds at which it is looked at.
    looks: Vec<u32>,
    contest: Option<Contest>,
}

/// A comparison that stops at a verdict.
struct Contest {
    same_within: f64,
    /// The error that each point may make: the run's, divided among its points.
    error: f64,
    most: u32,
    points: Vec<AtPoint>,
}

#[derive(Default)]
struct AtPoint {
    /// Valid rounds at each look so far.
    looks: Vec<u32>,
    is_decided: bool,
}

/// A look at a comparison.
pub(super) struct Look {
    /// Rounds in which both targets were valid.
    pub(super) rounds: u32,
    /// A message about the rounds still to come.
    pub(super) note: Option<String>,
}

impl Stopping {
    pub(super) fn of(plan: &Plan) -> Self {
        let rounds = &plan.rounds;
        let Rounds { primary, until, sequence, at_most: most, .. } = rounds.clone();
        let looks = sequence.as_ref().map_or_else(|| rounds.looks(), |_| judge::looks(most));
        let until = until.map(|until| until.fraction);
        let until = until.or(sequence.as_ref().and_then(|sequence| sequence.until));
        let contest = sequence.map(|sequence| Contest {
            same_within: rounds.same_within.fraction,
            error: sequence.error / plan.points.len() as f64,
            most,
            points: plan.points.iter().map(|_| AtPoint::default()).collect(),
        });
        Self { primary, until, confidence: rounds.confidence(), looks, contest }
    }

    /// Whether the run is a comparison, which may take all of its rounds.
    pub(super) fn is_contest(&self) -> bool {
        self.contest.is_some()
    }

    /// Whether a point with these trials may stop after `rounds` rounds of the run. A point that
    /// has stopped stays stopped: its rounds don't grow any more.
    pub(super) fn is_enough(&self, point: usize, trials: &[Trial], rounds: u32) -> bool {
        if let Some(contest) = &self.contest {
            return contest.points[point].is_decided;
        }
        let rounds = trials.iter().map(|trial| trial.round).max().unwrap_or(rounds);
        self.looks.contains(&rounds) && self.until.is_none_or(|until| self.is_tight(trials, until))
    }

    /// Whether the interval of the primary metric is tight: the ratio of the first target to each
    /// other one, or the metric itself when there is only one target.
    fn is_tight(&self, trials: &[Trial], until: f64) -> bool {
        let Some(first) = trials.iter().map(|trial| trial.target).min() else { return false };
        let mut others: Vec<usize> = trials.iter().map(|trial| trial.target).collect();
        others.sort_unstable();
        others.dedup();
        others.retain(|target| *target != first);
        let primary = &self.primary.suite;
        if others.is_empty() {
            let values: Vec<f64> =
                series(trials, first, primary).into_iter().map(|(_, value)| value).collect();
            let interval = judge::series_interval(&values, self.confidence);
            return interval.is_some_and(|interval| interval.relative_half_width <= until);
        }
        others.iter().all(|other| {
            let (a, b) = paired(trials, first, *other, primary);
            let interval = judge::paired_ratio(&a, &b, self.confidence);
            interval.is_some_and(|interval| is_within(&interval, until))
        })
    }

    /// Judges a point of a comparison if a look is planned at its number of valid rounds.
    pub(super) fn look(&mut self, point: usize, trials: &[Trial], is_last: bool) -> Option<Look> {
        let contest = self.contest.as_mut()?;
        let (a, b) = paired(trials, 0, 1, &self.primary.suite);
        let rounds = u32::try_from(a.len()).ok().filter(|rounds| *rounds > 1)?;
        let here = &mut contest.points[point];
        let is_new = here.looks.last().is_none_or(|last| *last < rounds);
        if !is_new || !(is_last || self.looks.contains(&rounds)) {
            return None;
        }
        here.looks.push(rounds);
        let confidence = judge::confidence_at(&here.looks, contest.most, contest.error)?;
        let interval = judge::paired_ratio(&a, &b, confidence)?;
        let rule = Rule { same_within: contest.same_within, confidence };
        let direction = self.primary.direction;
        let comparison = Comparison { interval: Some(interval), direction, barred: None };
        let verdict = judge::judge_family(&[comparison], &rule)[0];
        let is_tight = self.until.is_none_or(|until| is_within(&interval, until));
        here.is_decided = is_tight && !matches!(verdict, Verdict::CantTell { .. });
        let is_first = here.looks.len() == 1 && !here.is_decided;
        let note = is_first.then(|| self.first_look(&interval)).flatten();
        Some(Look { rounds, note })
    }

    /// The smallest difference that all rounds can show, from the variance of the first.
    fn first_look(&self, interval: &Interval) -> Option<String> {
        let Contest { most, error, .. } = *self.contest.as_ref()?;
        let last = judge::confidence_at(&self.looks, most, error)?;
        let least = judge::smallest_difference(interval.log_deviation, most, 1.0 - last)?;
        Some(format!(
            "after {} rounds: {most} rounds would show a difference of {:.2} % nine times out of \
             ten",
            interval.rounds,
            (least - 1.0) * 100.0
        ))
    }
}

fn is_within(interval: &Interval, until: f64) -> bool {
    interval.high / interval.ratio - 1.0 <= until
}

/// A target's values of a metric over its valid trials, with their rounds.
fn series(trials: &[Trial], target: usize, metric: &str) -> Vec<(u32, f64)> {
    let of_target = trials.iter().filter(|trial| trial.target == target && trial.is_valid());
    of_target.filter_map(|trial| Some((trial.round, trial.metric(metric)?))).collect()
}

/// The values of two targets in the rounds in which both are valid.
fn paired(trials: &[Trial], a: usize, b: usize, metric: &str) -> (Vec<f64>, Vec<f64>) {
    let b = series(trials, b, metric);
    let pair = |(round, value): (u32, f64)| {
        let other = b.iter().find(|(other, _)| *other == round)?;
        Some((value, other.1))
    };
    series(trials, a, metric).into_iter().filter_map(pair).unzip()
}
