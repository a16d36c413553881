//! The conclusion of a run in a sentence or two.

mod capacity;
mod ladder;

use findings::Summary;
use judge::{Direction, Inconclusive, Unit, Verdict};
use ledger::{RequirementOutcome, RunState, TargetRow, Validity};

use crate::causes::why_text;
use crate::escape::one_line;
use crate::number::{count, in_one_unit, percent, value_of};
use crate::phrases::many;
use crate::wording::{is_taken, noun};

/// From this half of an interval on, a mean is not named without it.
const WIDE: f64 = 0.1;

/// The run in a few short sentences, one a line: how it ended if it didn't finish, what wasn't
/// measured, what the primary metric decided against each other target, requirements, and answers
/// that were wrong, refused or missing.
pub fn conclusion(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    match summary.run.state {
        RunState::Finished => {}
        RunState::Running => lines.push("The run hasn't ended yet.".to_owned()),
        RunState::Interrupted => lines.push("The run was interrupted before its end.".to_owned()),
        RunState::Failed => {
            let why = summary.run.note.as_deref().and_then(|note| note.lines().next());
            let why =
                why.map_or_else(String::new, |why| format!(": {}", why.trim_end_matches('.')));
            lines.push(format!("The run did not go to its end{why}."));
        }
    }
    let targets = 0..summary.targets.len();
    let unmeasured: Vec<Option<String>> =
        targets.clone().map(|target| unmeasured(summary, target)).collect();
    let is_measured = |target: usize| unmeasured[target].is_none();
    lines.extend(unmeasured.iter().flatten().cloned());
    lines.extend(left_out(summary));
    match (&summary.capacity, &summary.contest) {
        (Some(capacity), _) => lines.extend(capacity::sentences(capacity, summary)),
        (_, Some(contest)) => lines.extend(crate::contest::sentences(summary, contest)),
        _ if !summary.rungs.is_empty() => lines.extend(ladder::sentence(summary)),
        _ if !is_measured(0) => {}
        _ => {
            let others = targets.clone().skip(1).filter(|other| is_measured(*other));
            lines.extend(others.filter_map(|other| crate::against::sentence(summary, other)));
            if summary.comparisons.iter().all(|one| !is_measured(one.b)) {
                lines.extend(best(summary));
            }
        }
    }
    let of_schedule = crate::schedule::overloaded(summary);
    lines.extend(of_schedule.or_else(|| crate::schedule::short(summary)));
    lines.extend(crate::grade::sentence(summary));
    if summary.capacity.is_none() {
        lines.extend(targets.clone().filter_map(|target| failed(summary, target)));
    }
    lines.extend(starts(summary));
    if summary.capacity.is_none() {
        lines.extend(requirements(summary));
    }
    lines.extend(targets.clone().filter_map(|target| wrong_answers(summary, target)));
    lines.extend(targets.clone().filter_map(|target| refusals(summary, target)));
    lines.extend(targets.filter_map(|target| unanswered(summary, target)));
    lines.extend(unsure(summary));
    lines
}

/// That no round was undisturbed, where no other sentence says that something can't be told.
fn unsure(summary: &Summary) -> Option<String> {
    let is_undecided = |one: &findings::Compared| matches!(one.verdict, Verdict::CantTell { .. });
    let is_said = summary.comparisons.iter().any(|one| one.primary && is_undecided(one))
        || summary.requirements.iter().any(|one| one.row.outcome == RequirementOutcome::CantTell);
    let is_due = summary.run.state == RunState::Finished && summary.capacity.is_none() && !is_said;
    let has_none = |target: &usize| {
        let seen =
            |one: &findings::TargetSummary| one.disturbed_trials > 0 && one.valid_trials == 0;
        summary.points.iter().any(|point| point.of_target(*target).is_some_and(seen))
    };
    let target = (0..summary.targets.len()).find(has_none).filter(|_| is_due)?;
    let name = &summary.targets[target].name;
    (findings::outcome(summary).exit_code(false) == 4).then(|| {
        format!("No round of {name} was undisturbed: on a quiet machine its figures may differ.")
    })
}

/// What no interval has in it where targets ran on from round to round.
fn starts(summary: &Summary) -> Option<String> {
    let is_judged = !summary.comparisons.is_empty() || !summary.requirements.is_empty();
    let found = findings::started_once(summary);
    // The sentence of a difference says it already.
    let is_said = summary.comparisons.iter().any(|one| {
        let why = Inconclusive::OneStart;
        one.primary && one.verdict == Verdict::CantTell { why, more_rounds: None }
    });
    (is_judged && !is_said && !found.is_empty()).then(|| {
        "Started once for all rounds: what differs from start to start is in no interval, and \
         what was found holds for this start."
            .to_owned()
    })
}

