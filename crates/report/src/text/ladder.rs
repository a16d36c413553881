//! A ladder as text: two lines a rung, and its profile.

use findings::{Compared, Step, Summary, ladder};
use judge::Verdict;

use super::paint::{Paint, Role};
use crate::escape::one_line;
use crate::number::percent;
use crate::phrases::{interval, verdict};

/// A run's ladder. Ends with a newline; empty when the run is none.
pub(super) fn text(summary: &Summary, colour: bool) -> String {
    let paint = Paint::new(colour);
    let steps = ladder(summary);
    if steps.is_empty() {
        return String::new();
    }
    let title = format!("ladder, by {}", one_line(&summary.run.primary_metric));
    let mut out = format!("\n{}\n", paint.text(Role::Strong, &title));
    let flags = summary.fingerprint.json.get("compiler_flags").and_then(|flags| flags.as_str());
    if let Some(flags) = flags.filter(|flags| !flags.is_empty()) {
        let line = format!("this program's compiler flags: {}", one_line(flags));
        out.push_str(&format!("  {}\n", paint.text(Role::Dim, &line)));
    }
    for (index, step) in steps.iter().enumerate() {
        let name = one_line(&summary.targets[step.target].name);
        let note = one_line(&step.row.note);
        let dash = if note.is_empty() { "" } else { " — " };
        out.push_str(&format!("  {} {}{dash}{note}\n", index + 1, paint.text(Role::Strong, &name)));
        for line in lines(summary, step, paint) {
            out.push_str(&format!("      {line}\n"));
        }
    }
    out
}

fn lines(summary: &Summary, step: &Step<'_>, paint: Paint) -> Vec<String> {
    let mut lines = Vec::new();
    for (words, all) in [("the one before", &step.before), ("the first", &step.first)] {
        for one in all {
            let place = match summary.points.len() {
                1 => String::new(),
                _ => format!(" at {}", one_line(&summary.points[one.point].row.label)),
            };
            lines.push(format!("against {words}: {}{place}", said(one, paint)));
        }
    }
    lines.extend(decision(step, paint));
    if let Some(profile) = &step.profile {
        let functions: Vec<String> = profile
            .functions
            .iter()
            .map(|one| {
                let mark = if one.is_stable() { "" } else { "?" };
                format!("{} {}{mark}", percent(one.mean), one_line(&one.name))
            })
            .collect();
        let words = format!("profile of {}: {}", profile.times, functions.join(" · "));
        lines.push(paint.text(Role::Dim, &words));
        if !profile.is_stable {
            lines.push(paint.text(Role::Unsure, "unstable: don't act on it"));
        }
    }
    // What all rungs have in common is shown with the first.
    let before = step.before.first().map(|one| &summary.facts[one.b]);
    let facts: Vec<String> = summary.facts[step.target]
        .iter()
        .filter(|fact| SHOWN.contains(&&fact.0[..]))
        .filter(|fact| before.is_none_or(|before| !before.contains(fact)))
        .map(|(name, value)| format!("{} {}", name.replace('_', " "), one_line(value)))
        .collect();
    if !facts.is_empty() {
        lines.push(paint.text(Role::Dim, &facts.join(" · ")));
    }
    lines
}

/// The facts of a build that stand beside a rung.
const SHOWN: &[&str] = &["commit", "subject", "compiler", "program_bytes"];

fn said(one: &Compared, paint: Paint) -> String {
    let role = match one.verdict {
        Verdict::Better | Verdict::Same => Role::Good,
        Verdict::Worse => Role::Bad,
        Verdict::CantTell { .. } => Role::Unsure,
    };
    format!("{}, {}", paint.text(role, &verdict(one.verdict, None)), interval(one))
}

fn decision(step: &Step<'_>, paint: Paint) -> Option<String> {
    if let Some((decision, reason)) = step.decided() {
        return Some(format!("{}: {}", decision.word(), one_line(reason)));
    }
    let proposed = step.proposed()?;
    Some(paint.text(Role::Dim, &format!("undecided; the figures say: {proposed}")))
}
