//! A point on the page: its targets, what is said of them, and how their latencies lie.

use judge::Verdict;
use ledger::{Histogram, RequirementOutcome};
use maud::{Markup, html};

use super::chart::{Axis, Chart, Dot, LOOKS, Line, Scale};
use crate::compare::Compared;
use crate::number::{bytes, count, duration, nanoseconds, percent, rate, ratio, whole_percent};
use crate::sights::Sights;
use crate::summary::{Summary, TargetSummary};

/// Columns of a small histogram, and of a power of ten of a large one.
const SMALL_BINS: usize = 48;
const BINS_PER_DECADE: f64 = 24.0;

/// The most points in the table of all.
const ROWS_MOST: usize = 300;

/// All points in one table, each a link to its own part of the page if it has one: only the first
/// `in_full` do.
pub(super) fn overview(summary: &Summary, in_full: usize) -> Markup {
    html! {
        section #points {
            h2 { "Points" }
            div.wide tabindex="0" {
                table {
                    thead { tr {
                        th { "point" }
                        @for target in &summary.targets { th.n { (target.name) } }
                        th { "verdict" }
                    } }
                    tbody {
                        @for (index, point) in summary.points.iter().enumerate().take(ROWS_MOST) {
                            tr {
                                td {
                                    @if index < in_full {
                                        a href=(format!("#point-{index}")) { (point.row.label) }
                                    } @else { (point.row.label) }
                                }
                                @for target in 0..summary.targets.len() {
                                    td.n { (rate_words(point.of_target(target))) }
                                }
                                td { (verdict_words(summary, index)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn rate_words(target: Option<&TargetSummary>) -> String {
    let Some(target) = target else { return "–".to_owned() };
    match (target.valid_trials, target.rate) {
        (0, _) | (_, None) => "no valid trial".to_owned(),
        (_, Some(one)) if one.relative_half_width.is_finite() => {
            format!("{} ±{}", rate(one.mean), percent(one.relative_half_width))
        }
        (_, Some(one)) => rate(one.mean),
    }
}

fn verdict_words(summary: &Summary, index: usize) -> Markup {
    let primary = summary.comparisons_at(index).filter(|one| one.primary);
    html! {
        @for one in primary { span class=(class_of(one.verdict)) { (said(summary, one)) " " } }
    }
}

fn class_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "word good",
        Verdict::Worse => "word bad",
        Verdict::Same => "word same",
        Verdict::CantTell { .. } => "word unsure",
    }
}

fn said(summary: &Summary, one: &Compared) -> String {
    match one.verdict {
        Verdict::Better => "better".to_owned(),
        Verdict::Worse => "worse".to_owned(),
        Verdict::Same => format!("same within ±{}", whole_percent(summary.run.same_within)),
        Verdict::CantTell { why, .. } => format!("can't tell ({})", why.words()),
    }
}

/// One point in full.
pub(super) fn article(summary: &Summary, sights: &Sights, index: usize) -> Markup {
    let point = &summary.points[index];
    let required: Vec<_> = summary.requirements.iter().filter(|one| one.point == index).collect();
    html! {
        article #(format!("point-{index}")) {
            h3 { (point.row.label) }
            p.note { (validity(summary, index)) }
            (table(summary, index))
            (comparisons(summary, index))
            (limits(summary, index))
            @if !required.is_empty() {
                ul.required {
                    @for one in required {
                        @let class = match one.row.outcome {
                            RequirementOutcome::Held => "word good",
                            RequirementOutcome::Broken => "word bad",
                            RequirementOutcome::CantTell => "word unsure",
                        };
                        li {
                            code { (one.row.expression) } " "
                            span class=(class) { (one.row.outcome.word().replace('_', " ")) }
                        }
                    }
                }
            }
            div.charts { (percentiles(summary, sights, index)) (spread(summary, sights, index)) }
            (displays(summary, sights, index))
            details {
                summary { "Everything of this point, as the terminal shows it" }
                pre tabindex="0" { (crate::text::point(summary, index, false)) }
            }
        }
    }
}

fn validity(summary: &Summary, index: usize) -> String {
    let point = &summary.points[index];
    let measured = point
        .measured_ns
        .map_or_else(String::new, |ns| format!(" × {} of each target", duration(ns as f64)));
    let rounds = if point.rounds == 1 { "round" } else { "rounds" };
    let mut words = format!("{} {rounds}{measured}; {} valid", point.rounds, point.valid_rounds);
    if point.disturbed_rounds > 0 {
        words.push_str(&format!(", {} disturbed", point.disturbed_rounds));
    }
    words
}

fn table(summary: &Summary, index: usize) -> Markup {
    let targets = &summary.points[index].targets;
    let some = |of: fn(&TargetSummary) -> bool| targets.iter().any(of);
    let hits = some(|one| one.figures.hit_ratio.is_some());
    let bandwidth = some(|one| one.figures.bytes_per_s.is_some());
    let memory = some(|one| one.figures.server.rss_bytes.is_some());
    html! {
        div.wide tabindex="0" { table {
            thead { tr {
                th { "target" } th.n { "rate" }
                @if bandwidth { th.n { "bytes" } }
                th.n { "p50" } th.n { "p90" } th.n { "p99" } th.n { "p99.9" } th.n { "max" }
                th.n { "wrong" }
                @if hits { th.n { "hits" } }
                th.n { "server CPU per op" } th.n { "kernel" }
                @if memory { th.n { "memory" } }
                th.n { "generator busy" }
            } }
            tbody { @for target in targets {
                @let figures = &target.figures;
                @let ns = |value: Option<u64>| {
                    value.map_or_else(|| "–".to_owned(), |ns| duration(ns as f64))
                };
                tr {
                    th scope="row" {
                        span class=(format!("dot s{}", target.target % LOOKS)) {}
                        (summary.targets[target.target].name)
                    }
                    td.n { (rate_words(Some(target))) }
                    @if bandwidth {
                        td.n { (unseen(figures.bytes_per_s.map(crate::number::bytes_per_s))) }
                    }
                    td.n { (ns(figures.latency.p50_ns)) } td.n { (ns(figures.latency.p90_ns)) }
                    td.n { (ns(figures.latency.p99_ns)) } td.n { (ns(figures.latency.p999_ns)) }
                    td.n { (ns(figures.latency.max_ns)) }
                    td.n { (wrong(target)) }
                    @if hits { td.n { (unseen(figures.hit_ratio.map(percent))) } }
                    td.n { (unseen(figures.server.cpu_ns_per_op.map(nanoseconds))) }
                    td.n { (unseen(kernel_share(target).map(percent))) }
                    @if memory {
                        td.n { (unseen(figures.server.rss_bytes.map(|one| bytes(one as f64)))) }
                    }
                    td.n { (unseen(figures.generator_busy.map(percent))) }
                }
            } }
        } }
    }
}

fn unseen(words: Option<String>) -> String {
    words.unwrap_or_else(|| "unseen".to_owned())
}

fn kernel_share(target: &TargetSummary) -> Option<f64> {
    let (user, system) =
        (target.figures.server.user_ns_per_op?, target.figures.server.system_ns_per_op?);
    (user + system > 0.0).then(|| system / (user + system))
}

fn wrong(target: &TargetSummary) -> String {
    let checked = target.operations_of_all.saturating_sub(target.unchecked_of_all);
    let mut words = format!("{} of {}", count(target.wrong_of_all), count(checked));
    if target.unchecked_of_all > 0 {
        words.push_str(&format!(", {} unchecked", count(target.unchecked_of_all)));
    }
    if target.missing_of_all > 0 {
        words.push_str(&format!(", {} missing", count(target.missing_of_all)));
    }
    words
}

/// What gave way first, with its evidence.
fn limits(summary: &Summary, index: usize) -> Markup {
    let targets = &summary.points[index].targets;
    let judged = || targets.iter().filter(|target| target.limits.trials > 0);
    html! {
        @if judged().next().is_some() {
            dl.said { @for target in judged() {
                dt { "limit of " (summary.targets[target.target].name) }
                dd { @match target.limits.first() {
                    None => { "none reached" }
                    Some(first) => {
                        strong { (first.name()) } ": " (first.evidence)
                        @if let Some(limit) = first.limit() { " " em { (limit.advice) } }
                    }
                } }
            } }
        }
    }
}

/// Every comparison of the point: ratio, interval and verdict, with the interval drawn.
fn comparisons(summary: &Summary, index: usize) -> Markup {
    let all: Vec<&Compared> =
        summary.comparisons_at(index).filter(|one| one.interval.is_some()).collect();
    let reach = all
        .iter()
        .filter_map(|one| one.interval)
        .flat_map(|one| [one.low, one.high])
        .filter(|end| end.is_finite() && *end > 0.0)
        .map(|end| end.ln().abs())
        .fold(0.05_f64, f64::max);
    html! {
        @if !all.is_empty() {
            div.wide tabindex="0" { table.forest {
                thead { tr {
                    th { "against" } th { "metric" } th.n { "ratio" }
                    th { "interval" } th { "verdict" }
                } }
                tbody { @for one in &all {
                    @if let Some(interval) = one.interval {
                        tr class=[one.primary.then_some("primary")] {
                            td { (summary.targets[one.b].name) }
                            td { (one.metric.suite) }
                            td.n { (ratio(interval.ratio)) "×" }
                            td { (whiskers(interval.ratio, interval.low, interval.high, reach)) }
                            td { span class=(class_of(one.verdict)) { (said(summary, one)) } }
                        }
                    }
                } }
            } }
            p.note {
                "Ratios are " (summary.targets[0].name) " ÷ the other, with "
                (whole_percent(all[0].confidence)) " intervals over rounds; the line is 1. "
                "The primary metric carries the verdict; nothing is concluded from the others."
            }
        }
    }
}

/// A ratio and its interval around 1, on a logarithmic scale that reaches so far on both sides.
fn whiskers(middle: f64, low: f64, high: f64, reach: f64) -> Markup {
    let place = |ratio: f64| {
        let log = if ratio > 0.0 { ratio.ln() } else { -reach };
        let share = (log / reach).clamp(-1.0, 1.0);
        format!("{:.1}", 90.0 + 84.0 * share)
    };
    let words = format!("{} to {}", ratio(low), ratio(high));
    html! {
        svg.whisker viewBox="0 0 180 16" role="img" aria-label=(words) {
            title { (words) }
            path.one d="M90 0V16" {}
            path.line d=(format!("M{} 8H{}", place(low), place(high))) {}
            path.mark d=(format!("M{} 8m0-5l5 5l-5 5l-5-5z", place(middle))) {}
        }
    }
}

/// Latency against the share of answers that were faster.
fn percentiles(summary: &Summary, sights: &Sights, index: usize) -> Markup {
    // Each next label is a tenth of the answers before: the axis is -log10(1 - share).
    let marks = ["0", "p90", "p99", "p99.9", "p99.99", "p99.999", "p99.9999"];
    let marks = marks.iter().enumerate().map(|(at, label)| (at as f64, (*label).to_owned()));
    let line = |target: usize, histogram: &Histogram<u64>| {
        // Ten answers at least lie beyond the last percentile that is drawn.
        let nines = (histogram.len() as f64 / 10.0).max(1.0).log10();
        let steps = (nines * 12.0).ceil().clamp(1.0, 90.0) as usize;
        let dot = |step: usize| {
            let x = nines * step as f64 / steps as f64;
            (x, histogram.value_at_quantile(1.0 - 10_f64.powf(-x)) as f64).into()
        };
        Line {
            name: summary.targets[target].name.clone(),
            look: target,
            points: (0..=steps).map(dot).collect(),
            marked: false,
        }
    };
    Chart {
        title: "Latency by percentile".to_owned(),
        x: Axis {
            label: "share of answers that were faster".to_owned(),
            scale: Scale::Marked(marks.collect()),
            show: |x| format!("{} %", 100.0 * (1.0 - 10_f64.powf(-x))),
            ..Axis::default()
        },
        y: Axis {
            label: "latency".to_owned(),
            scale: Scale::Log,
            show: duration,
            ..Axis::default()
        },
        lines: each(sights, summary, index, line),
        ..Chart::default()
    }
    .draw()
}

/// How the latencies are spread, over a logarithmic axis and over a linear one.
fn spread(summary: &Summary, sights: &Sights, index: usize) -> Markup {
    let chart = |title: &str, scale: Scale, lines| Chart {
        title: title.to_owned(),
        x: Axis { label: "latency".to_owned(), scale, show: duration, ..Axis::default() },
        y: Axis {
            label: "share of answers".to_owned(),
            scale: Scale::FromZero,
            show: percent,
            ..Axis::default()
        },
        lines,
        ..Chart::default()
    };
    let log = each(sights, summary, index, |target, histogram| {
        let bin = |value: f64| (value.max(1.0).log10() * BINS_PER_DECADE).floor();
        let middle = |bin: f64| 10_f64.powf((bin + 0.5) / BINS_PER_DECADE);
        binned(summary, target, histogram, bin, middle)
    });
    // Beyond the last percent lies little that a linear axis can show.
    let all = sights.distributions.iter().filter(|one| one.point == index);
    let end = all.map(|one| one.histogram.value_at_quantile(0.99)).max().unwrap_or(1).max(1) as f64;
    let width = end / SMALL_BINS as f64;
    let linear = each(sights, summary, index, |target, histogram| {
        let mut line = binned(
            summary,
            target,
            histogram,
            |value| (value / width).floor(),
            |bin| (bin + 0.5) * width,
        );
        line.points.retain(|dot| dot.x <= end);
        line
    });
    html! {
        (chart("Distribution of latency (logarithmic)", Scale::Log, log).draw())
        (chart("Distribution of latency (linear, fastest 99 %)", Scale::FromZero, linear).draw())
    }
}

/// The share of answers in each bin, empty ones between others included.
fn binned(
    summary: &Summary,
    target: usize,
    histogram: &Histogram<u64>,
    bin: impl Fn(f64) -> f64,
    middle: impl Fn(f64) -> f64,
) -> Line {
    let mut bins: std::collections::BTreeMap<i64, u64> = std::collections::BTreeMap::new();
    for step in histogram.iter_recorded() {
        let at = bin(step.value_iterated_to() as f64) as i64;
        *bins.entry(at).or_default() += step.count_since_last_iteration();
    }
    let all = histogram.len() as f64;
    let mut points: Vec<Dot> = Vec::new();
    let mut last: Option<i64> = None;
    for (at, answers) in bins {
        // A gap is drawn as one: down to nothing after the last bin, up again before the next.
        if let Some(last) = last.filter(|last| at > last + 1) {
            points.push((middle(last as f64 + 1.0), 0.0).into());
            points.push((middle(at as f64 - 1.0), 0.0).into());
        }
        points.push((middle(at as f64), answers as f64 / all).into());
        last = Some(at);
    }
    let name = summary.targets[target].name.clone();
    Line { name, look: target, marked: false, points }
}

fn each(
    sights: &Sights,
    summary: &Summary,
    index: usize,
    line: impl Fn(usize, &Histogram<u64>) -> Line,
) -> Vec<Line> {
    let targets = 0..summary.targets.len();
    targets.filter_map(|target| Some(line(target, sights.distribution(index, target)?))).collect()
}

/// The latencies of each target as one line of figures and a small histogram.
fn displays(summary: &Summary, sights: &Sights, index: usize) -> Markup {
    html! {
        div.displays { @for target in &summary.points[index].targets {
            @if let Some(histogram) = sights.distribution(index, target.target) {
                (display(summary, target, histogram))
            }
        } }
    }
}

fn display(summary: &Summary, target: &TargetSummary, histogram: &Histogram<u64>) -> Markup {
    let ns = |value: u64| duration(value as f64);
    let (low, high) = (histogram.min().max(1) as f64, histogram.max().max(2) as f64);
    let step = ((high / low).ln() / SMALL_BINS as f64).max(1e-9);
    let mut bins = [0_u64; SMALL_BINS];
    for one in histogram.iter_recorded() {
        let place = ((one.value_iterated_to().max(1) as f64 / low).ln() / step).max(0.0) as usize;
        bins[place.min(SMALL_BINS - 1)] += one.count_since_last_iteration();
    }
    let most = bins.iter().copied().max().unwrap_or(1).max(1) as f64;
    let bar = |(at, answers): (usize, &u64)| {
        let height = 40.0 * *answers as f64 / most;
        format!("M{} 42v-{height:.1}h3v{height:.1}z", 2 + at * 4)
    };
    let bars: String =
        bins.iter().enumerate().filter(|(_, answers)| **answers > 0).map(bar).collect();
    let trials = if target.valid_trials == 1 { "trial" } else { "trials" };
    html! {
        div class=(format!("display s{}", target.target % LOOKS)) {
            p {
                strong { (summary.targets[target.target].name) }
                " " (count(histogram.len())) " answers in " (target.valid_trials) " " (trials)
            }
            svg viewBox="0 0 196 44" preserveAspectRatio="none" role="img"
                aria-label="histogram of latency, logarithmic" {
                path.bars d=(bars) {}
            }
            p.note {
                (ns(histogram.min())) " … " (ns(histogram.max()))
                " · median " (ns(histogram.value_at_quantile(0.5)))
                " · mean " (duration(histogram.mean())) " ± σ " (duration(histogram.stdev()))
            }
        }
    }
}
