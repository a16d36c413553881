//! The grade of figures in words: what they are worth, and what disturbed or invalidated them.

use findings::{CauseSummary, Summary, TargetSummary, disturbances, invalid};
use judge::{Inconclusive, Verdict};
use ledger::Validity;

use crate::causes::why_text;
use crate::escape::one_line;
use crate::phrases::many;

/// The most causes in a line.
const CAUSES: usize = 4;

/// The most causes in the conclusion.
const CAUSES_CONCLUDED: usize = 2;

/// `clean`, `disturbed in 5 of 5 rounds: rustc 1.1 cores (14.0 % of the run's cores)`.
pub(crate) fn words(target: &TargetSummary) -> String {
    let grade = &target.grade;
    let causes = causes(&grade.causes, grade.rounds, CAUSES);
    match grade.validity {
        Validity::Invalid => format!("invalid: {causes}"),
        _ if grade.is_clean() => "clean".to_owned(),
        _ => {
            let ignored = if grade.ignored { ", which was ignored" } else { "" };
            let rounds = of_rounds(grade.rounds, target.trials);
            format!("disturbed in {rounds}{ignored}: {causes}")
        }
    }
}

/// Causes in one line, with the number of rounds of those that weren't in all.
fn causes(causes: &[CauseSummary], rounds: usize, most: usize) -> String {
    if causes.is_empty() {
        return "no reason was given".to_owned();
    }
    let part = |cause: &CauseSummary| {
        let (words, seen) = (one_line(&why_text(&cause.why)), cause.rounds.len());
        if seen == rounds { words } else { format!("{words} ({})", many(seen, "round")) }
    };
    let mut parts: Vec<String> = causes.iter().take(most).map(part).collect();
    if let Some(more) = causes.len().checked_sub(most).filter(|more| *more > 0) {
        parts.push(format!("and {}", many(more, "more cause")));
    }
    parts.join("; ")
}

/// `5 of 5 rounds`.
fn of_rounds(some: usize, all: usize) -> String {
    let noun = if all == 1 { "round" } else { "rounds" };
    format!("{some} of {all} {noun}")
}

/// What disturbed and invalidated trials of a point: a line for all disturbances, and one for each
/// reason for which a target's trials are invalid. Each has the word that it begins with.
pub(crate) fn lines(summary: &Summary, index: usize) -> Vec<(Validity, String)> {
    let point = &summary.points[index];
    let here = || summary.trials_at(index).map(|(_, trial)| trial);
    let mut lines = Vec::new();
    let (rounds, found) = disturbances(here());
    if rounds > 0 {
        let ignored = if is_ignored(summary) { ", ignored" } else { "" };
        let of = of_rounds(rounds, point.rounds);
        lines.push((
            Validity::Disturbed,
            format!("{of}{ignored}: {}", causes(&found, rounds, CAUSES)),
        ));
    }
    for target in &point.targets {
        let own = || here().filter(|trial| trial.target == target.target);
        for cause in invalid(own()) {
            let when = match (cause.rounds.len(), cause.rounds.first()) {
                (1, Some((_, round))) => format!("round {round}"),
                (rounds, _) => of_rounds(rounds, target.trials),
            };
            let name = one_line(&summary.targets[target.target].name);
            let why = one_line(&why_text(&cause.why));
            lines.push((Validity::Invalid, format!("{name}, {when}: {why}")));
        }
    }
    lines
}

/// Whether the run compares disturbed rounds, and has one.
fn is_ignored(summary: &Summary) -> bool {
    let mut targets = summary.points.iter().flat_map(|point| &point.targets);
    targets.any(|target| target.grade.ignored)
}

/// What disturbed the run, where that bars a verdict, or is ignored.
pub(crate) fn sentence(summary: &Summary) -> Option<String> {
    let all: usize = summary.points.iter().map(|point| point.rounds).sum();
    let (rounds, found) = disturbances(&summary.trials);
    let bars = |one: &findings::Compared| {
        matches!(one.verdict, Verdict::CantTell { why: Inconclusive::DisturbedRounds, .. })
    };
    let mut targets = summary.points.iter().flat_map(|point| &point.targets);
    let is_graded = targets.any(|target| target.grade.word() == "disturbed");
    if rounds == 0 || !(is_graded || summary.comparisons.iter().any(bars)) {
        return None;
    }
    let (of, causes) = (of_rounds(rounds, all), causes(&found, rounds, CAUSES_CONCLUDED));
    Some(match is_ignored(summary) {
        true => format!("Disturbances were ignored (rounds.disturbed), in {of}: {causes}."),
        false => format!("Disturbed: {of}: {causes}."),
    })
}
