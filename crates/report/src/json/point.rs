//! A point and its targets, with what one operation costs them, for programs.

use findings::{
    ActivitySummary, BetweenSlices, CallCost, CallFigures, Cost, Grade, LimitsSummary, Summary,
    TargetSummary, Why, calls, costs,
};
use serde_json::{Value, json};

use super::parts::{interval, joined, list};
use super::trial::{figures, stream_groups};
use crate::causes::why_text;

pub(super) fn point(summary: &Summary, index: usize) -> Value {
    let point = &summary.points[index];
    json!({
        "point": point.row.keys,
        "label": point.row.label,
        "rounds": point.rounds,
        "valid_rounds": point.valid_rounds,
        "disturbed_rounds": point.disturbed_rounds,
        "targets": list(&point.targets, |one| target(summary, index, one)),
        "cost": cost(summary, index),
    })
}

fn target(summary: &Summary, point: usize, target: &TargetSummary) -> Value {
    let half_width = target.rate.map(|rate| rate.relative_half_width);
    let drift = target.drift.map(|drift| {
        joined(json!({ "verdict": drift.verdict.code() }), interval(Some(drift.interval)))
    });
    let own = json!({
        "target": summary.targets[target.target].name,
        "trials": target.trials,
        "valid_trials": target.valid_trials,
        "disturbed_trials": target.disturbed_trials,
        "grade": grade(&target.grade),
        "overloaded_trials": target.overloaded_trials,
        "stretches": target.stretches,
        "failed_starts": target.failed_starts,
        "slices_measured_again": target.slices_measured_again,
        "drift": drift,
        "between_slices": BetweenSlices::of(summary, point, target.target),
        "stream_groups": stream_groups(&target.stream_groups),
        "limit": limit(&target.limits),
        "limits": limits(&target.limits),
        "shared": target.limits.shared,
        "waits": waits(&target.activity),
        "advice": advice(&target.activity),
        "values": target.values,
        "counters": target.counters,
        "rate_per_s_half_width": half_width.filter(|width| width.is_finite()),
    });
    let mut target_figures = figures(&target.figures);
    if let Some(rate) = target.rate {
        // The mean over rounds is what the half-width belongs to, not the rate of all together.
        target_figures["rate_per_s"] = rate.mean.into();
    }
    joined(own, target_figures)
}

fn grade(grade: &Grade) -> Value {
    json!({
        "word": grade.word(),
        "ignored": grade.ignored,
        "rounds": grade.rounds,
        "causes": list(&grade.causes, |cause| {
            let disturbance = if let Why::Disturbed(one) = &cause.why { Some(one) } else { None };
            json!({
                "cause": why_text(&cause.why),
                "rounds": cause.rounds.len(),
                "disturbance": disturbance,
            })
        }),
    })
}

/// The first limit, in one word; null when nothing was judged.
fn limit(limits: &LimitsSummary) -> Option<&str> {
    let none = if limits.unseen.is_some() { "unseen" } else { "none" };
    let first = limits.first().map_or(none, |first| &first.code);
    (limits.trials > 0).then_some(first)
}

/// Every limit that was reached.
fn limits(limits: &LimitsSummary) -> Vec<Value> {
    list(&limits.reached, |one| {
        json!({
            "code": one.code,
            "name": one.name(),
            "trials": one.trials,
            "first_in": one.first_in,
            "judged_trials": limits.trials,
            "strength": one.strength,
            "evidence": one.evidence,
            "advice": one.limit().map(|limit| limit.advice),
        })
    })
}

/// What its connections did, by class.
fn waits(activity: &ActivitySummary) -> Vec<Value> {
    list(&activity.waits, |(class, share)| json!({ "class": class, "share": share }))
}

/// What would help it, most likely first.
fn advice(activity: &ActivitySummary) -> Vec<Value> {
    list(&activity.advice, |one| {
        json!({
            "code": one.row.code,
            "trials": one.trials,
            "first_in": one.first_in,
            "judged_trials": activity.trials,
            "wait": one.row.wait,
            "share": one.row.share,
            "evidence": one.row.evidence,
            "statement": one.statement.as_ref().map(|statement| &statement.text),
            "plan": one.statement.as_ref().and_then(|statement| statement.plan.as_ref()),
            "help": one.row.help,
        })
    })
}

/// Each target's cost of an operation at a point.
fn cost(summary: &Summary, point: usize) -> Vec<Value> {
    let figures = costs(summary, point);
    let sides = [false, true].map(|of_generator| calls(summary, point, of_generator));
    let made = |side: &[CallCost], target: usize| -> Vec<Value> {
        side.iter().filter_map(|one| call(one, target)).collect()
    };
    list(0..summary.targets.len(), |target| {
        json!({
            "target": summary.targets[target].name,
            "figures": list(&figures, |cost| cost_figure(cost, target)),
            "server_calls": made(&sides[0], target),
            "generator_calls": made(&sides[1], target),
        })
    })
}

fn cost_figure(cost: &Cost, target: usize) -> Value {
    let (mean, difference) = (cost.targets[target], cost.differences[target]);
    json!({
        "name": cost.row.code,
        "unit": cost.row.unit,
        "mean": mean.map(|mean| mean.mean),
        "half_width": mean.and_then(|mean| mean.half_width),
        "sampling": cost.sampling[target],
        "difference": difference.map(|mean| mean.mean),
        "difference_half_width": difference.and_then(|mean| mean.half_width),
    })
}

/// A system call of one side; `None` where it wasn't counted.
fn call(call: &CallCost, target: usize) -> Option<Value> {
    let CallFigures { calls, errors, share } = call.targets[target]?;
    Some(json!({
        "name": call.name,
        "calls_per_op": calls,
        "errors_per_op": errors,
        "time_share": share,
        "difference": call.difference(target).filter(|_| target > 0),
    }))
}
