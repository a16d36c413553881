//! `--json`: a run for programs. docs/json.md documents every key, and a test holds it to that.
//!
//! The keys of a trial are the JSON names of the metrics in [`judge::METRICS`]. A float that
//! isn't finite becomes null, as JSON has no other word for it.

mod capacity;
mod contest;
mod cost;
mod ladder;
mod limits;
mod streams;

use serde::Serialize;
use serde_json::{Map, Value};

use judge::Verdict;

use crate::compare::Compared;
use crate::conclusion::conclusion;
use crate::counters::CounterFigures;
use crate::figures::{Figures, Latency, Usage};
use crate::groups::GroupFigures;
use crate::number::hex;
use crate::outcome::outcome;
use crate::slices::Drift;
use crate::summary::{Summary, TargetSummary, TrialSummary};
use crate::values::ValueFigures;
use capacity::VerdictsJson;
use streams::{StreamGroupJson, StreamsJson, stream_groups};

/// The version of the JSON. It goes up when a key changes its meaning or goes away; keys may be
/// added without that.
pub const SCHEMA: u32 = 1;

/// A run as JSON: an object with `schema`, `run`, `suite`, `targets`, `points`, `trials`,
/// `comparisons`, `requirements`, `findings` and `slow`.
///
/// Fails only when serde_json does, which plain data gives it no cause to.
pub fn json(summary: &Summary) -> Result<Value, serde_json::Error> {
    let names = Names { summary };
    serde_json::to_value(Document {
        schema: SCHEMA,
        run: names.run(),
        suite: names.suite(),
        fingerprint: &summary.fingerprint.json,
        targets: summary.targets.iter().zip(&summary.facts).map(target).collect(),
        points: names.points(),
        trials: summary.trials.iter().map(|trial| names.trial(trial)).collect(),
        comparisons: summary.comparisons.iter().map(|one| names.comparison(one)).collect(),
        requirements: names.requirements(),
        findings: names.findings(),
        slow: names.slow(),
        floors_ns: floors(summary),
        verdicts: names.verdicts(),
        rungs: ladder::rungs(summary),
        outcome: outcome(summary).code(),
        conclusion: conclusion(summary).join(" "),
    })
}

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    run: RunJson<'a>,
    suite: SuiteJson<'a>,
    fingerprint: &'a Map<String, Value>,
    targets: Vec<TargetJson<'a>>,
    points: Vec<PointJson<'a>>,
    trials: Vec<TrialJson<'a>>,
    comparisons: Vec<ComparisonJson<'a>>,
    requirements: Vec<RequirementJson<'a>>,
    findings: Vec<FindingJson<'a>>,
    slow: Vec<SlowJson<'a>>,
    floors_ns: Map<String, Value>,
    #[serde(flatten)]
    verdicts: VerdictsJson<'a>,
    rungs: Vec<ladder::RungJson<'a>>,
    outcome: &'static str,
    conclusion: String,
}

#[derive(Serialize)]
struct RunJson<'a> {
    id: i64,
    uid: &'a str,
    command: &'a str,
    version: &'a str,
    seed: u64,
    started_at: &'a str,
    ended_at: Option<&'a str>,
    state: &'static str,
    note: Option<&'a str>,
    settings: Map<String, Value>,
    primary_metric: &'a str,
    same_within: f64,
    confidence: f64,
}

#[derive(Serialize)]
struct SuiteJson<'a> {
    title: &'a str,
    path: &'a str,
    hash: &'a str,
    claims: &'a [String],
    compromises: &'a [String],
}

#[derive(Serialize)]
struct TargetJson<'a> {
    name: &'a str,
    description: &'a str,
    skipped: Option<&'a str>,
    facts: Map<String, Value>,
}

#[derive(Serialize)]
struct PointJson<'a> {
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
    overloaded_trials: usize,
    failed_starts: usize,
    slices_measured_again: usize,
    drift: Option<DriftJson>,
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
struct TrialJson<'a> {
    id: i64,
    target: &'a str,
    point: &'a Map<String, Value>,
    round: u32,
    validity: &'static str,
    reason: Option<&'a str>,
    state: &'static str,
    measured_ns: u64,
    failed_at: Option<&'static str>,
    warmup_ns: Option<u64>,
    stationary: Option<bool>,
    steady_after_ns: Option<u64>,
    overloaded: bool,
    slices_measured_again: usize,
    groups: Vec<GroupJson<'a>>,
    stream_groups: Vec<StreamGroupJson<'a>>,
    values: Vec<ValueJson<'a>>,
    counters: Vec<CounterJson<'a>>,
    #[serde(flatten)]
    figures: FiguresJson,
}

