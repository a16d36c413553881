//! The conclusion of a run in a sentence or two.

mod capacity;
mod ladder;

use findings::{Compared, LikelyCompared, Summary};
use judge::{Direction, Verdict};
use ledger::{RequirementOutcome, RunState, Validity};

use crate::number::{count, ratio, whole_percent};
use crate::phrases::likely_ratio;

/// The run in a few short sentences, one a line: how it ended if it didn't finish, what the
/// primary metric decided against each other target, requirements, and wrong answers.
pub fn conclusion(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    match summary.run.state {
        RunState::Finished => {}
        RunState::Running => lines.push("The run hasn't ended yet.".to_owned()),
        RunState::Interrupted => lines.push("The run was interrupted before its end.".to_owned()),
        RunState::Failed => lines.push("The run failed before its end.".to_owned()),
    }
    if let Some(capacity) = &summary.capacity {
        lines.extend(capacity::sentences(capacity, summary));
        lines.extend(crate::grade::sentence(summary));
        lines.extend((0..summary.targets.len()).filter_map(|one| wrong_answers(summary, one)));
        return lines;
    }
    match &summary.contest {
        Some(contest) => lines.extend(crate::contest::sentences(summary, contest)),
        None if !summary.rungs.is_empty() => lines.extend(ladder::sentence(summary)),
        None => {
            lines.extend((1..summary.targets.len()).filter_map(|target| against(summary, target)));
        }
    }
    if summary.comparisons.is_empty() && summary.rungs.is_empty() {
        lines.extend(best(summary));
    }
    lines.extend(crate::grade::sentence(summary));
    lines.extend(starts(summary));
    lines.extend(requirements(summary));
    lines.extend((0..summary.targets.len()).filter_map(|target| wrong_answers(summary, target)));
    lines
}

/// What no interval has in it where targets ran on from round to round.
fn starts(summary: &Summary) -> Option<String> {
    let is_judged = !summary.comparisons.is_empty() || !summary.requirements.is_empty();
    let found = findings::started_once(summary);
    (is_judged && !found.is_empty()).then(|| {
        "Started once for all rounds (rounds.restart): what differs from start to start is in no \
         interval, and a verdict holds for this start."
            .to_owned()
    })
}

/// The verdict of the primary metric against one other target.
fn against(summary: &Summary, target: usize) -> Option<String> {
    let family: Vec<&Compared> =
        summary.comparisons.iter().filter(|one| one.primary && one.b == target).collect();
    let metric = &family.first()?.metric;
    let subject = &summary.targets[0].name;
    let other = &summary.targets[target].name;
    let within = whole_percent(summary.run.same_within);
    let groups = [
        ("better than", Verdict::code(Verdict::Better)),
        ("worse than", Verdict::code(Verdict::Worse)),
        ("the same as", Verdict::code(Verdict::Same)),
    ];
    let mut clauses = Vec::new();
    for (words, code) in groups {
        let found: Vec<&&Compared> =
            family.iter().filter(|one| one.verdict.code() == code).collect();
        if found.is_empty() {
            continue;
        }
        let detail = match code {
            "same" => format!("within ±{within}"),
            _ => span(found.iter().filter_map(|one| Some(one.interval?.ratio))),
        };
        let places = places(found.len(), family.len());
        clauses.push(format!("is {words} {other}{places} ({} {detail})", metric.suite));
    }
    let undecided: Vec<&Compared> = family
        .iter()
        .filter(|one| matches!(one.verdict, Verdict::CantTell { .. }))
        .copied()
        .collect();
    let likely = likely(&undecided, other);
    if undecided.len() == family.len() {
        let reasons = reasons(&undecided);
        let bounds = match &undecided[..] {
            [one] if one.bound.is_some() || (one.disturbed_rounds > 0 && one.likely.is_none()) => {
                format!(": {}", crate::phrases::interval(one))
            }
            _ => String::new(),
        };
        return Some(format!(
            "It can't be told whether {subject} is better than {other} by {} \
             ({reasons}){bounds}{}.",
            metric.suite,
            likely.map_or(String::new(), |words| format!("; it {words}"))
        ));
    }
    if !undecided.is_empty() {
        let places = places(undecided.len(), family.len());
        clauses.push(format!("can't be told from it{places} ({})", reasons(&undecided)));
        clauses.extend(likely);
    }
    Some(format!("{subject} {}.", clauses.join(", ")))
}

/// `is likely better than memcached (0.57× [0.50, 0.64]; 5 of 5 rounds disturbed, by 2 to 14 %)`,
/// with the number of points and the span of ratios where there are several.
fn likely(undecided: &[&Compared], other: &str) -> Option<String> {
    let found: Vec<LikelyCompared> = undecided.iter().filter_map(|one| one.likely).collect();
    if let ([one], [_]) = (&found[..], undecided) {
        let word = one.code();
        return Some(format!("is likely {word} than {other} ({})", likely_ratio(one)));
    }
    let clause = |word: &str, is_better: bool| {
        let ratios = found.iter().filter(|one| one.is_better == is_better);
        let ratios: Vec<f64> = ratios.map(|one| one.found.interval.ratio).collect();
        let places = places(ratios.len(), undecided.len());
        let span = span(ratios.iter().copied());
        (!ratios.is_empty())
            .then(|| format!("is likely {word} than {other}{places} of these ({span})"))
    };
    let clauses: Vec<String> =
        [clause("better", true), clause("worse", false)].into_iter().flatten().collect();
    (!clauses.is_empty()).then(|| clauses.join(", "))
}

