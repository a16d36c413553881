//! When a point has had enough rounds.

use super::trial::Trial;
use crate::plan::Rounds;

/// When a run stops that goes on until its interval is tight: at looks that were planned, at the
/// confidence that they share, so that waiting for a tight interval doesn't make it a wrong one.
pub(super) struct Stopping {
    primary: String,
    /// How tight the interval has to be; `None` stops at the first look.
    half_width: Option<f64>,
    looks: Vec<u32>,
    /// The confidence of the run's intervals.
    pub(super) confidence: f64,
}

impl Stopping {
    pub(super) fn of(rounds: &Rounds) -> Self {
        Self {
            primary: rounds.primary.suite.to_string(),
            half_width: rounds.until.map(|until| until.fraction),
            looks: rounds.looks(),
            confidence: rounds.confidence(),
        }
    }

    /// Whether a point with these trials may stop after `rounds` rounds of the run. A point that
    /// has stopped stays stopped: its rounds don't grow any more.
    pub(super) fn is_enough(&self, trials: &[Trial], rounds: u32) -> bool {
        let rounds = trials.iter().map(|trial| trial.round).max().unwrap_or(rounds);
        let is_tight = |half_width| is_tight(trials, &self.primary, half_width, self.confidence);
        self.looks.contains(&rounds) && self.half_width.is_none_or(is_tight)
    }
}

/// Whether the interval of the primary metric is tight: the ratio of the first target to each
/// other one, or the metric itself when there is only one target.
fn is_tight(trials: &[Trial], primary: &str, half_width: f64, confidence: f64) -> bool {
    let Some(first) = trials.iter().map(|trial| trial.target).min() else { return false };
    let mut others: Vec<usize> = trials.iter().map(|trial| trial.target).collect();
    others.sort_unstable();
    others.dedup();
    others.retain(|target| *target != first);
    if others.is_empty() {
        let values = series(trials, first, primary);
        let values: Vec<f64> = values.into_iter().map(|(_, value)| value).collect();
        let interval = judge::series_interval(&values, confidence);
        return interval.is_some_and(|interval| interval.relative_half_width <= half_width);
    }
    others.iter().all(|other| {
        let (a, b) = paired(trials, first, *other, primary);
        let interval = judge::paired_ratio(&a, &b, confidence);
        interval.is_some_and(|interval| interval.high / interval.ratio - 1.0 <= half_width)
    })
}

/// A target's values of a metric over its valid trials, with their rounds.
fn series(trials: &[Trial], target: usize, metric: &str) -> Vec<(u32, f64)> {
    let of_target = trials.iter().filter(|trial| trial.target == target && trial.is_valid());
    of_target.filter_map(|trial| Some((trial.round, trial.metric(metric)?))).collect()
}

/// The values of two targets in the rounds in which both are valid.
pub(super) fn paired(trials: &[Trial], a: usize, b: usize, metric: &str) -> (Vec<f64>, Vec<f64>) {
    let b = series(trials, b, metric);
    let pair = |(round, value): (u32, f64)| {
        let other = b.iter().find(|(other, _)| *other == round)?;
        Some((value, other.1))
    };
    series(trials, a, metric).into_iter().filter_map(pair).unzip()
}
