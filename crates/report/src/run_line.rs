//! A run in one sentence, for lists of runs: from what the database counts, not from the whole run.

use judge::{Direction, Metric, Verdict, metric_named};
use ledger::{RunLine, RunResult, RunState, VerdictCount};

use crate::document::Role;
use crate::escape::one_line;
use crate::number::{plain, rate, ratio, value_of};
use crate::phrases::{carries, many};
use crate::text::Paint;

/// The sentence with its role, which is a colour.
pub(crate) fn sentence(run: &RunLine, result: Option<&RunResult>) -> (Role, String) {
    let none = RunResult::default();
    let result = result.unwrap_or(&none);
    let words = found(run, result);
    let (role, before) = match run.state {
        RunState::Running => return (Role::Dim, format!("Being measured: {}.", so_far(run))),
        RunState::Failed => (Role::Bad, "Failed. "),
        RunState::Interrupted => (Role::Unsure, "Interrupted. "),
        RunState::Finished => (role(run, result), ""),
    };
    (role, format!("{before}{words}"))
}

/// The same as a line of a terminal.
pub fn run_sentence(run: &RunLine, result: Option<&RunResult>, colour: bool) -> String {
    let (role, words) = sentence(run, result);
    Paint::new(colour).text(role, &words)
}

fn so_far(run: &RunLine) -> String {
    many(run.trials as usize, "trial")
}

/// As exit codes rank them: broken, worse, can't tell, better.
fn role(run: &RunLine, result: &RunResult) -> Role {
    let has = |word: &str| result.verdicts.iter().any(|one| one.verdict == word);
    let broke = match &result.loads {
        Some(loads) => loads.held.is_none() && loads.broken.is_some(),
        None => result.broken > 0,
    };
    let unclear = match &result.loads {
        Some(loads) => loads.held.is_none(),
        None => {
            let words = ["cant_tell", "likely_better", "likely_worse"];
            words.into_iter().any(has) || result.unclear > 0
        }
    };
    match () {
        () if broke || has("worse") => Role::Bad,
        () if unclear || run.valid_trials == 0 => Role::Unsure,
        () => Role::Good,
    }
}

fn found(run: &RunLine, result: &RunResult) -> String {
    let name = one_line(&result.target);
    if run.trials == 0 {
        return "Nothing was measured.".to_owned();
    }
    if let Some(loads) = &result.loads {
        return carries(&name, &loads.key, loads.held, loads.broken) + ".";
    }
    let mut sentences: Vec<String> = Vec::new();
    for one in result.verdicts.chunk_by(|x, y| x.b == y.b) {
        sentences.push(against(one));
    }
    if sentences.is_empty() {
        sentences.extend(carried(&name, result));
    }
    if run.valid_trials == 0 {
        sentences.push(format!("None of {} was clean.", so_far(run)));
    }
    sentences.extend(required(result));
    sentences.join(" ")
}

/// `loadline is better than memcached at 3 of 4 points (2.01× to 2.31×), can't be told at 1.`
fn against(counts: &[VerdictCount]) -> String {
    let all: u64 = counts.iter().map(|one| one.points).sum();
    let clause = |one: &VerdictCount| {
        let words = match &one.verdict[..] {
            "better" => "better than",
            "worse" => "worse than",
            "same" => "the same as",
            "likely_better" => "likely better than",
            "likely_worse" => "likely worse than",
            _ => "not to be told from",
        };
        let places = match (one.points, all) {
            (_, 1) => String::new(),
            (points, all) if points == all => format!(" at all {all} points"),
            (points, all) => format!(" at {points} of {all}"),
        };
        let is_decided = one.verdict.ends_with(Verdict::Better.code())
            || one.verdict.ends_with(Verdict::Worse.code());
        let span = one.ratios.filter(|_| is_decided).map(|(low, high)| (ratio(low), ratio(high)));
        let span = span.map_or(String::new(), |(low, high)| match low == high {
            true => format!(" ({low}×)"),
            false => format!(" ({low}× to {high}×)"),
        });
        format!("{words} {}{places}{span}", one_line(&one.b))
    };
    let clauses: Vec<String> = counts.iter().map(clause).collect();
    format!("{} is {}.", one_line(&counts[0].a), clauses.join(", "))
}

/// With nothing to compare, the best that the first target showed.
fn carried(name: &str, result: &RunResult) -> Option<String> {
    let metric: Option<&Metric> = metric_named(&result.metric);
    let is_high = metric.is_none_or(|one| one.direction == Direction::HigherIsBetter);
    let best = match is_high {
        true => result.figures.iter().copied().max_by(f64::total_cmp),
        false => result.figures.iter().copied().min_by(f64::total_cmp),
    }?;
    let at_best = if result.figures.len() > 1 { " at best" } else { "" };
    Some(match metric {
        Some(metric) if metric.suite == "rate_per_s" => {
            format!("{name} reached {}{at_best}.", rate(best))
        }
        Some(metric) => {
            format!("{name} showed {} {}{at_best}.", metric.suite, value_of(best, metric.unit))
        }
        None => format!("{name} showed {} {}{at_best}.", one_line(&result.metric), plain(best)),
    })
}

fn required(result: &RunResult) -> Option<String> {
    let all = result.held + result.broken + result.unclear;
    match (all, result.broken, result.unclear) {
        (0, _, _) => None,
        (1, 0, 0) => Some("The requirement held.".to_owned()),
        (_, 0, 0) => Some(format!("All {all} requirements held.")),
        (_, 0, unclear) => Some(format!("Can't be told: {unclear} of {all} requirements.")),
        (_, broken, _) => Some(format!("Broken: {broken} of {all} requirements.")),
    }
}