/// ` at 3 of 4 points`, or nothing when there is only one point.
fn places(found: usize, all: usize) -> String {
    match (found, all) {
        (_, 1) => String::new(),
        (found, all) if found == all => format!(" at all {all} points"),
        (found, all) => format!(" at {found} of {all} points"),
    }
}

fn reasons(undecided: &[&Compared]) -> String {
    let mut words: Vec<&str> = Vec::new();
    for compared in undecided {
        if let Verdict::CantTell { why, .. } = compared.verdict
            && !words.contains(&why.words())
        {
            words.push(why.words());
        }
    }
    words.join(", ")
}

/// `10.4×`, or `1.50× to 10.4×`.
fn span(ratios: impl Iterator<Item = f64>) -> String {
    let (low, high) =
        ratios.fold((f64::INFINITY, 0.0_f64), |(low, high), one| (low.min(one), high.max(one)));
    let (low, high) = (ratio(low), ratio(high));
    if low == high { format!("{high}×") } else { format!("{low}× to {high}×") }
}

/// With nothing to compare, the best that the first target showed by the primary metric.
fn best(summary: &Summary) -> Option<String> {
    let metric = summary.primary()?;
    let means = summary.points.iter();
    let means = means.filter_map(|point| {
        let target = point.of_target(0).filter(|one| one.grade.validity != Validity::Invalid)?;
        Some((point, target.primary?.mean, &target.grade))
    });
    let best = means.max_by(|(_, a, _), (_, b, _)| match metric.direction {
        Direction::HigherIsBetter => a.total_cmp(b),
        Direction::LowerIsBetter => b.total_cmp(a),
    });
    let Some((point, best, grade)) = best else { return nothing_valid(summary) };
    let place = match summary.points.len() {
        1 => String::new(),
        _ => format!(" at best, at {}", crate::escape::one_line(&point.row.label)),
    };
    let name = &summary.targets[0].name;
    let value = crate::phrases::value(best, metric) + &crate::phrases::mark(grade);
    Some(match &*metric.suite {
        "rate_per_s" => format!("{name} carried {value}{place}."),
        suite => format!("{name} showed {suite} {value}{place}."),
    })
}

/// Why the first target has no figure that counts, where every trial of it is invalid.
fn nothing_valid(summary: &Summary) -> Option<String> {
    let own: Vec<_> = summary.trials.iter().filter(|trial| trial.target == 0).collect();
    let all_invalid = own.iter().all(|trial| trial.row.validity == Validity::Invalid);
    let causes = findings::invalid(own.iter().copied());
    let first = causes.first().filter(|_| all_invalid && summary.run.state != RunState::Running)?;
    let name = &summary.targets[0].name;
    let (why, rounds) = (crate::escape::one_line(&first.text), own.len());
    let of = crate::phrases::many(rounds, "round");
    Some(format!("{name} has no valid figure: {} of {of} ended with \"{why}\".", first.rounds))
}

fn requirements(summary: &Summary) -> Option<String> {
    let all = summary.requirements.len();
    let with = |outcome| summary.requirements.iter().filter(move |one| one.row.outcome == outcome);
    if all == 0 {
        return None;
    }
    if let Some(first) = with(RequirementOutcome::Broken).next() {
        let broken = with(RequirementOutcome::Broken).count();
        let expression = &first.row.expression;
        let figure = crate::requirements::figure(&first.row);
        let place = crate::escape::one_line(&summary.points[first.point].row.label);
        let first = if broken == 1 { "" } else { "the first is " };
        return Some(format!(
            "Broken: {broken} of {all} requirements; {first}{expression} at {place}: it was \
             {figure}."
        ));
    }
    let unclear = with(RequirementOutcome::CantTell).count();
    Some(match (unclear, all) {
        (0, 1) => "The requirement held.".to_owned(),
        (0, _) => format!("All {all} requirements held."),
        _ => format!("It can't be told whether {unclear} of {all} requirements held."),
    })
}

fn wrong_answers(summary: &Summary, target: usize) -> Option<String> {
    let figures = || summary.points.iter().filter_map(|point| point.of_target(target));
    let wrong: u64 = figures().map(|one| one.wrong_of_all).sum();
    let operations: u64 = figures().map(|one| one.operations_of_all).sum();
    let outside: u64 = figures().map(|one| one.wrong_outside).sum();
    let answers = if wrong + outside == 1 { "wrong answer" } else { "wrong answers" };
    let name = &summary.targets[target].name;
    let (wrong, outside, operations) = match (wrong, outside) {
        (0, 0) => return None,
        (wrong, outside) => (count(wrong), count(outside), count(operations)),
    };
    Some(match (&wrong[..], &outside[..]) {
        (_, "0") => format!("{name} gave {wrong} {answers} of {operations}."),
        ("0", _) => format!("{name} gave {outside} {answers} outside the measured slices."),
        _ => format!(
            "{name} gave {wrong} {answers} of {operations}, and {outside} outside the measured \
             slices."
        ),
    })
}
