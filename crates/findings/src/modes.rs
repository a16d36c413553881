//! Targets with two speeds: figures that fall into two modes over the rounds of a run.

use judge::{Direction, Metric, Modes, metric_named, two_modes};

use crate::trial_summary::{TrialSummary, at_point};

/// Two modes of one metric of one target at one point.
#[derive(Debug, Clone, PartialEq)]
pub struct ModesSummary {
    /// The point.
    pub point: usize,
    /// The target.
    pub target: usize,
    /// The metric.
    pub metric: Metric,
    /// Its two modes, over valid rounds.
    pub modes: Modes,
}

impl ModesSummary {
    /// The better mode first.
    pub fn better_first(&self) -> [f64; 2] {
        match self.metric.direction {
            Direction::HigherIsBetter => [self.modes.high, self.modes.low],
            Direction::LowerIsBetter => [self.modes.low, self.modes.high],
        }
    }
}

/// Every pair of modes in the run's primary metric or, where that has none, in the rate.
pub(crate) fn modes(
    primary: Option<&Metric>,
    (targets, points): (usize, usize),
    trials: &[TrialSummary],
) -> Vec<ModesSummary> {
    let metrics = [primary, metric_named("rate_per_s")];
    let at = |(point, target): (usize, usize)| {
        let here = at_point(trials, point).iter().filter(|one| one.target == target);
        let valid: Vec<&TrialSummary> = here.filter(|one| one.is_valid()).collect();
        metrics.into_iter().flatten().find_map(|metric| {
            let values: Vec<f64> =
                valid.iter().filter_map(|one| one.figures.value(metric)).collect();
            let metric = metric.clone();
            Some(ModesSummary { point, target, metric, modes: two_modes(&values)? })
        })
    };
    let places = (0..points).flat_map(|point| (0..targets).map(move |target| (point, target)));
    places.filter_map(at).collect()
}
