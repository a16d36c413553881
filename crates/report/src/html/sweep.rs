//! Figures against each swept value: rate, latency, and every resource of either side.

use std::borrow::Cow;
use std::collections::BTreeSet;

use findings::{Summary, TargetSummary};
use maud::{Markup, html};
use serde_json::Value;

use super::budget::{Budget, clipped, fit};
use super::chart::{Axis, Chart, Dot, LOOKS, Line, Scale};
use super::page::rest;
use crate::number::{bytes, bytes_per_s, duration, nanoseconds, percent, plain, rate};
use crate::phrases::call_figure;
use crate::scaling::scaling_words;

/// One figure of a target that is drawn against swept values.
struct Shown {
    title: Cow<'static, str>,
    of: Of,
    show: fn(f64) -> String,
    log: bool,
}

/// Where a figure comes from.
enum Of {
    /// The lab has measured it.
    Figure(fn(&TargetSummary) -> Option<f64>),
    /// Calls measured it themselves, by this name: its mean.
    Told(String),
}

impl Shown {
    fn value(&self, target: &TargetSummary) -> Option<f64> {
        match &self.of {
            Of::Figure(of) => of(target),
            Of::Told(name) => {
                target.values.iter().find(|one| one.name == *name).map(|one| one.mean)
            }
        }
    }
}

/// A figure whose axis starts at zero.
const fn linear(
    title: &'static str,
    show: fn(f64) -> String,
    of: fn(&TargetSummary) -> Option<f64>,
) -> Shown {
    Shown { title: Cow::Borrowed(title), of: Of::Figure(of), show, log: false }
}

/// A latency: a logarithmic axis holds both ends of what a sweep does to it.
const fn latency(title: &'static str, of: fn(&TargetSummary) -> Option<f64>) -> Shown {
    Shown { title: Cow::Borrowed(title), of: Of::Figure(of), show: duration, log: true }
}

const RATE: &str = "Rate";
const MEDIAN: &str = "Median latency";
const P99: &str = "99th percentile of latency";

/// The metrics drawn, in this order; those that no target has are left out.
const SHOWN: &[Shown] = &[
    linear(RATE, rate, |one| one.figures.rate_per_s),
    latency(MEDIAN, |one| ns(one.figures.latency.p50_ns)),
    latency(P99, |one| ns(one.figures.latency.p99_ns)),
    linear("Updates", rate, |one| one.figures.streams.as_ref()?.updates_per_s),
    linear("Bytes of values", bytes_per_s, |one| one.figures.bytes_per_s),
    linear("Hit ratio", percent, |one| one.figures.hit_ratio),
    latency("Median staleness", |one| ns(one.figures.streams.as_ref()?.staleness.p50_ns)),
    latency("99th percentile of staleness", |one| {
        ns(one.figures.streams.as_ref()?.staleness.p99_ns)
    }),
    linear("Fairness over streams", plain, |one| one.figures.streams.as_ref()?.fairness),
    linear("Server CPU per operation", nanoseconds, |one| one.figures.server.cpu_ns_per_op),
    linear("Server CPU in cores", plain, |one| cores(one.figures.server.cpu_ns_per_op, one)),
    linear("Generator CPU in cores", plain, |one| cores(one.figures.generator.cpu_ns_per_op, one)),
    linear("Generator busy", percent, |one| one.figures.generator_busy),
    linear("Server memory", bytes, |one| ns(one.figures.server.rss_bytes)),
    linear("Generator memory", bytes, |one| ns(one.figures.generator.rss_bytes)),
];

/// The figures of a batch's runs are drawn as every target's are.
const OF_RUNS: [&str; 4] = ["wall_ns", "user_ns", "system_ns", "peak_bytes"];

/// Whether whole processes were measured: an operation is then a run.
fn is_batch(summary: &Summary) -> bool {
    let mut targets = summary.points.iter().flat_map(|point| &point.targets).peekable();
    let reported = |target: &TargetSummary, name| target.values.iter().any(|one| one.name == name);
    let is_one = |target: &TargetSummary| OF_RUNS.iter().all(|name| reported(target, *name));
    targets.peek().is_some() && targets.filter(|one| one.valid_trials > 0).all(is_one)
}

