//! `--json`: a run for programs. docs/json.md documents every key, and a test holds it to that.
//!
//! The keys of a trial are the JSON names of the metrics in [`judge::METRICS`]. A float that
//! isn't finite becomes null, as JSON has no other word for it.

mod capacity;
mod contest;
mod cost;
mod figures;
mod ladder;
mod latency;
mod limits;
mod names;
mod point;
mod streams;
mod trial;
mod verdict;

use findings::{Summary, outcome};
use judge::{Direction, Metric};
use ledger::Better;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::conclusion::conclusion;
use capacity::VerdictsJson;
use names::Names;
use point::PointJson;
use trial::{EventJson, FindingJson, SlowJson, TrialJson};
use verdict::{ComparisonJson, RequirementJson};

/// The version of the JSON. It goes up when a key changes its meaning or goes away; keys may be
/// added without that.
pub const SCHEMA: u32 = 1;

/// A run as JSON: an object with `schema`, `run`, `suite`, `targets`, `points`, `trials`,
/// `comparisons`, `requirements`, `findings`, `events` and `slow`.
///
/// Fails only when serde_json does, which plain data never causes.
pub fn json(summary: &Summary) -> Result<Value, serde_json::Error> {
    let names = Names { summary };
    serde_json::to_value(Document {
        schema: SCHEMA,
        run: names.run(),
        suite: names.suite(),
        fingerprint: &summary.fingerprint.json,
        targets: summary.targets.iter().zip(&summary.facts).map(target).collect(),
        points: names.points(),
        seen: names.seen(|_| true),
        floors_ns: floors(summary),
        verdicts: names.verdicts(),
        rungs: ladder::rungs(summary),
        outcome: outcome(summary).code(),
        conclusion: conclusion(summary).join(" "),
    })
}

/// One point of a run with its trials as JSON; `None` when there is no such point.
///
/// Fails only when serde_json does, which plain data never causes.
pub fn point_json(summary: &Summary, index: usize) -> Result<Option<Value>, serde_json::Error> {
    if index >= summary.points.len() {
        return Ok(None);
    }
    let names = Names { summary };
    serde_json::to_value(PointDocument {
        schema: SCHEMA,
        run: summary.id.get(),
        point: names.one_point(index),
        seen: names.seen(|point| point == index),
    })
    .map(Some)
}

#[derive(Serialize)]
struct PointDocument<'a> {
    schema: u32,
    run: i64,
    #[serde(flatten)]
    point: PointJson<'a>,
    #[serde(flatten)]
    seen: SeenJson<'a>,
}

/// The results of some points.
#[derive(Serialize)]
struct SeenJson<'a> {
    trials: Vec<TrialJson<'a>>,
    comparisons: Vec<ComparisonJson<'a>>,
    requirements: Vec<RequirementJson<'a>>,
    findings: Vec<FindingJson<'a>>,
    events: Vec<EventJson<'a>>,
    slow: Vec<SlowJson<'a>>,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    run: RunJson<'a>,
    suite: SuiteJson<'a>,
    fingerprint: &'a Map<String, Value>,
    targets: Vec<TargetJson<'a>>,
    points: Vec<PointJson<'a>>,
    #[serde(flatten)]
    seen: SeenJson<'a>,
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
    figures: Vec<FigureJson<'a>>,
    same_within: f64,
    confidence: f64,
}

/// A figure that programs report.
#[derive(Serialize)]
struct FigureJson<'a> {
    name: &'a str,
    better: &'static str,
    unit: &'static str,
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

impl<'a> Names<'a> {
    /// The results of the selected points.
    fn seen(&self, is_asked: impl Fn(usize) -> bool) -> SeenJson<'a> {
        let all = self.summary;
        let of_trial = |trial: usize| is_asked(all.trials[trial].point);
        let trials = all.trials.iter().filter(|one| is_asked(one.point));
        let comparisons = all.comparisons.iter().filter(|one| is_asked(one.point));
        let requirements = all.requirements.iter().filter(|one| is_asked(one.point));
        SeenJson {
            trials: trials.map(|one| self.trial(one)).collect(),
            comparisons: comparisons.map(|one| self.comparison(one)).collect(),
            requirements: requirements.map(|one| self.requirement(one)).collect(),
            findings: self.findings_of(all.findings.iter().filter(|one| of_trial(one.trial))),
            events: self.events_of(all.events.iter().filter(|one| of_trial(one.trial))),
            slow: self.slow_of(all.slow.iter().filter(|one| of_trial(one.trial))),
        }
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
            figures: self.summary.metrics.reported().iter().map(figure).collect(),
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
}

fn figure(metric: &Metric) -> FigureJson<'_> {
    let better = match metric.direction {
        Direction::HigherIsBetter => Better::Higher,
        Direction::LowerIsBetter => Better::Lower,
    };
    FigureJson { name: &metric.suite, better: better.word(), unit: metric.unit.word() }
}

fn target<'a>((row, facts): (&'a ledger::TargetRow, &'a Vec<(String, String)>)) -> TargetJson<'a> {
    let skipped = row.skipped.as_deref();
    let facts = facts.iter().map(|(name, value)| (name.clone(), value[..].into())).collect();
    TargetJson { name: &row.name, description: &row.description, skipped, facts }
}

fn floors(summary: &Summary) -> Map<String, Value> {
    summary.floors.iter().map(|row| (row.name.clone(), row.value_ns.into())).collect()
}