/// Why a target has no figure that counts, where every trial of it is invalid.
fn unmeasured(summary: &Summary, target: usize) -> Option<String> {
    let name = &summary.targets[target].name;
    let own: Vec<_> = summary.trials.iter().filter(|trial| trial.target == target).collect();
    if summary.run.state == RunState::Running || summary.targets[target].skipped.is_some() {
        return None;
    }
    if own.is_empty() {
        return Some(format!("Nothing was measured of {name}: no round of it was begun."));
    }
    let is_invalid = own.iter().all(|trial| trial.row.validity == Validity::Invalid);
    let causes = findings::invalid(own.iter().copied());
    let cause = causes.first().filter(|_| is_invalid)?;
    let why = one_line(&why_text(&cause.why));
    let why = why.strip_prefix(&format!("{name}: ")).unwrap_or(&why);
    let others = match causes.len() - 1 {
        0 => String::new(),
        others => format!("; and {}", many(others, "more cause")),
    };
    let when = format!("{} of {}", cause.rounds.len(), many(own.len(), "round"));
    let answered = own.iter().any(|trial| trial.row.operations > 0);
    Some(match answered {
        true => format!("No figure of {name} counts: {why} ({when}{others})."),
        false => format!("Nothing was measured of {name}: {why} ({when}{others})."),
    })
}

/// Why some rounds of a target don't count, where others do: it may have died.
fn failed(summary: &Summary, target: usize) -> Option<String> {
    let name = &summary.targets[target].name;
    let own: Vec<_> = summary.trials.iter().filter(|trial| trial.target == target).collect();
    let invalid = own.iter().filter(|trial| trial.row.validity == Validity::Invalid).count();
    let causes = findings::invalid(own.iter().copied());
    let cause = causes.first().filter(|_| invalid < own.len())?;
    let why = one_line(&why_text(&cause.why));
    let why = why.strip_prefix(&format!("{name}: ")).unwrap_or(&why);
    let others = match causes.len() - 1 {
        0 => String::new(),
        others => format!("; and {}", many(others, "more cause")),
    };
    Some(format!("Of {} of {name} {invalid} can't count: {why}{others}.", many(own.len(), "round")))
}

/// What is missing, where that leaves no target to measure.
fn left_out(summary: &Summary) -> Option<String> {
    let reason = |target: &TargetRow| {
        let why = one_line(target.skipped.as_deref()?);
        Some(format!("{}: {why}", target.name))
    };
    let reasons: Option<Vec<String>> = summary.targets.iter().map(reason).collect();
    let reasons = reasons.filter(|all| !all.is_empty())?.join("; ");
    Some(format!(
        "Nothing was measured, as every target is left out ({reasons}): install what is missing, \
         or say in the target's command where it is."
    ))
}

/// With nothing to compare, what the first target showed: of several points the span, and where it
/// was best.
fn best(summary: &Summary) -> Option<String> {
    let metric = summary.primary()?;
    let is_percentile = metric.suite.starts_with("latency.p");
    let figures = summary.points.iter().filter_map(|point| {
        let target = point.of_target(0).filter(|one| one.grade.validity != Validity::Invalid)?;
        // Of 250 µs in most rounds and 10 s in one, 2 ms would be a latency that no request had.
        let value = match is_percentile {
            true => target.figures.value(metric)?,
            false => target.primary?.mean,
        };
        Some((point, value, target))
    });
    let mut figures: Vec<_> = figures.collect();
    figures.sort_by(|(_, a, _), (_, b, _)| match metric.direction {
        Direction::HigherIsBetter => b.total_cmp(a),
        Direction::LowerIsBetter => a.total_cmp(b),
    });
    let (point, best, target) = figures.first()?;
    let name = &summary.targets[0].name;
    let shown = |value: f64| value_of(value, metric.unit);
    let is_rate = metric.suite == "rate_per_s";
    let said = |value: String| match (is_rate, is_taken(metric)) {
        (true, _) => format!("{name} reached {value}"),
        (_, true) => format!("{name} took {value} {}", noun(metric)),
        _ => format!("{name} had a {} of {value}", noun(metric)),
    };
    let latency = &target.figures.latency;
    let latencies = latency.p50_ns.zip(latency.p99_ns).filter(|_| is_rate);
    let half = target.primary.map(|one| one.relative_half_width).filter(|half| half.is_finite());
    let differ = half.filter(|half| *half >= WIDE).map(|half| match half <= 10.0 {
        true => format!("±{}, as rounds differ", percent(half)),
        false => "rounds differ more than tenfold".to_owned(),
    });
    let beside: Vec<String> = [
        differ,
        (!target.grade.is_clean()).then(|| target.grade.word().to_owned()),
        latencies.map(|(p50, p99)| {
            let [p50, p99] = in_one_unit([p50 as f64, p99 as f64], Unit::Nanoseconds);
            format!("p50 {p50}, p99 {p99}")
        }),
    ]
    .into_iter()
    .flatten()
    .collect();
    let beside = match beside.is_empty() {
        true => String::new(),
        false => format!(" ({})", beside.join("; ")),
    };
    let (_, worst, _) = figures.last()?;
    let [low, high] = [best.min(*worst), best.max(*worst)].map(shown);
    if low == high {
        let places = if summary.points.len() > 1 { " at every point" } else { "" };
        return Some(format!("{}{places}{beside}.", said(low)));
    }
    let place = one_line(&point.row.label);
    Some(format!("{}, best at {place}{beside}.", said(format!("{low} to {high}"))))
}

