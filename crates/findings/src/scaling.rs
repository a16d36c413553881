//! Scalability: throughput over connections or threads, where a run sweeps one of them.

use std::collections::{BTreeMap, BTreeSet};

use judge::limits::is_generator_bound;
use judge::usl::{Scalability, Scale, Unfit, fit};

use crate::point_summary::PointSummary;
use crate::trial_summary::{TrialSummary, at_point};

/// Different numbers of connections or threads from which on scaling is worth a word.
const POINTS_SPOKEN_OF: usize = 4;

/// The most numbers that a fit uses, spread evenly over those that there are: its intervals are
/// resampled a thousand times, and more points than these hardly narrow them.
const MAX_POINTS: usize = 40;

/// The law of one target over one swept key.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    /// The target.
    pub target: usize,
    /// The swept key: `clients.connections`.
    pub key: String,
    /// The other swept keys, in words; empty when there are none.
    pub beside: String,
    /// The numbers that the fit used, at most 40 of them.
    pub used: Vec<f64>,
    /// The numbers that were left out: generator-bound, overloaded, or of fewer rounds.
    pub left_out: Vec<f64>,
    /// The fit, or why there is none.
    pub fit: Result<Scalability, Unfit>,
}

/// Every law that a run's points may carry.
pub(crate) fn scalings(
    targets: usize,
    points: &[PointSummary],
    trials: &[TrialSummary],
    confidence: f64,
) -> Vec<Scaling> {
    let mut groups: BTreeMap<(String, String), Vec<(usize, f64)>> = BTreeMap::new();
    for (index, point) in points.iter().enumerate() {
        for (key, value) in &point.row.keys {
            let scales = key.ends_with("connections") || key.ends_with("threads");
            let Some(n) = value.as_f64().filter(|_| scales) else { continue };
            let others = point.row.keys.iter().filter(|(other, _)| *other != key);
            let beside: Vec<String> = others
                .filter(|(other, _)| *other != "workload.operation")
                .map(|(other, value)| format!("{other} {value}"))
                .collect();
            groups.entry((key.clone(), beside.join(", "))).or_default().push((index, n));
        }
    }
    let mut scalings = Vec::new();
    for ((key, beside), places) in groups {
        if places.len() < POINTS_SPOKEN_OF {
            continue;
        }
        for target in 0..targets {
            let scaling = of_target(target, &places, trials, confidence);
            scalings.extend(scaling.map(|(used, left_out, fit)| Scaling {
                target,
                key: key.clone(),
                beside: beside.clone(),
                used,
                left_out,
                fit,
            }));
        }
    }
    scalings
}

type Fitted = (Vec<f64>, Vec<f64>, Result<Scalability, Unfit>);

fn of_target(
    target: usize,
    places: &[(usize, f64)],
    trials: &[TrialSummary],
    confidence: f64,
) -> Option<Fitted> {
    let here = |point: usize| {
        let own = at_point(trials, point).iter().filter(move |one| one.target == target);
        own.filter(|one| one.is_valid()).collect::<Vec<_>>()
    };
    let most = places.iter().map(|(point, _)| here(*point).len()).max().filter(|most| *most > 0)?;
    let (mut used, mut left_out) = (Vec::new(), Vec::new());
    for (point, n) in places {
        let valid = here(*point);
        let busy = |one: &&TrialSummary| one.row.generator_busy.is_some_and(is_generator_bound);
        let stressed = valid.iter().any(|one| busy(one) || one.row.overloaded);
        let rates: Vec<f64> = valid.iter().filter_map(|one| one.figures.rate_per_s).collect();
        if stressed || rates.len() * 2 < most || rates.is_empty() {
            left_out.push(*n);
        } else {
            used.push(Scale { n: *n, rates });
        }
    }
    used.sort_by(|a, b| a.n.total_cmp(&b.n));
    let used = spread_evenly(used);
    left_out.sort_by(f64::total_cmp);
    let fit = fit(&used, confidence);
    Some((used.iter().map(|scale| scale.n).collect(), left_out, fit))
}

/// At most [`MAX_POINTS`] of them, the first and the last among them.
fn spread_evenly(all: Vec<Scale>) -> Vec<Scale> {
    let (count, last) = (all.len(), all.len().saturating_sub(1));
    if count <= MAX_POINTS {
        return all;
    }
    let kept: BTreeSet<usize> = (0..MAX_POINTS).map(|at| at * last / (MAX_POINTS - 1)).collect();
    let numbered = all.into_iter().enumerate().filter(|(at, _)| kept.contains(at));
    numbered.map(|(_, scale)| scale).collect()
}
