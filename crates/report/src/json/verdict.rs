//! Comparisons and requirements, for programs.

use judge::Verdict;
use serde::Serialize;
use serde_json::{Map, Value};

use super::names::Names;
use crate::compare::{Bound, Compared};
use crate::summary::RequirementSummary;

#[derive(Serialize)]
pub(super) struct ComparisonJson<'a> {
    point: &'a Map<String, Value>,
    a: &'a str,
    b: &'a str,
    metric: &'a str,
    primary: bool,
    bound: Option<&'static str>,
    rounds: usize,
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
}

#[derive(Serialize)]
pub(super) struct RequirementJson<'a> {
    point: &'a Map<String, Value>,
    expression: &'a str,
    value: Option<f64>,
    outcome: &'static str,
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
        }
    }

    pub(super) fn requirement(&self, one: &'a RequirementSummary) -> RequirementJson<'a> {
        RequirementJson {
            point: self.point(one.point),
            expression: &one.row.expression,
            value: one.row.value,
            outcome: one.row.outcome.word(),
        }
    }
}
