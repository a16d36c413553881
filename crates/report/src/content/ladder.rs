//! A ladder: each rung against the one before and the first, the decision, and its profile.

use findings::{Compared, Profile, Step, Summary, ladder as steps};

use super::point::{drawn, reach};
use crate::document::{Depth, Line, Role};
use crate::number::{bytes, percent};
use crate::phrases::{interval, role_of, verdict};

/// The facts of a build that stand beside a rung.
const SHOWN: &[&str] = &["commit", "subject", "compiler", "program_bytes"];

/// A run's ladder; empty when the run is none.
pub(crate) fn ladder(summary: &Summary) -> Vec<Line> {
    let steps = steps(summary);
    let mut lines = Vec::new();
    lines.extend(program(summary, &steps));
    let all = steps.iter().flat_map(|step| step.before.iter().chain(&step.first));
    let reach = reach(all.filter_map(|one| one.interval.as_ref()));
    for (index, step) in steps.iter().enumerate() {
        let line = Line::from(format!("{} ", index + 1));
        let line = line.and(Role::Strong, &summary.targets[step.target].name);
        let dash = if step.row.note.is_empty() { "" } else { " — " };
        lines.push(line.then(format!("{dash}{}", step.row.note)));
        if let Some(why) = &summary.targets[step.target].skipped {
            lines.push(Line::with_role(Role::Dim, why.clone()).deeper(Depth::Two));
            continue;
        }
        let against = [("the one before", &step.before), ("the first", &step.first)];
        for (words, one) in
            against.iter().flat_map(|(words, all)| all.iter().map(move |one| (words, one)))
        {
            lines.push(compared(summary, words, one, reach));
        }
        lines.extend(decision(step));
        lines.extend(step.profile.iter().flat_map(profile));
        lines.extend(facts(summary, step));
    }
    lines
}

/// How this program was built, and its size, unless that stands beside the rungs: those that a
/// shell starts are this program, too, and their own isn't known.
fn program(summary: &Summary, steps: &[Step<'_>]) -> Option<Line> {
    let first = steps.first()?;
    let fact = |name: &str| summary.fingerprint.json.get(name)?.as_str();
    let flags = fact("compiler_flags").filter(|flags| !flags.is_empty());
    let flags = flags.map(|flags| format!("this program's compiler flags: {flags}"));
    let is_known = summary.facts[first.target].iter().any(|fact| fact.0 == "program_bytes");
    let size = fact("program_bytes").filter(|_| !is_known).and_then(|bytes| bytes.parse().ok());
    let size = size.map(|size| format!("this program's size: {}", bytes(size)));
    let words: Vec<String> = flags.into_iter().chain(size).collect();
    (!words.is_empty()).then(|| Line::with_role(Role::Dim, words.join("; ")))
}

fn compared(summary: &Summary, words: &str, one: &Compared, reach: f64) -> Line {
    let place = match summary.points.len() {
        1 => String::new(),
        _ => format!(" at {}", summary.points[one.point].row.label),
    };
    Line::from(format!("against {words}: "))
        .and(role_of(one.verdict), verdict(one.verdict, None))
        .then(format!(", {}{place}", interval(one)))
        .deeper(Depth::Two)
        .drawn(one.interval.and_then(|interval| drawn(interval, reach).drawing))
}

fn decision(step: &Step<'_>) -> Option<Line> {
    let line = match step.decided() {
        Some((decision, reason)) => Line::from(format!("{}: {reason}", decision.word())),
        None => {
            let words = format!("undecided; the figures say: {}", step.proposed()?);
            Line::with_role(Role::Dim, words)
        }
    };
    Some(line.deeper(Depth::Two))
}

fn profile(profile: &Profile) -> impl Iterator<Item = Line> {
    let function = |one: &findings::FunctionShare| {
        let mark = if one.is_stable() { "" } else { "?" };
        format!("{} {}{mark}", percent(one.mean), one.name)
    };
    let functions: Vec<String> = profile.functions.iter().map(function).collect();
    let words = format!("profile of {}: {}", profile.times, functions.join(" · "));
    let doubt = (!profile.is_stable)
        .then(|| Line::with_role(Role::Unsure, "unstable: don't act on it").deeper(Depth::Two));
    std::iter::once(Line::with_role(Role::Dim, words).deeper(Depth::Two)).chain(doubt)
}

/// The facts of a rung's build that the rung before hasn't.
fn facts(summary: &Summary, step: &Step<'_>) -> Option<Line> {
    // What all rungs have in common is shown with the first.
    let before = step.before.first().map(|one| &summary.facts[one.b]);
    let own = summary.facts[step.target].iter();
    let own = own.filter(|fact| SHOWN.contains(&&fact.0[..]));
    let new = own.filter(|fact| before.is_none_or(|before| !before.contains(fact)));
    let facts = new.map(|(name, value)| format!("{} {value}", name.replace('_', " ")));
    let facts: Vec<String> = facts.collect();
    (!facts.is_empty()).then(|| Line::with_role(Role::Dim, facts.join(" · ")).deeper(Depth::Two))
}
