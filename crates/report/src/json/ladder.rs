//! A ladder, for programs.

use findings::{Compared, Profile, Summary, ladder};
use serde::Serialize;
use serde_json::{Map, Value};

#[derive(Serialize)]
pub(super) struct RungJson<'a> {
    rung: &'a str,
    note: &'a str,
    decision: Option<&'static str>,
    decision_reason: Option<&'a str>,
    proposed: Option<&'static str>,
    against_before: Vec<AgainstJson<'a>>,
    against_first: Vec<AgainstJson<'a>>,
    profile: Option<ProfileJson>,
}

#[derive(Serialize)]
struct AgainstJson<'a> {
    point: &'a Map<String, Value>,
    b: &'a str,
    rounds: usize,
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    verdict: &'static str,
}

#[derive(Serialize)]
struct ProfileJson {
    times: usize,
    is_stable: bool,
    functions: Vec<FunctionJson>,
}

#[derive(Serialize)]
struct FunctionJson {
    function: String,
    share: f64,
    least: f64,
    most: f64,
    is_stable: bool,
}

/// Every rung of a run.
pub(super) fn rungs(summary: &Summary) -> Vec<RungJson<'_>> {
    // Borrowed values have to come from the summary, not from the steps.
    let row = |target: usize| summary.rungs.iter().find(|(of, _)| *of == target);
    let steps = ladder(summary).into_iter().filter_map(|step| {
        let (_, row) = row(step.target)?;
        Some(RungJson {
            rung: &summary.targets[step.target].name,
            note: &row.note,
            decision: row.decision.map(ledger::Decision::word),
            decision_reason: row.reason.as_deref(),
            proposed: step.proposed(),
            against_before: step.before.iter().map(|one| against(summary, one)).collect(),
            against_first: step.first.iter().map(|one| against(summary, one)).collect(),
            profile: step.profile.map(profile),
        })
    });
    steps.collect()
}

fn against<'a>(summary: &'a Summary, one: &Compared) -> AgainstJson<'a> {
    let interval = one.interval;
    let ends = interval.filter(|interval| interval.high.is_finite());
    AgainstJson {
        point: &summary.points[one.point].row.keys,
        b: &summary.targets[one.b].name,
        rounds: interval.map_or(0, |interval| interval.rounds),
        ratio: interval.map(|interval| interval.ratio),
        low: ends.map(|interval| interval.low),
        high: ends.map(|interval| interval.high),
        verdict: one.verdict.code(),
    }
}

fn profile(profile: Profile) -> ProfileJson {
    let function = |one: &findings::FunctionShare| FunctionJson {
        function: one.name.clone(),
        share: one.mean,
        least: one.least,
        most: one.most,
        is_stable: one.is_stable(),
    };
    ProfileJson {
        times: profile.times,
        is_stable: profile.is_stable,
        functions: profile.functions.iter().map(function).collect(),
    }
}
