//! The first target against each other one, by metric and point, and what is said of it.
//!
//! Targets are paired within rounds, and only where both trials are valid. All comparisons of
//! one metric (points × other targets) are one family for Holm's correction. The run's primary
//! metric carries the run's verdicts; the others stand beside them, each its own family, and
//! nothing is concluded from them.

use std::collections::BTreeMap;

use judge::{
    Comparison, Doubt, Interval, LEAST_ROUNDS, Metric, Rule, Verdict, judge_family, median,
    metric_named, paired_ratio,
};
use ledger::RunRow;

use crate::summary::TrialSummary;

/// The generator's busy share above which it, not the target, is taken to set rate and latency.
pub const GENERATOR_BUSY_MAX: f64 = 0.90;

/// The metrics that are compared besides the run's primary one, by their path in JSON.
const COMPARED: &[&str] =
    &["rate_per_s", "latency_ns.p50", "latency_ns.p99", "server.cpu_ns_per_op"];

/// One comparison, judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// The point.
    pub point: usize,
    /// The first target.
    pub a: usize,
    /// The target it is compared with.
    pub b: usize,
    /// The metric.
    pub metric: &'static Metric,
    /// The ratio a/b with its plain interval; `None` when a value is unseen or zero, or when no
    /// round has both trials valid.
    pub interval: Option<Interval>,
    /// What is said of the first target.
    pub verdict: Verdict,
    /// Whether the metric is the run's primary one, so that the verdict is the run's.
    pub primary: bool,
}

/// All comparisons of a run, by metric, point and other target.
pub(crate) fn compare(
    run: &RunRow,
    targets: usize,
    points: usize,
    trials: &[TrialSummary],
) -> Vec<Compared> {
    let rule = Rule { same_within: run.same_within, confidence: run.confidence };
    let primary = metric_named(&run.primary_metric);
    let mut metrics: Vec<&'static Metric> =
        COMPARED.iter().filter_map(|path| metric_named(path)).collect();
    if let Some(primary) = primary {
        metrics.retain(|metric| *metric != primary);
        metrics.insert(0, primary);
    }
    let pairs: Vec<Pairing<'_>> = (0..points)
        .flat_map(|point| (1..targets).map(move |b| (point, b)))
        .filter_map(|(point, b)| Pairing::of(point, b, trials))
        .collect();
    let mut compared = Vec::with_capacity(metrics.len() * pairs.len());
    for metric in metrics {
        let family: Vec<Comparison> =
            pairs.iter().map(|pairing| pairing.comparison(metric, &rule)).collect();
        let judged = judge_family(&family, &rule);
        for ((pairing, comparison), verdict) in pairs.iter().zip(family).zip(judged) {
            compared.push(Compared {
                point: pairing.point,
                a: 0,
                b: pairing.b,
                metric,
                interval: comparison.interval,
                verdict,
                primary: primary == Some(metric),
            });
        }
    }
    compared
}

/// The trials of the first target and another at one point, by round.
struct Pairing<'a> {
    point: usize,
    b: usize,
    /// Rounds in which both were tried.
    rounds: usize,
    /// Those of them in which both are valid.
    valid: Vec<(&'a TrialSummary, &'a TrialSummary)>,
}

impl<'a> Pairing<'a> {
    /// `None` when no round tried both: a skipped target is not compared.
    fn of(point: usize, b: usize, trials: &'a [TrialSummary]) -> Option<Pairing<'a>> {
        let of_target = |target: usize| {
            let here = trials.iter().filter(move |t| t.point == point && t.target == target);
            here.map(|trial| (trial.round, trial)).collect::<BTreeMap<_, _>>()
        };
        let (firsts, others) = (of_target(0), of_target(b));
        let both: Vec<_> =
            firsts.iter().filter_map(|(round, a)| Some((*a, *others.get(round)?))).collect();
        if both.is_empty() {
            return None;
        }
        let rounds = both.len();
        let valid = both.into_iter().filter(|(a, b)| a.is_valid() && b.is_valid()).collect();
        Some(Pairing { point, b, rounds, valid })
    }

    fn comparison(&self, metric: &Metric, rule: &Rule) -> Comparison {
        let values: Option<Vec<(f64, f64)>> = self
            .valid
            .iter()
            .map(|(a, b)| Some((a.figures.value(metric)?, b.figures.value(metric)?)))
            .collect();
        let interval = values.and_then(|values| {
            let (a, b): (Vec<f64>, Vec<f64>) = values.into_iter().unzip();
            paired_ratio(&a, &b, rule.confidence)
        });
        Comparison { interval, direction: metric.direction, barred: self.barred(metric) }
    }

    fn barred(&self, metric: &Metric) -> Option<Doubt> {
        let enough_but_for_validity =
            self.rounds >= LEAST_ROUNDS && self.valid.len() < LEAST_ROUNDS;
        if self.valid.is_empty() || enough_but_for_validity {
            return Some(Doubt::InvalidTrials);
        }
        let busy = |of: fn(&(&'a TrialSummary, &'a TrialSummary)) -> Option<f64>| {
            median(&self.valid.iter().filter_map(of).collect::<Vec<_>>())
        };
        let busiest = busy(|(a, _)| a.row.generator_busy)
            .into_iter()
            .chain(busy(|(_, b)| b.row.generator_busy))
            .fold(0.0, f64::max);
        let overloaded = self.valid.iter().any(|(a, b)| a.row.overloaded || b.row.overloaded);
        if overloaded && metric.json.starts_with("latency_ns.") {
            return Some(Doubt::Overloaded);
        }
        let spoiled = metric.spoiled_by_busy_generator && busiest > GENERATOR_BUSY_MAX;
        spoiled.then_some(Doubt::GeneratorBound)
    }
}
