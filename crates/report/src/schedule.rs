//! Of a schedule: that a target fell behind it, and in which part.

use findings::{StretchFigures, Summary, TargetSummary};

use crate::number::{rate, thousands};
use crate::phrases::many;

/// From this part of what was due on, the rate of answers says nothing of a queue.
const NEARLY_ALL: f64 = 0.99;

/// From this part of what was due on, what was not answered meanwhile is named though no overload
/// was seen.
const MUCH: f64 = 0.05;

/// Whether a target's schedule has several parts.
pub(crate) fn has_parts(target: &TargetSummary) -> bool {
    target.stretches.iter().any(|one| one.ordinal > 0)
}

/// Whether it is idle at times, or busier than at others, by what is asked for.
pub(crate) fn is_uneven(target: &TargetSummary) -> bool {
    has_parts(target) || target.stretches.iter().any(|one| one.name.ends_with(" in bursts"))
}

/// `rate 2 of 3 (1.5k/s)`, `tenth 4 of the trace`.
pub(crate) fn part(one: &StretchFigures, of: usize) -> String {
    match one.name.starts_with("tenth ") {
        true => format!("{} of the trace", one.name),
        false => format!("rate {} of {of} ({})", one.ordinal + 1, one.name),
    }
}

/// That the first target did not keep up with its schedule, where no search asked how much it
/// carries.
pub(crate) fn overloaded(summary: &Summary) -> Option<String> {
    if summary.capacity.is_some() {
        return None;
    }
    let targets = summary.points.iter().filter_map(|point| point.of_target(0));
    let overloaded: Vec<_> = targets.filter(|target| target.overloaded_trials > 0).collect();
    let first = overloaded.first()?;
    let name = &summary.targets[0].name;
    let place = match (overloaded.len(), summary.points.len()) {
        (_, 1) => String::new(),
        (some, all) => format!(" at {some} of {all} points"),
    };
    let worst = StretchFigures::worst(&first.stretches).filter(|_| overloaded.len() == 1);
    Some(match worst {
        Some((worst, all)) if all.len() > 1 => in_part(name, &place, worst, &all),
        Some((worst, _)) => throughout(name, &place, worst),
        None if overloaded.iter().any(|target| has_parts(target)) => format!(
            "{name} fell behind in a part of the schedule{place}; its latencies count the waiting."
        ),
        None => format!(
            "{name} did not keep up with the schedule{place}; latencies are those of a growing \
             queue."
        ),
    })
}

/// That the first target answered less than was due, and that this is no sure sign of an overload:
/// a slice has few requests, or answers are slow.
pub(crate) fn short(summary: &Summary) -> Option<String> {
    let targets = summary.points.iter().filter_map(|point| point.of_target(0));
    let even = targets.filter(|target| target.overloaded_trials == 0 && !is_uneven(target));
    let stretches = even.flat_map(|target| &target.stretches);
    let most = stretches.max_by(|a, b| a.shortfall().total_cmp(&b.shortfall()))?;
    let is_short = summary.capacity.is_none() && most.shortfall() > MUCH;
    let name = &summary.targets[0].name;
    is_short.then(|| {
        let (due, answered) = figures(most);
        format!(
            "{name} answered {answered} while {due} were due: it was asked for more than it \
             carries, or its answers take long beside a slice. To tell, measure for longer, with \
             [rounds] slice = \"none\"."
        )
    })
}

/// Where the schedule is one rate.
fn throughout(name: &str, place: &str, worst: &StretchFigures) -> String {
    let (due, answered) = figures(worst);
    match worst.shortfall() < 1.0 - NEARLY_ALL && worst.waited > 0 {
        true => format!(
            "{name} did not work off what was due before more came{place}: {due} were due and \
             {answered} answered, and {} or more waited all the time in the second half of a \
             slice; latencies are those of a queue that did not empty.",
            thousands(worst.waited)
        ),
        false => format!(
            "{name} did not keep up with the schedule{place}: {due} were due and {answered} \
             answered; latencies are those of a growing queue."
        ),
    }
}

/// Where it fell behind in one of several rates, or in a part of a trace.
fn in_part(name: &str, place: &str, worst: &StretchFigures, all: &[&StretchFigures]) -> String {
    let is_behind = |one: &&&StretchFigures| one.overloaded_trials > 0 && one.shortfall() > 0.0;
    let behind = all.iter().filter(is_behind).count().max(1);
    let of = all.len();
    let parts = match worst.name.starts_with("tenth ") {
        true => format!("{} of the trace", many(behind, "tenth")),
        false => format!("{behind} of {of} rates"),
    };
    let most = if behind > 1 { "most in" } else { "in" };
    let (due, answered) = figures(worst);
    let waited = match worst.waited {
        0 => String::new(),
        waited => format!(", and {} or more waited in its second half", thousands(waited)),
    };
    let caught_up = all.last().is_some_and(|last| last.overloaded_trials == 0);
    let end = if caught_up { "it caught up later" } else { "it had not caught up at the end" };
    format!(
        "{name} fell behind in {parts}{place}, {most} {}: {due} were due and {answered} answered \
         meanwhile{waited}; {end}. Its latencies count the waiting.",
        part(worst, of)
    )
}

/// What was due and what was answered meanwhile.
fn figures(one: &StretchFigures) -> (String, String) {
    let shown = |figure: Option<f64>| rate(figure.unwrap_or(0.0));
    (shown(one.offered_per_s), shown(one.answered_per_s))
}
