//! The progress of a run as JSON.

use findings::{Progress, TargetProgress};
use ledger::Validity;
use serde_json::{Value, json};

use crate::causes::validity_note;
use crate::json::SCHEMA;

/// The progress of a run for programs.
pub fn progress_json(progress: &Progress) -> Value {
    let so_far = &progress.so_far;
    let confidence = so_far.run.confidence;
    let target = |(at, one): (usize, &TargetProgress)| {
        json!({
            "target": so_far.targets[at].1.name,
            "valid_trials": one.valid,
            "disturbed_trials": one.disturbed,
            "invalid_trials": one.invalid,
            "reason": validity_note(Validity::Disturbed, &one.why),
            "operations": one.operations,
            "wrong": one.wrong,
            "refused": one.refused,
            "missing": one.missing,
            "rate_per_s": one.rate(confidence).map(|rate| rate.mean),
            "latency_ns": { "p50": one.p50_ns(), "p99": one.p99_ns() },
            "busy": one.generator_busy,
        })
    };
    let point = |(at, one): (usize, &findings::PointProgress)| {
        json!({
            "point": so_far.points[at].1.keys,
            "label": so_far.points[at].1.label,
            "rounds": one.rounds,
            "is_measured_now": progress.now.is_some_and(|(point, _)| point == at),
            "targets": one.targets.iter().enumerate().map(target).collect::<Vec<_>>(),
        })
    };
    json!({
        "schema": SCHEMA,
        "run": so_far.id.get(),
        "state": so_far.run.state.word(),
        "started_at": so_far.run.started_at,
        "title": so_far.title,
        "round": progress.now.map(|(_, round)| round),
        "points": progress.points.iter().enumerate().map(point).collect::<Vec<_>>(),
    })
}
