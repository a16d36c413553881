//! When a point has had enough rounds.

use super::trial::Trial;

/// The confidence of every interval.
pub(super) const CONFIDENCE: f64 = 0.95;

/// Whether the interval of the primary metric is tight: the ratio of the first target to each
/// other one, or the metric itself when there is only one target.
pub(super) fn is_tight(trials: &[Trial], primary: &str, half_width: f64) -> bool {
    let Some(first) = trials.iter().map(|trial| trial.target).min() else { return false };
    let mut others: Vec<usize> = trials.iter().map(|trial| trial.target).collect();
    others.sort_unstable();
    others.dedup();
    others.retain(|target| *target != first);
    if others.is_empty() {
        let values = series(trials, first, primary);
        let values: Vec<f64> = values.into_iter().map(|(_, value)| value).collect();
        let interval = judge::series_interval(&values, CONFIDENCE);
        return interval.is_some_and(|interval| interval.relative_half_width <= half_width);
    }
    others.iter().all(|other| {
        let (a, b) = paired(trials, first, *other, primary);
        let interval = judge::paired_ratio(&a, &b, CONFIDENCE);
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