/// The name of a figure in a run of batches.
fn of_runs(title: &str) -> Option<&'static str> {
    match title {
        RATE => Some("Runs per second"),
        MEDIAN => Some("Median time of a run"),
        P99 => Some("99th percentile of the time of a run"),
        _ => None,
    }
}

/// Figures that calls measured themselves, by name.
fn reported(summary: &Summary) -> Vec<Shown> {
    let is_batch = is_batch(summary);
    let all = summary.points.iter().flat_map(|point| &point.targets).flat_map(|one| &one.values);
    let names: BTreeSet<&str> = all.map(|one| one.name.as_str()).collect();
    let names = names.into_iter().filter(|name| !(is_batch && OF_RUNS.contains(name)));
    let shown = names.map(|name| {
        let (title, show) = call_figure(name);
        let title = Cow::Owned(format!("Mean of {}", fit(&title, 100)));
        Shown { title, of: Of::Told(name.to_owned()), show, log: false }
    });
    shown.collect()
}

fn ns(value: Option<u64>) -> Option<f64> {
    value.map(|value| value as f64)
}

fn cores(cpu_ns_per_op: Option<f64>, target: &TargetSummary) -> Option<f64> {
    Some(cpu_ns_per_op? * target.figures.rate_per_s? / 1e9)
}

/// A chart of each figure against each swept number; nothing when nothing was swept.
pub(super) fn section(summary: &Summary, mut budget: Budget) -> Markup {
    // The loads of a search are drawn with the search.
    let swept = if summary.capacity.is_some() { Vec::new() } else { swept(summary) };
    let numbers: Vec<&String> =
        swept.iter().copied().filter(|key| is_number(summary, key)).collect();
    let reported = reported(summary);
    let mut left_out = 0;
    let mut groups = Vec::new();
    for key in numbers {
        let charts = SHOWN.iter().chain(&reported).map(|shown| chart(summary, &swept, key, shown));
        let (charts, more) = budget.list(charts.filter(|chart| !chart.0.is_empty()));
        left_out += more;
        if !charts.0.is_empty() || more > 0 {
            groups.push((key, charts));
        }
    }
    let laws = summary.scalings.iter().take(MAX_LAWS);
    html! {
        @if !groups.is_empty() {
            section {
                h2 { "Against swept values" }
                @for (key, charts) in groups {
                    h3 { code { (clipped(key)) } }
                    div.charts { (charts) }
                }
                @for law in laws {
                    p.note {
                        (summary.targets[law.target].name) " " (fit(&scaling_words(law), 1_000))
                    }
                }
                (rest(summary, left_out, "charts"))
            }
        }
    }
}

/// The most laws of scalability that are reported here.
const MAX_LAWS: usize = 12;

/// The most points of one line: more can't be reported apart in its width.
const MAX_DOTS: usize = 200;

/// A figure that changes by this factor is drawn on a logarithmic axis: on a linear one its
/// small values would all lie at the foot.
const WIDE: f64 = 30.0;

/// The shortest exact form of a swept value: `16`, `10k`, `1M`.
fn short(value: f64) -> String {
    let whole = |unit: f64| value >= unit && value % (unit / 10.0) == 0.0;
    match value {
        _ if whole(1e6) => format!("{}M", value / 1e6),
        _ if value >= 1e4 && whole(1e3) => format!("{}k", value / 1e3),
        _ => plain(value),
    }
}

/// The keys that differ between points.
fn swept(summary: &Summary) -> Vec<&String> {
    let keys: BTreeSet<&String> =
        summary.points.iter().flat_map(|point| point.row.keys.keys()).collect();
    let values = |key: &str| {
        let all = summary.points.iter().map(|point| point.row.keys.get(key).map(Value::to_string));
        all.collect::<BTreeSet<_>>().len()
    };
    keys.into_iter().filter(|key| values(key) > 1).collect()
}

fn is_number(summary: &Summary, key: &str) -> bool {
    let all = summary.points.iter().filter_map(|point| point.row.keys.get(key));
    all.map(Value::as_f64).all(|number| number.is_some_and(|number| number >= 0.0))
}

