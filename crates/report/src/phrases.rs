//! Phrases that several kinds of report share: figures of a target, verdicts,
//! ratios, and rows that are aligned.

use judge::{Inconclusive, Metric, SeriesInterval, Verdict};
use ledger::RequirementOutcome;

use crate::compare::Compared;
use crate::number::{count, duration, nanoseconds, percent, rate, ratio, value_of, whole_percent};
use crate::point_summary::{PointSummary, TargetSummary};
use crate::summary::Summary;

/// The rate over valid trials with its interval: `6.91M/s ±1.9 %`; `None` when it is unseen.
pub(crate) fn rate_of(target: &TargetSummary) -> Option<String> {
    with_width(target.rate, target.figures.rate_per_s, rate)
}

/// The mean of an interval with its width, or else the one value there is.
fn with_width(
    interval: Option<SeriesInterval>,
    value: Option<f64>,
    shown: impl Fn(f64) -> String,
) -> Option<String> {
    interval.map(|interval| mean_of(&interval, &shown)).or_else(|| value.map(&shown))
}

/// A mean with its width. Of two rounds that differ a lot it is thousands of percent, which say
/// no more than that it isn't known.
pub(crate) fn mean_of(interval: &SeriesInterval, shown: impl Fn(f64) -> String) -> String {
    let mean = shown(interval.mean);
    match interval.relative_half_width {
        half if half <= 10.0 => format!("{mean} ±{}", percent(half)),
        half if half.is_finite() => format!("{mean} ±over 1,000 %"),
        _ => mean,
    }
}

/// The rate as a table shows it: `–` where the target wasn't measured.
pub(crate) fn rate_cell(target: Option<&TargetSummary>) -> String {
    cell(target, rate_of)
}

/// A metric's value as lines and tables show it: costs per operation stay in ns.
pub(crate) fn value(value: f64, metric: &Metric) -> String {
    match metric.json.ends_with("_ns_per_op") {
        true => nanoseconds(value),
        false => value_of(value, metric.unit),
    }
}

/// The run's primary metric, which verdicts are about, unless it is among those that are shown.
pub(crate) fn primary_unless<'a>(summary: &'a Summary, shown: &[&str]) -> Option<&'a Metric> {
    summary.primary().filter(|metric| !shown.contains(&&*metric.suite))
}

/// The run's primary metric over valid trials with its interval, as a table shows it.
pub(crate) fn primary_cell(target: Option<&TargetSummary>, primary: &Metric) -> String {
    let of = |target: &TargetSummary| {
        with_width(target.primary, target.figures.value(primary), |one| value(one, primary))
    };
    cell(target, of)
}

/// `–` where the target wasn't measured, and a word where there is nothing valid.
fn cell(target: Option<&TargetSummary>, of: impl Fn(&TargetSummary) -> Option<String>) -> String {
    match target {
        None => "–".to_owned(),
        Some(target) if target.valid_trials == 0 => "no valid trial".to_owned(),
        Some(target) => unseen(of(target)),
    }
}

/// The words, or `unseen` when there are none.
pub(crate) fn unseen(words: Option<String>) -> String {
    words.unwrap_or_else(|| "unseen".to_owned())
}

/// A latency in ns as a table shows it; `–` where there is none.
pub(crate) fn latency(ns: Option<u64>) -> String {
    ns.map_or_else(|| "–".to_owned(), |ns| duration(ns as f64))
}

/// A named latency: `p99 5.37 ms`, with `~` where few answers make it rough.
pub(crate) fn named_latency(name: &str, ns: Option<u64>, rough: bool) -> String {
    match ns {
        None => format!("{name} unseen"),
        Some(ns) if rough => format!("{name} ~{}", duration(ns as f64)),
        Some(ns) => format!("{name} {}", duration(ns as f64)),
    }
}

