//! `--json`: a run for programs. docs/json.md documents every key, and a test holds it to that.
//!
//! Each key stands here once, beside its figure, or is a field of a type in [`findings`]. The keys
//! of a trial are the JSON names of the metrics in [`judge::METRICS`]. A float that isn't finite
//! becomes null, as JSON has no other word for it.

mod parts;
mod point;
mod questions;
mod trial;
mod verdict;

use findings::{Summary, outcome};
use judge::{Direction, Metric};
use ledger::Better;
use serde_json::{Map, Value, json};

use crate::conclusion::conclusion;
use parts::{joined, list};

/// The version of the JSON. It goes up when a key changes its meaning or goes away; keys may be
/// added without that.
pub const SCHEMA: u32 = 1;

/// A run as JSON: an object with `schema`, `run`, `suite`, `targets`, `points`, `trials`,
/// `comparisons`, `requirements`, `findings`, `events` and `slow`.
pub fn json(summary: &Summary) -> Value {
    let suite = &summary.suite;
    let targets = summary.targets.iter().zip(&summary.facts).map(|(row, facts)| {
        json!({
            "name": row.name,
            "description": row.description,
            "skipped": row.skipped,
            "facts": by_name(facts),
        })
    });
    let floors = summary.floors.iter().map(|row| (row.name.clone(), row.value_ns.into()));
    let whole = json!({
        "schema": SCHEMA,
        "run": run(summary),
        "suite": {
            "title": suite.title,
            "path": suite.path,
            "hash": suite.hash,
            "claims": suite.claims,
            "compromises": suite.compromises,
        },
        "fingerprint": summary.fingerprint.json,
        "targets": targets.collect::<Vec<_>>(),
        "points": list(0..summary.points.len(), |index| point::point(summary, index)),
        "floors_ns": floors.collect::<Map<_, _>>(),
        "outcome": outcome(summary).code(),
        "conclusion": conclusion(summary).join(" "),
    });
    joined(joined(whole, seen(summary, |_| true)), questions::questions(summary))
}

/// One point of a run with its trials as JSON; `None` when there is no such point.
pub fn point_json(summary: &Summary, index: usize) -> Option<Value> {
    let here = (index < summary.points.len()).then(|| point::point(summary, index))?;
    let head = json!({ "schema": SCHEMA, "run": summary.id.get() });
    Some(joined(joined(head, here), seen(summary, |point| point == index)))
}

/// The results of the selected points.
fn seen(summary: &Summary, is_asked: impl Fn(usize) -> bool) -> Value {
    let of_trial = |trial: usize| is_asked(summary.trials[trial].point);
    let trials = summary.trials.iter().filter(|one| is_asked(one.point));
    let comparisons = summary.comparisons.iter().filter(|one| is_asked(one.point));
    let requirements = summary.requirements.iter().filter(|one| is_asked(one.point));
    let carried = summary.carried.iter().filter(|(point, ..)| is_asked(*point));
    let findings = summary.findings.iter().filter(|one| of_trial(one.trial));
    let events = summary.events.iter().filter(|one| of_trial(one.trial));
    let slow = summary.slow.iter().filter(|one| of_trial(one.trial));
    json!({
        "trials": list(trials, |one| trial::trial(summary, one)),
        "comparisons": list(comparisons, |one| verdict::comparison(summary, one)),
        "carried": list(carried, |one| verdict::carried(summary, one)),
        "requirements": list(requirements, |one| verdict::requirement(summary, one)),
        "findings": list(findings, |one| trial::finding(summary, one)),
        "events": list(events, |one| trial::event(summary, one)),
        "slow": list(slow, |one| trial::slow(summary, one)),
    })
}

fn run(summary: &Summary) -> Value {
    let run = &summary.run;
    json!({
        "id": summary.id.get(),
        "uid": summary.uid,
        "command": run.command,
        "version": run.version,
        "seed": run.seed,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "state": run.state.word(),
        "note": run.note,
        "settings": by_name(&run.settings),
        "primary_metric": run.primary_metric,
        "figures": list(summary.metrics.reported(), figure),
        "same_within": run.same_within,
        "confidence": run.confidence,
    })
}

/// A figure that programs report.
fn figure(metric: &Metric) -> Value {
    let better = match metric.direction {
        Direction::HigherIsBetter => Better::Higher,
        Direction::LowerIsBetter => Better::Lower,
    };
    json!({ "name": metric.suite, "better": better.word(), "unit": metric.unit.word() })
}

/// Texts by name.
fn by_name(pairs: &[(String, String)]) -> Map<String, Value> {
    pairs.iter().map(|(name, value)| (name.clone(), value[..].into())).collect()
}
