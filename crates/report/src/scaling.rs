//! Scalability: throughput over connections or threads, where a run sweeps one of them.

use std::collections::{BTreeMap, BTreeSet};

use judge::limits::is_generator_bound;
use judge::usl::{Estimate, Scalability, Scale, Unfit, fit};

use crate::number::{percent, rate, thousands};
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

impl Scaling {
    /// The law in words.
    pub(crate) fn words(&self) -> String {
        let unit = self.key.rsplit('.').next().unwrap_or_default();
        let beside = match self.beside.is_empty() {
            true => String::new(),
            false => format!(" ({})", self.beside),
        };
        let left_out = match self.left_out.len() {
            0 => String::new(),
            count => format!("; {count} stressed or partial points left out"),
        };
        let words = match &self.fit {
            Ok(law) => law_words(law, unit, self.used.last().copied().unwrap_or(0.0)),
            Err(Unfit::TooFew(found)) => format!(
                "no scalability law: {found} points are too few, it takes {}",
                judge::usl::MIN_POINTS
            ),
            Err(Unfit::Pattern(residual)) => format!(
                "no scalability law: the points bend otherwise, up to {} off it",
                percent(*residual)
            ),
            Err(Unfit::NoSolution) => "no scalability law: the points have no solution".to_owned(),
        };
        format!("over {unit}{beside}: {words}{left_out}")
    }
}

fn law_words(law: &Scalability, unit: &str, largest: f64) -> String {
    let share =
        |one: &Estimate| format!("{} [{}, {}]", small(one.value), small(one.low), small(one.high));
    let reason = match (law.alpha.value > 0.0, law.beta.value > 0.0) {
        (false, false) => "it grows in proportion".to_owned(),
        (true, false) => format!("contention alone limits it, to {}", rate(law.peak_rate)),
        _ => {
            let beyond = match law.peak.value > 2.0 * largest {
                true => ", far beyond what was measured",
                false => "",
            };
            // Which of the two costs more at the largest N that was measured.
            let contention = law.alpha.value * (largest - 1.0);
            let coherency = law.beta.value * largest * (largest - 1.0);
            let what = if contention > coherency { "contention" } else { "coherency" };
            format!(
                "peak of {} at {} {unit} [{}, {}]{beyond}; {what} dominates",
                rate(law.peak_rate),
                whole(law.peak.value),
                whole(law.peak.low),
                whole(law.peak.high)
            )
        }
    };
    format!(
        "one brings {}, contention α {}, coherency β {}: {reason}",
        rate(law.gamma.value),
        share(&law.alpha),
        share(&law.beta)
    )
}

fn small(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { crate::number::plain(value) }
}

fn whole(value: f64) -> String {
    if value.is_finite() { thousands(value.round() as u64) } else { "∞".to_owned() }
}
