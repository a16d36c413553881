//! Comparisons and requirements, for programs.

use findings::{Bound, Compared, LikelyCompared, RequirementSummary};
use judge::{Likely, Verdict};
use serde::Serialize;
use serde_json::{Map, Value};

use super::names::Names;

#[derive(Serialize)]
pub(super) struct ComparisonJson<'a> {
    point: &'a Map<String, Value>,
    a: &'a str,
    b: &'a str,
    metric: &'a str,
    primary: bool,
    bound: Option<&'static str>,
    rounds: usize,
    disturbed_rounds: usize,
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    verdict: &'static str,
    reason: Option<&'static str>,
    more_rounds: Option<u32>,
    confidence: f64,
    median_a: Option<f64>,
    median_b: Option<f64>,
    shift: Option<f64>,
    rank_p: Option<f64>,
    likely: Option<LikelyJson>,
}

/// What is likely where rounds were disturbed and there is no verdict.
#[derive(Serialize)]
struct LikelyJson {
    verdict: &'static str,
    ratio: f64,
    low: f64,
    high: f64,
    rounds: usize,
    disturbed_rounds: usize,
    least_disturbance: f64,
    most_disturbance: f64,
}

impl From<LikelyCompared> for LikelyJson {
    fn from(likely: LikelyCompared) -> Self {
        let Likely { interval, least_disturbance, most_disturbance } = likely.found;
        LikelyJson {
            verdict: if likely.is_better { "better" } else { "worse" },
            ratio: interval.ratio,
            low: interval.low,
            high: interval.high,
            rounds: interval.rounds,
            disturbed_rounds: likely.disturbed_rounds,
            least_disturbance,
            most_disturbance,
        }
    }
}

#[derive(Serialize)]
pub(super) struct RequirementJson<'a> {
    point: &'a Map<String, Value>,
    expression: &'a str,
    value: Option<f64>,
    outcome: &'static str,
    bound: f64,
    unit: Option<&'a str>,
    room: Option<f64>,
    rounds: u32,
    disturbed: u32,
    broken_in: u32,
    reason: Option<&'a str>,
}

impl<'a> Names<'a> {
    pub(super) fn comparison(&self, compared: &'a Compared) -> ComparisonJson<'a> {
        let interval = compared.interval;
        // One round has no interval: its ends are 0 and infinity, which carry no information.
        let ends = interval.filter(|interval| interval.high.is_finite());
        let (reason, more_rounds) = match compared.verdict {
            Verdict::CantTell { why, more_rounds } => (Some(why.code()), more_rounds),
            _ => (None, None),
        };
        ComparisonJson {
            point: self.point(compared.point),
            a: self.target(compared.a),
            b: self.target(compared.b),
            metric: &compared.metric.json,
            primary: compared.primary,
            bound: compared.bound.map(Bound::code),
            rounds: interval.map_or(0, |interval| interval.rounds),
            disturbed_rounds: compared.disturbed_rounds,
            ratio: interval.map(|interval| interval.ratio),
            low: ends.map(|interval| interval.low),
            high: ends.map(|interval| interval.high),
            verdict: compared.verdict.code(),
            reason,
            more_rounds,
            confidence: compared.confidence,
            median_a: compared.beside.medians.map(|(a, _)| a),
            median_b: compared.beside.medians.map(|(_, b)| b),
            shift: compared.beside.shift,
            rank_p: compared.beside.rank_p,
            likely: compared.likely.map(LikelyJson::from),
        }
    }

    pub(super) fn requirement(&self, one: &'a RequirementSummary) -> RequirementJson<'a> {
        RequirementJson {
            point: self.point(one.point),
            expression: &one.row.expression,
            value: one.row.value,
            outcome: one.row.outcome.word(),
            bound: one.row.bound,
            unit: one.row.unit.as_deref(),
            room: one.row.room,
            rounds: one.row.rounds,
            disturbed: one.row.disturbed,
            broken_in: one.row.broken_in,
            reason: one.row.reason.as_deref(),
        }
    }
}