fn chart(summary: &Summary, swept: &[&String], key: &str, shown: &Shown) -> Markup {
    let (lines, left_out) = lines(summary, swept, key, shown);
    let xs = || lines.iter().flat_map(|line| &line.points).map(|dot| dot.x);
    let mut at: Vec<f64> = xs().collect();
    at.sort_by(f64::total_cmp);
    at.dedup();
    let least = xs().fold(f64::INFINITY, f64::min);
    let most = xs().fold(0.0, f64::max);
    let log = least > 0.0 && most / least >= 8.0;
    let ys = || lines.iter().flat_map(|line| &line.points).map(|dot| dot.y);
    let (low, high) = (ys().fold(f64::INFINITY, f64::min), ys().fold(0.0, f64::max));
    let is_wide = low > 0.0 && high / low >= WIDE;
    let note = match left_out {
        0 => String::new(),
        left_out => format!("{left_out} more lines have no room here: see the table of points."),
    };
    let title = of_runs(&shown.title).filter(|_| is_batch(summary)).unwrap_or(&shown.title);
    Chart {
        title: title.to_owned(),
        x: Axis {
            label: key.to_owned(),
            scale: if log { Scale::Log } else { Scale::FromZero },
            at: labelled(&at, log),
            show: short,
            ..Axis::default()
        },
        y: Axis {
            label: title.to_lowercase(),
            scale: if shown.log || is_wide { Scale::Log } else { Scale::FromZero },
            show: shown.show,
            binary: shown.title.ends_with("memory"),
            ..Axis::default()
        },
        lines,
        note,
        ..Chart::default()
    }
    .draw()
}

/// The swept values, where each label fits; else none, and round values are labelled.
fn labelled(values: &[f64], log: bool) -> Vec<f64> {
    let place = |value: f64| if log { value.ln() } else { value };
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return Vec::new() };
    let begin = if log { place(*first) } else { 0.0 };
    let budget = (place(*last) - begin) / 9.0;
    let apart = values.windows(2).all(|two| place(two[1]) - place(two[0]) >= budget);
    if apart { values.to_vec() } else { Vec::new() }
}

/// One line per target and combination of the other swept values, and the number that don't fit.
fn lines(summary: &Summary, swept: &[&String], key: &str, shown: &Shown) -> (Vec<Line>, usize) {
    let others: Vec<&String> = swept.iter().copied().filter(|other| *other != key).collect();
    let mut lines: Vec<Line> = Vec::new();
    for target in 0..summary.targets.len() {
        for point in &summary.points {
            let x = point.row.keys.get(key).and_then(Value::as_f64);
            let Some(one) = point.of_target(target).filter(|one| one.valid_trials > 0) else {
                continue;
            };
            let (Some(x), Some(y)) = (x, shown.value(one)) else { continue };
            let name = named(summary, target, &others, &point.row.keys);
            let at = lines.iter().position(|line| line.name == name).unwrap_or_else(|| {
                lines.push(Line { name, marked: true, ..Line::default() });
                lines.len() - 1
            });
            let range = (shown.title == RATE).then(|| one.rate.map(|rate| (rate.low, rate.high)));
            lines[at].points.push(Dot { x, y, range: range.flatten() });
        }
    }
    for (look, line) in lines.iter_mut().enumerate() {
        line.look = look;
        line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
        let every = line.points.len().div_ceil(MAX_DOTS).max(1);
        let last = line.points.len() - 1;
        let mut at = 0..;
        line.points.retain(|_| at.next().is_some_and(|at| at % every == 0 || at == last));
    }
    let left_out = lines.len().saturating_sub(LOOKS);
    lines.truncate(LOOKS);
    (lines, left_out)
}

fn named(
    summary: &Summary,
    target: usize,
    others: &[&String],
    keys: &serde_json::Map<String, Value>,
) -> String {
    let mut name = summary.targets[target].name.clone();
    for key in others {
        let short = key.rsplit('.').next().unwrap_or(key);
        let value = match keys.get(*key) {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => continue,
        };
        name.push_str(&format!(" · {short} {value}"));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swept_values_are_short_and_exact() {
        let said = [0.5, 16.0, 9_500.0, 10_000.0, 12_345.0, 1e6, 2_500_000.0, 1e7].map(short);
        assert_eq!(said, ["0.5", "16", "9,500", "10k", "12,345", "1M", "2.5M", "10M"]);
    }
}