#[derive(Serialize)]
struct GroupJson<'a> {
    clients: &'a str,
    operation: &'a str,
    count: u64,
    latency_ns: LatencyJson,
    service_ns: Option<LatencyJson>,
    lag_ns: Option<LatencyJson>,
}

#[derive(Serialize)]
struct ValueJson<'a> {
    name: &'a str,
    count: u64,
    min: f64,
    median: f64,
    mean: f64,
    max: f64,
}

#[derive(Serialize)]
struct CounterJson<'a> {
    name: &'a str,
    grows: bool,
    value: f64,
    per_op: Option<f64>,
}

#[derive(Serialize)]
struct DriftJson {
    ratio: f64,
    low: Option<f64>,
    high: Option<f64>,
    rounds: usize,
    verdict: &'static str,
}

#[derive(Serialize)]
struct FiguresJson {
    rate_per_s: Option<f64>,
    latency_ns: LatencyJson,
    lag_ns: Option<LatencyJson>,
    offered_per_s: Option<f64>,
    backlog_most: Option<u64>,
    operations: u64,
    wrong: u64,
    unchecked: u64,
    missing: u64,
    misses: u64,
    hit_ratio: Option<f64>,
    elements_per_s: Option<f64>,
    bytes_per_s: Option<f64>,
    #[serde(flatten)]
    streams: StreamsJson,
    server: UsageJson,
    generator: GeneratorJson,
}

#[derive(Serialize)]
struct LatencyJson {
    p50: Option<u64>,
    p90: Option<u64>,
    p95: Option<u64>,
    p99: Option<u64>,
    p999: Option<u64>,
    max: Option<u64>,
    mean: Option<f64>,
}

#[derive(Serialize)]
struct UsageJson {
    cpu_ns_per_op: Option<f64>,
    user_ns_per_op: Option<f64>,
    system_ns_per_op: Option<f64>,
    rss_bytes: Option<u64>,
}

#[derive(Serialize)]
struct GeneratorJson {
    #[serde(flatten)]
    usage: UsageJson,
    busy: Option<f64>,
}

#[derive(Serialize)]
struct ComparisonJson<'a> {
    point: &'a Map<String, Value>,
    a: &'a str,
    b: &'a str,
    metric: &'static str,
    primary: bool,
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
struct RequirementJson<'a> {
    point: &'a Map<String, Value>,
    expression: &'a str,
    value: Option<f64>,
    outcome: &'static str,
}

#[derive(Serialize)]
struct FindingJson<'a> {
    trial: i64,
    target: &'a str,
    point: &'a Map<String, Value>,
    round: u32,
    at_ns: u64,
    operation: &'a str,
    key: &'a str,
    expected_hex: String,
    received_hex: String,
    note: &'a str,
}

#[derive(Serialize)]
struct SlowJson<'a> {
    trial: i64,
    target: &'a str,
    point: &'a Map<String, Value>,
    round: u32,
    at_ns: u64,
    latency_ns: u64,
    clients: &'a str,
    operation: &'a str,
}

/// Turns the summary's indices into the names that JSON uses.
struct Names<'a> {
    summary: &'a Summary,
}

