//! What a comparison adds to the JSON: its parameters, looks, and modes.

use findings::Contest;
use serde::Serialize;
use serde_json::{Map, Value};

use super::names::Names;

#[derive(Serialize)]
pub(super) struct ContestJson<'a> {
    error: f64,
    rounds_most: u32,
    factor: Option<&'a str>,
    least_shown: Option<f64>,
    least_shown_from: Option<&'a str>,
    looks: Vec<LooksJson<'a>>,
}

#[derive(Serialize)]
pub(super) struct LooksJson<'a> {
    point: &'a Map<String, Value>,
    rounds: &'a [u32],
}

#[derive(Serialize)]
pub(super) struct ModesJson<'a> {
    point: &'a Map<String, Value>,
    target: &'a str,
    metric: &'a str,
    low: f64,
    high: f64,
    low_rounds: usize,
    high_rounds: usize,
}

impl<'a> Names<'a> {
    pub(super) fn contest(&self, contest: &'a Contest) -> ContestJson<'a> {
        let looks = contest.looks.iter().enumerate();
        let looks = looks.map(|(point, rounds)| LooksJson { point: self.point(point), rounds });
        ContestJson {
            error: contest.row.error,
            rounds_most: contest.row.rounds_most,
            factor: contest.row.factor.as_deref(),
            least_shown: contest.row.least_shown,
            least_shown_from: contest.row.least_shown_from.as_deref(),
            looks: looks.collect(),
        }
    }

    pub(super) fn modes(&self) -> Vec<ModesJson<'a>> {
        let modes = |one: &'a findings::ModesSummary| ModesJson {
            point: self.point(one.point),
            target: self.target(one.target),
            metric: &one.metric.json,
            low: one.modes.low,
            high: one.modes.high,
            low_rounds: one.modes.low_count,
            high_rounds: one.modes.high_count,
        };
        self.summary.modes.iter().map(modes).collect()
    }
}
