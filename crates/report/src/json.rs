//! `--json`: a run for programs. docs/json.md documents every key, and a test holds it to that.
//!
//! The keys of a trial are the JSON names of the metrics in [`judge::METRICS`]. A float that
//! isn't finite becomes null, as JSON has no other word for it.

use serde::Serialize;
use serde_json::{Map, Value};

use judge::Verdict;

use crate::compare::Compared;
use crate::conclusion::conclusion;
use crate::figures::{Figures, Latency, Usage};
use crate::outcome::outcome;
use crate::summary::{Summary, TargetSummary, TrialSummary};

/// The version of the JSON. It goes up when a key changes its meaning or goes away; keys may be
/// added without that.
pub const SCHEMA: u32 = 1;

/// A run as JSON: an object with `schema`, `run`, `suite`, `targets`, `points`, `trials`,
/// `comparisons`, `requirements` and `findings`.
///
/// Fails only when serde_json does, which plain data gives it no cause to.
pub fn json(summary: &Summary) -> Result<Value, serde_json::Error> {
    let names = Names { summary };
    serde_json::to_value(Document {
        schema: SCHEMA,
        run: names.run(),
        suite: names.suite(),
        fingerprint: &summary.fingerprint.json,
        targets: summary.targets.iter().map(target).collect(),
        points: names.points(),
        trials: summary.trials.iter().map(|trial| names.trial(trial)).collect(),
        comparisons: summary.comparisons.iter().map(|one| names.comparison(one)).collect(),
        requirements: names.requirements(),
        findings: names.findings(),
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
    outcome: &'static str,
    conclusion: String,
}

#[derive(Serialize)]
struct RunJson<'a> {
    id: i64,
    command: &'a str,
    version: &'a str,
    seed: u64,
    started_at: &'a str,
    ended_at: Option<&'a str>,
    state: &'static str,
    note: Option<&'a str>,
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
}

#[derive(Serialize)]
struct PointJson<'a> {
    point: &'a Map<String, Value>,
    label: &'a str,
    rounds: usize,
    valid_rounds: usize,
    targets: Vec<AtPointJson<'a>>,
}

#[derive(Serialize)]
struct AtPointJson<'a> {
    target: &'a str,
    trials: usize,
    valid_trials: usize,
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
    #[serde(flatten)]
    figures: FiguresJson,
}

#[derive(Serialize)]
struct FiguresJson {
    rate_per_s: Option<f64>,
    latency_ns: LatencyJson,
    operations: u64,
    wrong: u64,
    missing: u64,
    misses: u64,
    hit_ratio: Option<f64>,
    server: UsageJson,
    generator: GeneratorJson,
}

#[derive(Serialize)]
struct LatencyJson {
    p50: Option<u64>,
    p90: Option<u64>,
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
            command: &run.command,
            version: &run.version,
            seed: run.seed,
            started_at: &run.started_at,
            ended_at: run.ended_at.as_deref(),
            state: run.state.word(),
            note: run.note.as_deref(),
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
        let point = |point: &'a crate::summary::PointSummary| PointJson {
            point: &point.row.keys,
            label: &point.row.label,
            rounds: point.rounds,
            valid_rounds: point.valid_rounds,
            targets: point.targets.iter().map(|target| self.at_point(target)).collect(),
        };
        self.summary.points.iter().map(point).collect()
    }

    fn at_point(&self, target: &TargetSummary) -> AtPointJson<'a> {
        let half_width = target.rate.map(|rate| rate.relative_half_width);
        let mut figures = FiguresJson::of(&target.figures);
        // The mean over rounds is what the half-width belongs to, not the rate of all together.
        figures.rate_per_s = target.rate.map(|rate| rate.mean).or(figures.rate_per_s);
        AtPointJson {
            target: self.target(target.target),
            trials: target.trials,
            valid_trials: target.valid_trials,
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
}

fn target(row: &ledger::TargetRow) -> TargetJson<'_> {
    let skipped = row.skipped.as_deref();
    TargetJson { name: &row.name, description: &row.description, skipped }
}

impl FiguresJson {
    fn of(figures: &Figures) -> FiguresJson {
        FiguresJson {
            rate_per_s: figures.rate_per_s,
            latency_ns: LatencyJson::of(&figures.latency),
            operations: figures.operations,
            wrong: figures.wrong,
            missing: figures.missing,
            misses: figures.misses,
            hit_ratio: figures.hit_ratio,
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
            p99: latency.p99_ns,
            p999: latency.p999_ns,
            max: latency.max_ns,
            mean: latency.mean_ns,
        }
    }
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