impl<'a> Names<'a> {
    fn target(&self, index: usize) -> &'a str {
        &self.summary.targets[index].name
    }

    fn point(&self, index: usize) -> &'a Map<String, Value> {
        &self.summary.points[index].row.keys
    }

    fn run(&self) -> RunJson<'a> {
        let run = &self.summary.run;
        RunJson {
            id: self.summary.id.get(),
            uid: &self.summary.uid,
            command: &run.command,
            version: &run.version,
            seed: run.seed,
            started_at: &run.started_at,
            ended_at: run.ended_at.as_deref(),
            state: run.state.word(),
            note: run.note.as_deref(),
            settings: run.settings.iter().map(|(key, set)| (key.clone(), set[..].into())).collect(),
            primary_metric: &run.primary_metric,
            same_within: run.same_within,
            confidence: run.confidence,
        }
    }

    fn suite(&self) -> SuiteJson<'a> {
        let suite = &self.summary.suite;
        SuiteJson {
            title: &suite.title,
            path: &suite.path,
            hash: &suite.hash,
            claims: &suite.claims,
            compromises: &suite.compromises,
        }
    }

    fn points(&self) -> Vec<PointJson<'a>> {
        let point = |(index, point): (usize, &'a crate::summary::PointSummary)| PointJson {
            cost: cost::cost(self.summary, index),
            point: &point.row.keys,
            label: &point.row.label,
            rounds: point.rounds,
            valid_rounds: point.valid_rounds,
            disturbed_rounds: point.disturbed_rounds,
            targets: point.targets.iter().map(|target| self.at_point(target)).collect(),
        };
        self.summary.points.iter().enumerate().map(point).collect()
    }

    fn at_point(&self, target: &'a TargetSummary) -> AtPointJson<'a> {
        let half_width = target.rate.map(|rate| rate.relative_half_width);
        let mut figures = FiguresJson::of(&target.figures);
        // The mean over rounds is what the half-width belongs to, not the rate of all together.
        figures.rate_per_s = target.rate.map(|rate| rate.mean).or(figures.rate_per_s);
        AtPointJson {
            target: self.target(target.target),
            trials: target.trials,
            valid_trials: target.valid_trials,
            disturbed_trials: target.disturbed_trials,
            overloaded_trials: target.overloaded_trials,
            failed_starts: target.failed_starts,
            slices_measured_again: target.slices_measured_again,
            drift: target.drift.as_ref().map(DriftJson::of),
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

    fn trial(&self, trial: &'a TrialSummary) -> TrialJson<'a> {
        TrialJson {
            id: trial.id.get(),
            target: self.target(trial.target),
            point: self.point(trial.point),
            round: trial.round,
            validity: trial.row.validity.word(),
            reason: trial.row.reason.as_deref(),
            state: trial.row.state.word(),
            measured_ns: trial.row.measured_ns,
            failed_at: trial.row.failed_at.map(ledger::FailedAt::word),
            warmup_ns: trial.row.warmup_ns,
            stationary: trial.row.stationary,
            steady_after_ns: trial.row.steady_after_ns,
            overloaded: trial.row.overloaded,
            slices_measured_again: trial.slices_measured_again,
            groups: trial.groups.iter().map(GroupJson::of).collect(),
            stream_groups: stream_groups(&trial.stream_groups),
            values: values(&trial.values),
            counters: counters(&trial.counters),
            figures: FiguresJson::of(&trial.figures),
        }
    }

    fn comparison(&self, compared: &Compared) -> ComparisonJson<'a> {
        let interval = compared.interval;
        // One round has no interval: its ends are 0 and infinity, which say nothing.
        let ends = interval.filter(|interval| interval.high.is_finite());
        let (reason, more_rounds) = match compared.verdict {
            Verdict::CantTell { why, more_rounds } => (Some(why.code()), more_rounds),
            _ => (None, None),
        };
        ComparisonJson {
            point: self.point(compared.point),
            a: self.target(compared.a),
            b: self.target(compared.b),
            metric: compared.metric.json,
            primary: compared.primary,
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

    fn requirements(&self) -> Vec<RequirementJson<'a>> {
        let requirement = |one: &'a crate::summary::RequirementSummary| RequirementJson {
            point: self.point(one.point),
            expression: &one.row.expression,
            value: one.row.value,
            outcome: one.row.outcome.word(),
        };
        self.summary.requirements.iter().map(requirement).collect()
    }

    fn findings(&self) -> Vec<FindingJson<'a>> {
        let finding = |one: &'a crate::summary::FindingSummary| {
            let trial = &self.summary.trials[one.trial];
            FindingJson {
                trial: trial.id.get(),
                target: self.target(trial.target),
                point: self.point(trial.point),
                round: trial.round,
                at_ns: one.row.at_ns,
                operation: &one.row.operation,
                key: &one.row.key,
                expected_hex: hex(&one.row.expected),
                received_hex: hex(&one.row.received),
                note: &one.row.note,
            }
        };
        self.summary.findings.iter().map(finding).collect()
    }

    fn slow(&self) -> Vec<SlowJson<'a>> {
        let slow = |one: &'a crate::summary::SlowSummary| {
            let trial = &self.summary.trials[one.trial];
            SlowJson {
                trial: trial.id.get(),
                target: self.target(trial.target),
                point: self.point(trial.point),
                round: trial.round,
                at_ns: one.row.at_ns,
                latency_ns: one.row.latency_ns,
                clients: &one.row.clients,
                operation: &one.row.operation,
            }
        };
        self.summary.slow.iter().map(slow).collect()
    }
}