fn requirements(summary: &Summary) -> Option<String> {
    let all = summary.requirements.len();
    let with = |outcome| summary.requirements.iter().filter(move |one| one.row.outcome == outcome);
    if all == 0 {
        return None;
    }
    let unclear = with(RequirementOutcome::CantTell).count();
    if let Some(first) = with(RequirementOutcome::Broken).next() {
        let broken = with(RequirementOutcome::Broken).count();
        let expression = &first.row.expression;
        let figure = crate::requirements::figure(&first.row);
        let place = match summary.points.len() {
            1 => String::new(),
            _ => format!(" at {}", one_line(&summary.points[first.point].row.label)),
        };
        let unclear = match unclear {
            0 => String::new(),
            some => format!(", {some} can't be told"),
        };
        let broken = match (broken, all) {
            (1, 1) => "The requirement is broken: ".to_owned(),
            (1, _) => format!("1 of {all} requirements is broken{unclear}: "),
            _ => format!("{broken} of {all} requirements are broken{unclear}; first "),
        };
        return Some(format!("{broken}{expression}{place}: it was {figure}."));
    }
    Some(match (unclear, all) {
        (0, _) if summary.run.state != RunState::Finished => {
            "In what was measured no requirement was broken.".to_owned()
        }
        (0, 1) => "The requirement held.".to_owned(),
        (0, _) => format!("All {all} requirements held."),
        (_, 1) => "It can't be told whether the requirement held.".to_owned(),
        _ => format!("It can't be told whether {unclear} of {all} requirements held."),
    })
}

/// `ours refused 1,200 of 3.4 M operations.`
fn refusals(summary: &Summary, target: usize) -> Option<String> {
    let figures = || summary.points.iter().filter_map(|point| point.of_target(target));
    let refused: u64 = figures().map(|one| one.refused_of_all).sum();
    let [refused, operations] = [refused, figures().map(|one| one.operations_of_all).sum()];
    let (name, of) = (&summary.targets[target].name, count(operations));
    (refused > 0).then(|| format!("{name} refused {} of {of} operations.", count(refused)))
}

/// `ours left 12 of 3.4 M operations unanswered.`
fn unanswered(summary: &Summary, target: usize) -> Option<String> {
    let figures = || summary.points.iter().filter_map(|point| point.of_target(target));
    let missing: u64 = figures().map(|one| one.missing_of_all).sum();
    let answered: u64 = figures().map(|one| one.operations_of_all).sum();
    let (name, of) = (&summary.targets[target].name, count(answered + missing));
    (missing > 0).then(|| format!("{name} left {} of {of} operations unanswered.", count(missing)))
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
    let cause = summary
        .overfull(target)
        .map_or(String::new(), |data| format!(": evictions, with {}", one_line(data)));
    Some(match (&wrong[..], &outside[..]) {
        (_, "0") => format!("{name} gave {wrong} {answers} of {operations}{cause}."),
        ("0", _) => format!("{name} gave {outside} {answers} outside the measured slices{cause}."),
        _ => format!(
            "{name} gave {wrong} {answers} of {operations}, and {outside} outside the measured \
             slices{cause}."
        ),
    })
}
