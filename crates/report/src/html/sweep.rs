//! Figures against each swept value: rate and latency with their intervals first, then what else
//! moves; what doesn't is folded away. A target has its colour, and each value of a second sweep a
//! dash and a mark, or a chart of its own where that would be too many lines.

use std::borrow::Cow;
use std::collections::BTreeSet;

use findings::{HostLoad, OF_RUNS, Summary, TargetSummary};
use judge::{Metric, Unit};
use ledger::RequirementRow;
use maud::{Markup, html};
use serde_json::Value;

use super::bars::interval;
use super::budget::{Budget, clipped, fit};
use super::chart::{Axis, Chart, Dot, Line, Scale, together};
use super::page::{MAX_POINTS_IN_FULL, rest};
use crate::names::{self, shown as shown_as};
use crate::number::{bytes_per_s, plain};
use crate::phrases::call_figure;
use crate::scaling::scaling_words;

/// One figure of a target that is drawn against swept values.
struct Shown<'a> {
    title: Cow<'a, str>,
    of: Of<'a>,
    show: fn(f64) -> String,
}

/// Where a figure comes from.
enum Of<'a> {
    /// The lab has measured it.
    Metric(&'a Metric),
    /// The CPU time of this metric, per second.
    Cores(&'a Metric),
    /// Calls measured it themselves, by this name: its mean.
    Told(&'a str),
    /// The host, beside the target.
    Host(OfHost),
}

type OfHost = fn(&HostLoad) -> Option<f64>;

impl Shown<'_> {
    fn value(&self, summary: &Summary, point: usize, target: &TargetSummary) -> Option<f64> {
        match self.of {
            Of::Host(of) => of(&HostLoad::of(summary, point, target.target)),
            Of::Metric(metric) => crate::content::value(summary, target, metric),
            Of::Cores(metric) => {
                Some(target.figures.value(metric)? * target.figures.rate_per_s? / 1e9)
            }
            Of::Told(name) => target.values.iter().find(|one| one.name == name).map(|one| one.mean),
        }
    }

    /// A logarithmic axis holds both ends of what a sweep does to a latency.
    fn is_log(&self) -> bool {
        matches!(self.of, Of::Metric(metric) if metric.unit == Unit::Nanoseconds
            && !metric.suite.ends_with("_per_op"))
    }
}

/// The metrics drawn first, whatever they do, with the run's primary one before them.
const FIRST: &[&str] = &["rate_per_s", "latency.p50", "latency.p99"];

/// Those drawn behind them, in this order; those that no target has are left out.
const BEHIND: &[&str] = &[
    "concurrency.mean",
    "updates_per_s",
    "bytes_per_s",
    "hit_ratio",
    "staleness.p50",
    "staleness.p99",
    "fairness",
    "server.cpu_ns_per_op",
    "generator.busy",
    "server.rss_bytes",
    "generator.rss_bytes",
];

/// CPU time that is drawn in cores, too.
const CORES: &[(&str, &str)] = &[
    ("server.cpu_ns_per_op", "Server CPU in cores"),
    ("generator.cpu_ns_per_op", "Generator CPU in cores"),
];

/// A figure of the host: its title, where it comes from, and how it is shown.
type HostFigure = (&'static str, OfHost, fn(f64) -> String);

/// What the host carried beside each target.
const HOST: &[HostFigure] = &[
    ("Busy cores, of those of the run", |host| host.cores, plain),
    ("Bytes of disks per second", |host| host.disk_bytes_per_s, bytes_per_s),
    ("Bytes of interfaces per second", |host| host.network_bytes_per_s, bytes_per_s),
];

/// A figure whose lines all stay within this factor is flat.
const FLAT: f64 = 1.1;

/// A figure that changes by this factor is drawn on a logarithmic axis: on a linear one its
/// small values would all lie at the foot.
const WIDE: f64 = 30.0;

/// The most lines of one chart; with more, each value of a second sweep has a chart of its own.
const MAX_LINES: usize = 8;

/// The same where that has two values, which two dashes tell apart.
const MAX_LINES_OF_TWO: usize = 12;

/// The most of these charts.
const MAX_MULTIPLES: usize = 6;

/// The most points of one line: more can't be reported apart in its width.
const MAX_DOTS: usize = 200;

/// The most laws of scalability that are reported here.
const MAX_LAWS: usize = 12;

/// Whether whole processes were measured: an operation is then a run.
fn is_batch(summary: &Summary) -> bool {
    let mut targets = summary.points.iter().flat_map(|point| &point.targets).peekable();
    let measured = |target: &&TargetSummary| target.valid_trials > 0;
    targets.peek().is_some() && targets.filter(measured).all(TargetSummary::is_batch)
}

/// The name of a metric in a run of batches.
fn of_runs(metric: &Metric) -> Option<&'static str> {
    match &*metric.suite {
        "rate_per_s" => Some("Runs per second"),
        "latency.p50" => Some("Median time of a run"),
        "latency.p99" => Some("99th percentile of the time of a run"),
        _ => None,
    }
}

/// The figures drawn first, and those behind them.
fn all_shown(summary: &Summary) -> (Vec<Shown<'_>>, Vec<Shown<'_>>) {
    let is_batch = is_batch(summary);
    let of_metric = |metric| {
        let title = of_runs(metric).filter(|_| is_batch).map(Cow::Borrowed);
        let title = title.unwrap_or_else(|| names::metric(metric));
        Shown { title, of: Of::Metric(metric), show: shown_as(metric) }
    };
    let named = |name: &str| summary.metrics.named(name);
    let primary = &*summary.run.primary_metric;
    let own = Some(primary).filter(|name| !FIRST.contains(name));
    let required = required(summary);
    let is_own = |name: &&str| !FIRST.contains(name) && *name != primary;
    let required = required.iter().copied().filter(is_own);
    let shown: Vec<&str> = own.into_iter().chain(required).chain(FIRST.iter().copied()).collect();
    let first = shown.iter().filter_map(|name| named(name)).map(of_metric);
    let behind = BEHIND.iter().filter(|name| !shown.contains(name));
    let mut behind: Vec<Shown<'_>> = behind.filter_map(|name| named(name)).map(of_metric).collect();
    behind.extend(CORES.iter().filter_map(|(name, title)| {
        Some(Shown { title: Cow::Borrowed(title), of: Of::Cores(named(name)?), show: plain })
    }));
    behind.extend(HOST.iter().map(|&(title, of, show)| Shown {
        title: Cow::Borrowed(title),
        of: Of::Host(of),
        show,
    }));
    let all = summary.points.iter().flat_map(|point| &point.targets).flat_map(|one| &one.values);
    let told: BTreeSet<&str> = all.map(|one| one.name.as_str()).collect();
    // The figures of a batch's runs are drawn as every target's are.
    let told = told.into_iter().filter(|name| !(is_batch && OF_RUNS.contains(name)));
    behind.extend(told.map(|name| {
        let (title, show) = call_figure(name);
        let title = Cow::Owned(format!("Mean of {}", fit(&title, 100)));
        Shown { title, of: Of::Told(name), show }
    }));
    (first.collect(), behind)
}

/// The metric that a requirement is about; `None` where it is about what is derived, or a number of
/// answers that are wrong or missing.
fn metric_of(row: &RequirementRow) -> Option<&str> {
    let name = row.expression.split(' ').next()?;
    (row.bound != 0.0 && row.value.is_some()).then_some(name)
}

/// The metrics that requirements are about, each once.
fn required(summary: &Summary) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in summary.requirements.iter().filter_map(|one| metric_of(&one.row)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The first requirement on a metric, in words, and what it allows the first target at each value
/// of a swept key. Where it has other metrics as factors that follows from their value there; of
/// several points the strictest.
fn bound(summary: &Summary, key: &str, metric: &Metric) -> Option<(String, Vec<(f64, f64)>)> {
    let own =
        || summary.requirements.iter().filter(|one| metric_of(&one.row) == Some(&metric.suite));
    let words = own().next()?.row.expression.clone();
    let factors = words.split_whitespace().skip(1);
    let has_factor = factors.into_iter().any(|name| summary.metrics.named(name).is_some());
    let mut points: Vec<(f64, f64)> = Vec::new();
    for one in own().filter(|one| one.row.expression == words) {
        let at = summary.points.get(one.point)?;
        let x = at.row.keys.get(key).and_then(Value::as_f64)?;
        let figure = at.of_target(0).and_then(|first| first.figures.value(metric))?;
        let judged = one.row.value.filter(|value| *value > 0.0)?;
        let y = if has_factor { one.row.bound * figure / judged } else { one.row.bound };
        let is_stricter = |other: f64| if words.contains('>') { y > other } else { y < other };
        match points.iter_mut().find(|(other, _)| *other == x) {
            Some((_, other)) if is_stricter(*other) => *other = y,
            Some(_) => {}
            None => points.push((x, y)),
        }
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    Some((format!("required: {words}"), points))
}

/// A chart of each figure against each swept number; nothing when nothing was swept.
pub(super) fn section(summary: &Summary, mut budget: Budget) -> Markup {
    // The loads of a search are drawn with the search.
    let swept = if summary.capacity.is_some() { Vec::new() } else { swept(summary) };
    let numbers: Vec<&String> =
        swept.iter().copied().filter(|key| is_number(summary, key)).collect();
    let (first, behind) = all_shown(summary);
    let mut left_out = 0;
    let mut groups = Vec::new();
    for key in numbers {
        let drawn = |one: &Shown<'_>| {
            let (lines, is_flat) = lines(summary, &swept, key, one);
            let mut charts = charts(key, one, lines);
            if let Of::Metric(metric) = one.of {
                charts.iter_mut().for_each(|one| one.bound = bound(summary, key, metric));
            }
            (charts, is_flat, one.title.to_string())
        };
        let moving = first.iter().flat_map(|one| drawn(one).0).collect::<Vec<_>>();
        let (flat, others): (Vec<_>, Vec<_>) =
            behind.iter().map(drawn).partition(|(_, is_flat, _)| *is_flat);
        let moving = moving.into_iter().chain(others.into_iter().flat_map(|one| one.0));
        let (legend, moving) = together(moving.collect());
        let (moving, more) = budget.list(moving);
        let is_drawn = |(charts, _, _): &(Vec<Chart>, _, _)| charts.iter().any(Chart::has_points);
        let (flat, still): (Vec<_>, Vec<_>) =
            flat.into_iter().filter(is_drawn).map(|(charts, _, title)| (charts, title)).unzip();
        let (flat_legend, flat) = together(flat.into_iter().flatten().collect());
        let (flat, unfolded) = budget.list(flat);
        left_out += more + unfolded;
        if !moving.0.is_empty() || !still.is_empty() {
            groups.push((key, [legend, moving], [flat_legend, flat], still.join(", ")));
        }
    }
    let laws = summary.scalings.iter().take(MAX_LAWS);
    html! {
        @if !groups.is_empty() {
            section {
                h2 { "Against swept values" }
                p.note {
                    "A mark leads to its point. Bars are "
                    (crate::number::confidence(summary.run.confidence)) " intervals over rounds."
                }
                @for (key, [legend, moving], [flat_legend, flat], still) in groups {
                    h3 { code { (clipped(key)) } }
                    (legend)
                    div.charts { (moving) }
                    @if !still.is_empty() {
                        details {
                            summary { "Hardly moves: " (fit(&still, 600)) }
                            (flat_legend)
                            div.charts { (flat) }
                        }
                    }
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

/// One chart of these lines, or one for each value of the other sweeps, over the same axes.
fn charts(key: &str, shown: &Shown<'_>, lines: Vec<Line>) -> Vec<Chart> {
    let mut values: Vec<String> = Vec::new();
    for line in &lines {
        if !values.contains(&line.swept) {
            values.push(line.swept.clone());
        }
    }
    let dots = || lines.iter().flat_map(|line| &line.points);
    let xs: Vec<f64> = dots().map(|dot| dot.x).collect();
    let ends = dots()
        .flat_map(|dot| [Some(dot.y), dot.range.map(|one| one.0), dot.range.map(|one| one.1)]);
    let ys: Vec<f64> = ends.flatten().filter(|y| y.is_finite()).collect();
    let most = if values.len() == 2 { MAX_LINES_OF_TWO } else { MAX_LINES };
    if lines.len() <= most || values.len() < 2 {
        return vec![chart(key, shown, shown.title.to_string(), lines, (&xs, &ys), String::new())];
    }
    let left_out = values.len().saturating_sub(MAX_MULTIPLES);
    let multiple = |(at, value): (usize, &String)| {
        let own = lines.iter().filter(|line| line.swept == *value);
        let own = own.map(|line| Line {
            points: line.points.clone(),
            ..Line::of(&line.name, line.look, Vec::new()).marked()
        });
        let title = format!("{} at {value}", shown.title);
        let note = match (at + 1 == MAX_MULTIPLES, left_out) {
            (true, more) if more > 0 => {
                format!("{more} more charts have no room here: see the table of points.")
            }
            _ => String::new(),
        };
        chart(key, shown, title, own.collect(), (&xs, &ys), note)
    };
    values.iter().take(MAX_MULTIPLES).enumerate().map(multiple).collect()
}

/// A chart whose axes span these values.
fn chart(
    key: &str,
    shown: &Shown<'_>,
    title: String,
    lines: Vec<Line>,
    (xs, ys): (&[f64], &[f64]),
    note: String,
) -> Chart {
    let ends = |all: &[f64]| {
        all.iter().fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), one| {
            (low.min(*one), high.max(*one))
        })
    };
    let mut at = xs.to_vec();
    at.sort_by(f64::total_cmp);
    at.dedup();
    let (least, most) = ends(xs);
    let log = least > 0.0 && most / least >= 8.0;
    let (low, high) = ends(ys);
    let is_wide = low > 0.0 && high / low >= WIDE;
    let is_memory = matches!(shown.of, Of::Metric(metric) if metric.unit == Unit::Bytes);
    let scale = |is_log: bool| if is_log { Scale::Log } else { Scale::FromZero };
    let (at, holds) = (labelled(&at, log), xs.to_vec());
    let x = Axis { at, holds, ..Axis::of(key, scale(log), short) };
    let y = Axis::of(title.to_lowercase(), scale(shown.is_log() || is_wide), shown.show);
    let y = Axis { binary: is_memory, holds: ys.to_vec(), ..y };
    Chart { note, ..Chart::of(title, x, y, lines) }
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

/// One line per target and combination of the other swept values, and whether all are flat.
fn lines(summary: &Summary, swept: &[&String], key: &str, shown: &Shown<'_>) -> (Vec<Line>, bool) {
    let others: Vec<&String> = swept.iter().copied().filter(|other| *other != key).collect();
    let mut lines: Vec<Line> = Vec::new();
    let mut variants: Vec<String> = Vec::new();
    for (look, target) in summary.targets.iter().enumerate() {
        for (index, point) in summary.points.iter().enumerate() {
            let x = point.row.keys.get(key).and_then(Value::as_f64);
            let Some(one) = point.of_target(look).filter(|one| one.valid_trials > 0) else {
                continue;
            };
            let (Some(x), Some(y)) = (x, shown.value(summary, index, one)) else { continue };
            let value = other_values(&others, &point.row.keys);
            let variant = variants.iter().position(|one| *one == value).unwrap_or_else(|| {
                variants.push(value.clone());
                variants.len() - 1
            });
            let is_it = |line: &Line| line.look == look && line.swept == value;
            let at = lines.iter().position(is_it).unwrap_or_else(|| {
                let line = Line::of(&target.name, look, Vec::new()).marked();
                let variant = if others.is_empty() { look } else { variant };
                lines.push(Line { swept: value.clone(), variant, ..line });
                lines.len() - 1
            });
            let range = match shown.of {
                Of::Metric(metric) => interval(summary, index, one, metric),
                Of::Cores(_) | Of::Told(_) | Of::Host(_) => None,
            };
            let way = (index < MAX_POINTS_IN_FULL).then(|| format!("#point-{index}"));
            lines[at].points.push(Dot { x, y, range, way });
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
        let every = line.points.len().div_ceil(MAX_DOTS).max(1);
        let last = line.points.len() - 1;
        let mut at = 0..;
        line.points.retain(|_| at.next().is_some_and(|at| at % every == 0 || at == last));
    }
    let is_flat = lines.iter().all(|line| {
        let ys = || line.points.iter().map(|dot| dot.y);
        ys().fold(f64::NEG_INFINITY, f64::max) <= FLAT * ys().fold(f64::INFINITY, f64::min)
    });
    (lines, is_flat)
}

/// `depth 16 · bytes 100`: the values of these keys.
fn other_values(keys: &[&String], values: &serde_json::Map<String, Value>) -> String {
    let words = keys.iter().filter_map(|key| {
        let short = key.rsplit('.').next().unwrap_or(key);
        let value = match values.get(*key)? {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        Some(format!("{short} {value}"))
    });
    words.collect::<Vec<_>>().join(" · ")
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
