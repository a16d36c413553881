//! A point and its targets, for programs.

use findings::{BetweenSlices, Drift, Grade, TargetSummary};
use serde::Serialize;
use serde_json::{Map, Value};

use super::figures::FiguresJson;
use super::names::Names;
use super::streams::{StreamGroupJson, stream_groups};
use super::trial::{CounterJson, ValueJson, counters, values};
use super::{cost, limits};

#[derive(Serialize)]
pub(super) struct PointJson<'a> {
    point: &'a Map<String, Value>,
    label: &'a str,
    rounds: usize,
    valid_rounds: usize,
    disturbed_rounds: usize,
    targets: Vec<AtPointJson<'a>>,
    cost: Vec<cost::CostJson<'a>>,
}

#[derive(Serialize)]
struct AtPointJson<'a> {
    target: &'a str,
    trials: usize,
    valid_trials: usize,
    disturbed_trials: usize,
    grade: GradeJson<'a>,
    overloaded_trials: usize,
    failed_starts: usize,
    slices_measured_again: usize,
    drift: Option<DriftJson>,
    between_slices: Option<BetweenJson>,
    stream_groups: Vec<StreamGroupJson<'a>>,
    limit: Option<&'a str>,
    limits: Vec<limits::LimitJson<'a>>,
    shared: Option<&'a str>,
    values: Vec<ValueJson<'a>>,
    counters: Vec<CounterJson<'a>>,
    rate_per_s_half_width: Option<f64>,
    #[serde(flatten)]
    figures: FiguresJson,
}

#[derive(Serialize)]
struct GradeJson<'a> {
    word: &'static str,
    ignored: bool,
    rounds: usize,
    causes: Vec<CauseJson<'a>>,
}

#[derive(Serialize)]
struct CauseJson<'a> {
    cause: &'a str,
    rounds: usize,
}

impl<'a> GradeJson<'a> {
    fn of(grade: &'a Grade) -> GradeJson<'a> {
        let causes = grade.causes.iter();
        GradeJson {
            word: grade.word(),
            ignored: grade.ignored,
            rounds: grade.rounds,
            causes: causes.map(|one| CauseJson { cause: &one.text, rounds: one.rounds }).collect(),
        }
    }
}

#[derive(Serialize)]
struct BetweenJson {
    time_ns: f64,
    cpu_ns: f64,
}

#[derive(Serialize)]
struct DriftJson {
    ratio: f64,
    low: Option<f64>,
    high: Option<f64>,
    rounds: usize,
    verdict: &'static str,
}

impl<'a> Names<'a> {
    pub(super) fn points(&self) -> Vec<PointJson<'a>> {
        (0..self.summary.points.len()).map(|index| self.one_point(index)).collect()
    }

    pub(super) fn one_point(&self, index: usize) -> PointJson<'a> {
        let point = &self.summary.points[index];
        PointJson {
            cost: cost::cost(self.summary, index),
            point: &point.row.keys,
            label: &point.row.label,
            rounds: point.rounds,
            valid_rounds: point.valid_rounds,
            disturbed_rounds: point.disturbed_rounds,
            targets: point.targets.iter().map(|target| self.at_point(index, target)).collect(),
        }
    }

    fn at_point(&self, point: usize, target: &'a TargetSummary) -> AtPointJson<'a> {
        let half_width = target.rate.map(|rate| rate.relative_half_width);
        let mut figures = FiguresJson::of(&target.figures);
        // The mean over rounds is what the half-width belongs to, not the rate of all together.
        figures.rate_per_s = target.rate.map(|rate| rate.mean).or(figures.rate_per_s);
        AtPointJson {
            target: self.target(target.target),
            trials: target.trials,
            valid_trials: target.valid_trials,
            disturbed_trials: target.disturbed_trials,
            grade: GradeJson::of(&target.grade),
            overloaded_trials: target.overloaded_trials,
            failed_starts: target.failed_starts,
            slices_measured_again: target.slices_measured_again,
            drift: target.drift.as_ref().map(DriftJson::of),
            between_slices: BetweenSlices::of(self.summary, point, target.target)
                .map(|BetweenSlices { time_ns, cpu_ns }| BetweenJson { time_ns, cpu_ns }),
            stream_groups: stream_groups(&target.stream_groups),
            limit: limits::limit(&target.limits),
            limits: limits::limits(&target.limits),
            shared: target.limits.shared.as_deref(),
            values: values(&target.values),
            counters: counters(&target.counters),
            rate_per_s_half_width: half_width.filter(|width| width.is_finite()),
            figures,
        }
    }
}

impl DriftJson {
    fn of(drift: &Drift) -> DriftJson {
        let interval = drift.interval;
        let ends = interval.high.is_finite();
        DriftJson {
            ratio: interval.ratio,
            low: ends.then_some(interval.low),
            high: ends.then_some(interval.high),
            rounds: interval.rounds,
            verdict: drift.verdict.code(),
        }
    }
}
