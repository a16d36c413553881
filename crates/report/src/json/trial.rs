//! A trial with its figures and rows, for programs.

use findings::{
    EventSummary, Figures, FindingSummary, GroupFigures, Latency, SlowSummary, StreamFigures,
    Summary, TrialSummary,
};
use judge::metric_named;
use ledger::StatementRow;
use serde_json::{Value, json};

use super::parts::{joined, list};
use crate::causes::validity_note;
use crate::number::hex;

pub(super) fn trial(summary: &Summary, trial: &TrialSummary) -> Value {
    let row = &trial.row;
    let own = json!({
        "id": trial.id.get(),
        "target": summary.targets[trial.target].name,
        "point": summary.points[trial.point].row.keys,
        "round": trial.round,
        "validity": row.validity.word(),
        "reason": validity_note(row.validity, &trial.why()),
        "causes": row.causes,
        "state": row.state.word(),
        "measured_ns": row.measured_ns,
        "rate_ns": row.rate_ns,
        "wrong_outside": row.wrong_outside,
        "failed_at": row.failed_at.map(ledger::FailedAt::word),
        "warmup_ns": row.warmup_ns,
        "stationary": row.stationary,
        "steady_after_ns": row.steady_after_ns,
        "overloaded": row.overloaded,
        "slices_measured_again": trial.slices_measured_again,
        "groups": list(&trial.groups, group),
        "stream_groups": stream_groups(&trial.stream_groups),
        "values": trial.values,
        "counters": trial.counters,
        "statements": list(&trial.statements, statement),
    });
    joined(own, figures(&trial.figures))
}

fn group(group: &GroupFigures) -> Value {
    json!({
        "clients": group.clients,
        "operation": group.operation,
        "count": group.latency.count,
        "latency_ns": group.latency,
        "service_ns": group.service.seen(),
        "lag_ns": group.lag.seen(),
    })
}

/// A statement that its target executed.
fn statement(row: &StatementRow) -> Value {
    json!({ "text": row.text, "active": row.active, "waits": row.waits, "plan": row.plan })
}

/// The updates of each group of clients.
pub(super) fn stream_groups(groups: &[(String, StreamFigures)]) -> Vec<Value> {
    list(groups, |(clients, figures)| {
        let staleness = figures.staleness.seen();
        joined(json!(figures), json!({ "clients": clients, "staleness_ns": staleness }))
    })
}

/// The figures of a trial, or of a target at a point: what was measured or, without that, what
/// calls reported under the names of metrics.
pub(super) fn figures(figures: &Figures) -> Value {
    let metric = |name: &str| figures.value(metric_named(name)?);
    let whole = |name: &str| metric(name).map(|value| value as u64);
    let latency = Latency {
        p50_ns: whole("latency.p50"),
        p90_ns: whole("latency.p90"),
        p99_ns: whole("latency.p99"),
        p999_ns: whole("latency.p999"),
        max_ns: whole("latency.max"),
        mean_ns: metric("latency.mean"),
        ..figures.latency
    };
    let streams = figures.streams.as_ref();
    let staleness = Latency {
        p50_ns: whole("staleness.p50"),
        p99_ns: whole("staleness.p99"),
        max_ns: whole("staleness.max"),
        ..streams.map(|streams| streams.staleness).unwrap_or_default()
    };
    let usage = |side: &str| {
        json!({
            "cpu_ns_per_op": metric(&format!("{side}.cpu_ns_per_op")),
            "user_ns_per_op": metric(&format!("{side}.user_ns_per_op")),
            "system_ns_per_op": metric(&format!("{side}.system_ns_per_op")),
            "rss_bytes": whole(&format!("{side}.rss_bytes")),
        })
    };
    json!({
        "rate_per_s": metric("rate_per_s"),
        "latency_ns": latency,
        "concurrency": { "mean": metric("concurrency.mean") },
        "lag_ns": figures.lag.seen(),
        "offered_per_s": figures.offered_per_s,
        "backlog_most": figures.backlog_most,
        "operations": figures.operations,
        "wrong": figures.wrong,
        "unchecked": figures.unchecked,
        "refused": figures.refused,
        "missing": figures.missing,
        "misses": figures.misses,
        "hit_ratio": metric("hit_ratio"),
        "elements_per_s": metric("elements_per_s"),
        "bytes_per_s": metric("bytes_per_s"),
        "streams": streams.map(|streams| streams.streams),
        "updates": streams.map(|streams| streams.updates),
        "updates_per_s": metric("updates_per_s"),
        "missed": whole("missed"),
        "merged": whole("merged"),
        "fairness": metric("fairness"),
        "least_updates": whole("least_updates"),
        "staleness_ns": (staleness != Latency::default()).then_some(staleness),
        "server": usage("server"),
        "generator": joined(usage("generator"), json!({ "busy": metric("generator.busy") })),
    })
}

pub(super) fn finding(summary: &Summary, FindingSummary { trial, row }: &FindingSummary) -> Value {
    let own = json!({
        "at_ns": row.at_ns,
        "operation": row.operation,
        "key": row.key,
        "expected_hex": hex(&row.expected),
        "received_hex": hex(&row.received),
        "note": row.note,
    });
    in_trial(summary, *trial, own)
}

pub(super) fn event(summary: &Summary, EventSummary { trial, row }: &EventSummary) -> Value {
    let own = json!({
        "at_ns": row.at_ns,
        "took_ns": row.took_ns,
        "name": row.name,
        "action": row.action,
        "exit_status": row.exit_status,
        "failure": row.failure,
    });
    in_trial(summary, *trial, own)
}

pub(super) fn slow(summary: &Summary, SlowSummary { trial, row }: &SlowSummary) -> Value {
    let own = json!({
        "at_ns": row.at_ns,
        "latency_ns": row.latency_ns,
        "clients": row.clients,
        "operation": row.operation,
    });
    in_trial(summary, *trial, own)
}

/// The same with the trial that it belongs to.
pub(super) fn in_trial(summary: &Summary, trial: usize, own: Value) -> Value {
    let trial = &summary.trials[trial];
    let place = json!({
        "trial": trial.id.get(),
        "target": summary.targets[trial.target].name,
        "point": summary.points[trial.point].row.keys,
        "round": trial.round,
    });
    joined(place, own)
}
