//! Of a schedule: that a target fell behind it, and in which part.

use findings::{PointSummary, StretchFigures, Summary, TargetSummary};

use crate::escape::one_line;
use crate::number::{rate, thousands};
use crate::phrases::many;

/// Below this part of what was due, what was not answered meanwhile says nothing of a queue.
const NO_SHORTFALL: f64 = 0.01;

/// From this part of what was due on, what was not answered meanwhile is named though no overload
/// was seen.
const LARGE_SHORTFALL: f64 = 0.05;

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
/// a slice has few requests, or answers are slow. What was refused or never answered is no queue,
/// and is reported as such.
pub(crate) fn short(summary: &Summary) -> Option<String> {
    let of_first = |point| PointSummary::of_target(point, 0).map(|target| (point, target));
    let targets = summary.points.iter().filter_map(of_first);
    let even = targets.filter(|(_, one)| one.overloaded_trials == 0 && !is_uneven(one));
    let stretches = even.flat_map(|(point, one)| one.stretches.iter().map(move |of| (point, of)));
    let stretches = stretches.filter(|(_, of)| of.missing + of.refused == 0);
    let (point, most) = stretches.max_by(|a, b| a.1.shortfall().total_cmp(&b.1.shortfall()))?;
    let is_short = summary.capacity.is_none() && most.shortfall() > LARGE_SHORTFALL;
    let name = &summary.targets[0].name;
    let place = match summary.points.len() {
        1 => String::new(),
        _ => format!(", at {}", one_line(&point.row.label)),
    };
    is_short.then(|| {
        let (due, answered) = figures(most);
        format!(
            "{name} answered {answered} while {due} were due{place}: it was asked for more than it \
             carries, or its answers take long beside a slice. To tell, measure for longer, with \
             [rounds] slice = \"none\"."
        )
    })
}

/// Where the schedule is one rate.
fn throughout(name: &str, place: &str, worst: &StretchFigures) -> String {
    let (due, answered) = figures(worst);
    match (worst.shortfall() < NO_SHORTFALL, worst.waited) {
        (true, 0) => format!(
            "{name} did not keep up with the schedule{place}: of {due} that were due {answered} \
             were answered, and those under way became more and more; latencies are those of a \
             growing queue."
        ),
        (true, _) => format!(
            "{name} did not work off what was due before more came{place}: {due} were due and \
             {answered} answered, and {} or more waited all the time in the second half of a \
             slice; latencies are those of a queue that did not empty.",
            thousands(worst.waited)
        ),
        (false, _) => format!(
            "{name} did not keep up with the schedule{place}: {due} were due and {answered} \
             answered; latencies are those of a growing queue."
        ),
    }
}

/// Where it fell behind in one of several rates, or in a part of a trace.
fn in_part(name: &str, place: &str, worst: &StretchFigures, all: &[&StretchFigures]) -> String {
    let behind = all.iter().filter(|one| one.overloaded_trials > 0).count();
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
    let last = all.last().filter(|last| !std::ptr::eq(**last, worst));
    let caught_up = last.is_some_and(|last| 2 * last.overloaded_trials <= last.trials);
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
