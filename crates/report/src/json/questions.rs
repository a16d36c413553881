//! What a search for the highest load, a comparison, a ladder, scalability and Little's law add to
//! the JSON of a run.

use findings::{
    CapacitySummary, Compared, Contest, FunctionShare, ModesSummary, Profile, Scaling, Step,
    Summary, ladder,
};
use judge::usl::{Estimate, Unfit};
use serde_json::{Value, json};

use super::parts::{interval, joined, list};
use super::trial::in_trial;

/// The judgements on a run as a whole.
pub(super) fn questions(summary: &Summary) -> Value {
    let little = list(&summary.littles_law, |one| {
        let own = json!({ "clients": one.clients, "seen": one.seen, "slots": one.slots });
        in_trial(summary, one.trial, own)
    });
    json!({
        "capacity": summary.capacity.as_ref().map(|one| capacity(summary, one)),
        "scalings": list(&summary.scalings, |one| scaling(summary, one)),
        "little": little,
        "contest": summary.contest.as_ref().map(|one| contest(summary, one)),
        "modes": list(&summary.modes, |one| modes(summary, one)),
        "rungs": list(&ladder(summary), |one| rung(summary, one)),
    })
}

fn capacity(summary: &Summary, capacity: &CapacitySummary) -> Value {
    let broken = capacity.found.broken;
    let at_broken = capacity.probes.iter().find(|(_, probe)| Some(probe.load) == broken);
    let (limit, evidence) = capacity.limit.as_ref().map(|(limit, why)| (limit, why)).unzip();
    let probes = list(&capacity.probes, |(point, probe)| {
        json!({
            "point": summary.points[*point].row.keys,
            "load": probe.load,
            "outcome": probe.outcome.word(),
            "reason": probe.reason,
            "rounds": summary.points[*point].rounds,
        })
    });
    json!({
        "key": capacity.search.key,
        "precision": capacity.search.precision,
        "held": capacity.found.held,
        "broken": broken,
        "breaks": at_broken.and_then(|(_, probe)| probe.reason.as_ref()),
        "knee": capacity.knee,
        "limit": limit,
        "evidence": evidence,
        "generator_bound": capacity.generator_busy.is_some(),
        "probes": probes,
    })
}

fn scaling(summary: &Summary, scaling: &Scaling) -> Value {
    let law = scaling.fit.as_ref().ok();
    let refused = scaling.fit.as_ref().err().map(|unfit| match unfit {
        Unfit::TooFew(_) => "too_few",
        Unfit::Pattern(_) => "pattern",
        Unfit::NoSolution => "no_solution",
    });
    let estimate = |one: &Estimate| json!({"value": one.value, "low": one.low, "high": one.high});
    json!({
        "target": summary.targets[scaling.target].name,
        "key": scaling.key,
        "beside": scaling.beside,
        "used": scaling.used,
        "left_out": scaling.left_out,
        "refused": refused,
        "gamma": law.map(|law| estimate(&law.gamma)),
        "alpha": law.map(|law| estimate(&law.alpha)),
        "beta": law.map(|law| estimate(&law.beta)),
        "peak": law.map(|law| estimate(&law.peak)),
        "peak_rate": law.map(|law| law.peak_rate),
        "residual": law.map(|law| law.residual),
    })
}

/// The parameters and looks of a comparison.
fn contest(summary: &Summary, contest: &Contest) -> Value {
    let looks = summary.points.iter().zip(&contest.looks);
    json!({
        "error": contest.row.error,
        "rounds_most": contest.row.rounds_most,
        "factor": contest.row.factor,
        "least_shown": contest.row.least_shown,
        "least_shown_from": contest.row.least_shown_from,
        "looks": list(looks, |(point, rounds)| json!({"point": point.row.keys, "rounds": rounds})),
    })
}

fn modes(summary: &Summary, one: &ModesSummary) -> Value {
    json!({
        "point": summary.points[one.point].row.keys,
        "target": summary.targets[one.target].name,
        "metric": one.metric.json,
        "low": one.modes.low,
        "high": one.modes.high,
        "low_rounds": one.modes.low_count,
        "high_rounds": one.modes.high_count,
    })
}

fn rung(summary: &Summary, step: &Step<'_>) -> Value {
    let against = |one: &Compared| {
        let own = json!({
            "point": summary.points[one.point].row.keys,
            "b": summary.targets[one.b].name,
            "verdict": one.verdict.code(),
        });
        joined(own, interval(one.interval))
    };
    json!({
        "rung": summary.targets[step.target].name,
        "note": step.row.note,
        "skipped": summary.targets[step.target].skipped,
        "decision": step.row.decision.map(ledger::Decision::word),
        "decision_reason": step.row.reason,
        "proposed": step.proposed(),
        "against_before": list(&step.before, against),
        "against_first": list(&step.first, against),
        "profile": step.profile.as_ref().map(profile),
    })
}

fn profile(profile: &Profile) -> Value {
    let function = |one: &FunctionShare| {
        json!({
            "function": one.name,
            "share": one.mean,
            "least": one.least,
            "most": one.most,
            "is_stable": one.is_stable(),
        })
    };
    json!({
        "times": profile.times,
        "is_stable": profile.is_stable,
        "functions": list(&profile.functions, function),
    })
}