/// The check of the answers of all trials: `0 wrong of 1.5 M checked, 300 unchecked`.
pub(crate) fn answers(target: &TargetSummary) -> String {
    let unchecked = target.unchecked_of_all.min(target.operations_of_all);
    let checked = target.operations_of_all - unchecked;
    let wrong = || format!("{} wrong of {}", count(target.wrong_of_all), count(checked));
    let mut words = match (unchecked, checked) {
        (0, _) => wrong(),
        (_, 0) if target.wrong_of_all == 0 => format!("{} unchecked", count(unchecked)),
        _ => format!("{} checked, {} unchecked", wrong(), count(unchecked)),
    };
    if target.missing_of_all > 0 {
        words.push_str(&format!(", {} missing", count(target.missing_of_all)));
    }
    words
}

/// A verdict: `better`, `same within ±2 %` (without a margin only `same`), `can't tell (unseen)`.
pub(crate) fn verdict(verdict: Verdict, same_within: Option<f64>) -> String {
    match (verdict, same_within) {
        (Verdict::Better, _) => "better".to_owned(),
        (Verdict::Worse, _) => "worse".to_owned(),
        (Verdict::Same, None) => "same".to_owned(),
        (Verdict::Same, Some(within)) => format!("same within ±{}", whole_percent(within)),
        (Verdict::CantTell { why, .. }, _) => format!("can't tell ({})", why.words()),
    }
}

/// A verdict on a secondary metric. A metric that a busy generator invalidates was not
/// judged at all; where it limited one target only, the ratio is marked as a bound (`at least`).
pub(crate) fn verdict_beside(compared: &Compared) -> String {
    match (compared.verdict, compared.bound) {
        (_, Some(_)) => String::new(),
        (Verdict::CantTell { why: why @ Inconclusive::GeneratorBound, .. }, None) => {
            format!("not judged ({})", why.words())
        }
        (other, None) => verdict(other, None),
    }
}

/// The reason of a bound: the target that the generator limited.
pub(crate) fn bound_note(compared: &[&Compared], names: &[String]) -> Option<String> {
    let bound = compared.iter().find(|one| one.bound.is_some())?;
    let name = names.get(bound.held_back()?)?;
    Some(format!("bounds, not verdicts: with {name} the generator was at its limit"))
}

/// A ratio with its interval: `10.4× [10.0, 10.9]`, `at least 11.0× [10.4, 11.7]`.
pub(crate) fn interval(compared: &Compared) -> String {
    let Some(interval) = compared.interval else { return "ratio unseen".to_owned() };
    let bound = bound(compared);
    if !interval.high.is_finite() {
        return format!("{bound}{}× in one round", ratio(interval.ratio));
    }
    let (low, high) = (ratio(interval.low), ratio(interval.high));
    format!("{bound}{}× [{low}, {high}]", ratio(interval.ratio))
}

/// `at least `, `at most `, or nothing.
pub(crate) fn bound(compared: &Compared) -> &'static str {
    compared.bound.map_or("", |bound| bound.words())
}

/// The outcome of a requirement.
pub(crate) fn outcome(outcome: RequirementOutcome) -> &'static str {
    match outcome {
        RequirementOutcome::Held => "held",
        RequirementOutcome::Broken => "broken",
        RequirementOutcome::CantTell => "can't tell",
    }
}

/// `valid 4/5, disturbed 1`.
pub(crate) fn valid_rounds(point: &PointSummary) -> String {
    let mut words = format!("valid {}/{}", point.valid_rounds, point.rounds);
    if point.disturbed_rounds > 0 {
        words.push_str(&format!(", disturbed {}", point.disturbed_rounds));
    }
    words
}

/// `5 rounds`, `1 round`.
pub(crate) fn many(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        number => format!("{} {noun}s", count(number as u64)),
    }
}

/// Rows as lines, every column as wide as its widest cell; `paint` is given each padded cell of
/// the first column.
pub(crate) fn align(rows: &[Vec<String>], paint: impl Fn(&str) -> String) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            let padded = format!("{cell:<width$}");
            if column == 0 { paint(&padded) } else { padded }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
