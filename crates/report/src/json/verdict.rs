//! Comparisons and requirements, for programs.

use findings::{Bound, Compared, LikelyCompared, RequirementSummary, Summary};
use judge::Verdict;
use ledger::CarriedRow;
use serde_json::{Value, json};

use super::parts::{interval, joined};

pub(super) fn comparison(summary: &Summary, compared: &Compared) -> Value {
    let (reason, more_rounds) = match compared.verdict {
        Verdict::CantTell { why, more_rounds } => (Some(why.code()), more_rounds),
        _ => (None, None),
    };
    let (median_a, median_b) = compared.medians.unzip();
    let own = json!({
        "point": summary.points[compared.point].row.keys,
        "a": summary.targets[compared.a].name,
        "b": summary.targets[compared.b].name,
        "metric": compared.metric.json,
        "primary": compared.primary,
        "bound": compared.bound.map(Bound::code),
        "disturbed_rounds": compared.disturbed_rounds,
        "verdict": compared.verdict.code(),
        "reason": reason,
        "more_rounds": more_rounds,
        "confidence": compared.confidence,
        "median_a": median_a,
        "median_b": median_b,
        "likely": compared.likely.map(likely),
    });
    joined(own, interval(compared.interval))
}

/// What is likely where rounds were disturbed and there is no verdict.
fn likely(likely: LikelyCompared) -> Value {
    let found = likely.found.interval;
    json!({
        "verdict": likely.code(),
        "ratio": found.ratio,
        "low": found.low,
        "high": found.high,
        "rounds": found.rounds,
        "disturbed_rounds": likely.disturbed_rounds,
        "least_disturbance": likely.found.least_disturbance,
        "most_disturbance": likely.found.most_disturbance,
    })
}

pub(super) fn requirement(summary: &Summary, one: &RequirementSummary) -> Value {
    let row = &one.row;
    json!({
        "point": summary.points[one.point].row.keys,
        "expression": row.expression,
        "value": row.value,
        "outcome": row.outcome.word(),
        "bound": row.bound,
        "unit": row.unit,
        "room": row.room,
        "rounds": row.rounds,
        "disturbed": row.disturbed,
        "broken_in": row.broken_in,
        "reason": row.reason,
    })
}

/// Whether a target carries a load that the suite names.
pub(super) fn carried(summary: &Summary, one: &(usize, usize, CarriedRow)) -> Value {
    let (point, target, row) = one;
    json!({
        "point": summary.points[*point].row.keys,
        "target": summary.targets[*target].name,
        "load": row.name,
        "expression": row.expression,
        "outcome": row.outcome.word(),
        "value": row.value,
        "bound": row.bound,
        "unit": row.unit,
        "times": row.times,
    })
}