fn target<'a>((row, facts): (&'a ledger::TargetRow, &'a Vec<(String, String)>)) -> TargetJson<'a> {
    let skipped = row.skipped.as_deref();
    let facts = facts.iter().map(|(name, value)| (name.clone(), value[..].into())).collect();
    TargetJson { name: &row.name, description: &row.description, skipped, facts }
}

impl FiguresJson {
    fn of(figures: &Figures) -> FiguresJson {
        FiguresJson {
            rate_per_s: figures.rate_per_s,
            latency_ns: LatencyJson::of(&figures.latency),
            lag_ns: LatencyJson::if_any(&figures.lag),
            offered_per_s: figures.offered_per_s,
            backlog_most: figures.backlog_most,
            operations: figures.operations,
            wrong: figures.wrong,
            unchecked: figures.unchecked,
            missing: figures.missing,
            misses: figures.misses,
            hit_ratio: figures.hit_ratio,
            elements_per_s: figures.elements_per_s,
            bytes_per_s: figures.bytes_per_s,
            streams: figures.streams.as_ref().map(StreamsJson::of).unwrap_or_default(),
            server: UsageJson::of(&figures.server),
            generator: GeneratorJson {
                usage: UsageJson::of(&figures.generator),
                busy: figures.generator_busy,
            },
        }
    }
}

impl LatencyJson {
    fn of(latency: &Latency) -> LatencyJson {
        LatencyJson {
            p50: latency.p50_ns,
            p90: latency.p90_ns,
            p95: latency.p95_ns,
            p99: latency.p99_ns,
            p999: latency.p999_ns,
            max: latency.max_ns,
            mean: latency.mean_ns,
        }
    }

    /// Null where there is nothing that it could be of.
    fn if_any(latency: &Latency) -> Option<LatencyJson> {
        (latency.count > 0).then(|| LatencyJson::of(latency))
    }
}

impl<'a> GroupJson<'a> {
    fn of(group: &'a GroupFigures) -> GroupJson<'a> {
        GroupJson {
            clients: &group.clients,
            operation: &group.operation,
            count: group.latency.count,
            latency_ns: LatencyJson::of(&group.latency),
            service_ns: LatencyJson::if_any(&group.service),
            lag_ns: LatencyJson::if_any(&group.lag),
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

fn floors(summary: &Summary) -> Map<String, Value> {
    summary.floors.iter().map(|row| (row.name.clone(), row.value_ns.into())).collect()
}

fn values(figures: &[ValueFigures]) -> Vec<ValueJson<'_>> {
    fn value(one: &ValueFigures) -> ValueJson<'_> {
        let ValueFigures { ref name, count, min, median, mean, max } = *one;
        ValueJson { name, count, min, median, mean, max }
    }
    figures.iter().map(value).collect()
}

fn counters(figures: &[CounterFigures]) -> Vec<CounterJson<'_>> {
    fn counter(one: &CounterFigures) -> CounterJson<'_> {
        let CounterFigures { ref name, grows, value, per_op } = *one;
        CounterJson { name, grows, value, per_op }
    }
    figures.iter().map(counter).collect()
}

impl UsageJson {
    fn of(usage: &Usage) -> UsageJson {
        UsageJson {
            cpu_ns_per_op: usage.cpu_ns_per_op,
            user_ns_per_op: usage.user_ns_per_op,
            system_ns_per_op: usage.system_ns_per_op,
            rss_bytes: usage.rss_bytes,
        }
    }
}
