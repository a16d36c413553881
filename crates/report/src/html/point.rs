//! A point on the page: its targets and verdicts.

use findings::{ChartData, Compared, StreamFigures, Summary, TargetSummary, ValueFigures};
use judge::{Metric, Verdict};
use ledger::{RequirementOutcome, Validity};
use maud::{Markup, html};

use super::budget::{Budget, clipped};
use super::chart::LOOKS;
use super::page::{Place, rest};
use super::{cost, spread};
use crate::number::{bytes, bytes_per_s, duration, nanoseconds, percent, ratio, whole_percent};
use crate::phrases::{self, call_figure, unseen};
use crate::requirements;

/// What disturbed or invalidated trials is shown up to this number of reasons.
const SPOILED_SHOWN: usize = 4;

/// The metrics that have a column in the table of a point in any case.
const SHOWN: &[&str] = &[
    "rate_per_s",
    "bytes_per_s",
    "latency.p50",
    "latency.p90",
    "latency.p99",
    "latency.p999",
    "latency.max",
    "hit_ratio",
    "wrong",
    "missing",
    "server.cpu_ns_per_op",
    "server.rss_bytes",
    "generator.busy",
];

/// The most points in the table of all.
const MAX_ROWS: usize = 300;

/// All points in one table, each a link to its own part of the page if it has one: only the first
/// `in_full` do.
pub(super) fn overview(
    summary: &Summary,
    in_full: usize,
    mut budget: Budget,
    place: &Place,
) -> Markup {
    let head = html! { tr {
        th { "point" }
        @for target in &summary.targets {
            th.n {
                (clipped(&target.name))
                @if let Some(primary) = overall(summary) { div.note { (primary.suite) } }
            }
        }
        @if is_judged(summary) { th { "verdict by " (summary.run.primary_metric) } }
        @if matches!(place, Place::Served) { th { "trials" } }
    } };
    let rows = (0..summary.points.len()).take(MAX_ROWS);
    let rows = rows.map(|index| overview_row(summary, index, in_full, place));
    let (rows, _) = if budget.fits(&head) { budget.list(rows) } else { (Markup::default(), 0) };
    let shown = rows.0.matches("<tr>").count();
    html! {
        section #points {
            h2 { "Points" }
            @if shown > 0 {
                div.wide tabindex="0" { table { thead { (head) } tbody { (rows) } } }
            }
            (rest(summary, summary.points.len() - shown, "points"))
        }
    }
}

fn overview_row(summary: &Summary, index: usize, in_full: usize, place: &Place) -> Markup {
    let point = &summary.points[index];
    let label = clipped(&point.row.label);
    html! {
        tr {
            td.wrap {
                @if index < in_full {
                    a href=(format!("#point-{index}")) { (label) }
                } @else { (label) }
            }
            @for target in 0..summary.targets.len() {
                td.n {
                    @if let Some(primary) = overall(summary) {
                        (phrases::primary_cell(point.of_target(target), primary))
                    } @else {
                        (phrases::rate_cell(point.of_target(target)))
                    }
                }
            }
            @if is_judged(summary) { td { (verdict_words(summary, index)) } }
            @if matches!(place, Place::Served) { td { (trials_link(summary, index)) } }
        }
    }
}

/// The metric that the table of all points shows of each target, when it isn't the rate: one fits
/// figure, and it is the one that verdicts are about.
fn overall(summary: &Summary) -> Option<&Metric> {
    phrases::primary_unless(summary, &["rate_per_s"])
}

/// The way to the trials of a point, where a ledger is served.
fn trials_link(summary: &Summary, index: usize) -> Markup {
    let number = summary.points[index].rounds * summary.points[index].targets.len();
    html! {
        a href=(format!("/runs/{}/points/{}", summary.id, index + 1)) {
            (phrases::many(number, "trial"))
        }
    }
}

/// Whether the first target is judged against the others; of a ladder each rung is, and its
/// verdicts stand together.
fn is_judged(summary: &Summary) -> bool {
    summary.targets.len() > 1 && (summary.rungs.is_empty() || summary.contest.is_some())
}

fn verdict_words(summary: &Summary, index: usize) -> Markup {
    let primary = summary.comparisons_at(index).filter(|one| one.primary);
    let several = summary.targets.len() > 2;
    html! {
        @for one in primary {
            div {
                @if several { (clipped(&summary.targets[one.b].name)) ": " }
                span class=(class_of(one.verdict)) { (said(summary, one)) }
                " " (phrases::interval(one))
                @if let Some(likely) = phrases::likely(summary, one) { "; " (likely) }
            }
        }
    }
}

pub(super) fn class_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "word good",
        Verdict::Worse => "word bad",
        Verdict::Same => "word same",
        Verdict::CantTell { .. } => "word unsure",
    }
}

pub(super) fn said(summary: &Summary, one: &Compared) -> String {
    match (one.primary, one.bound) {
        (true, _) => phrases::verdict(one.verdict, Some(summary.run.same_within)),
        (false, Some(_)) => "a bound (generator-bound)".to_owned(),
        (false, None) => phrases::verdict_beside(one),
    }
}

/// One point in full, with the text of the terminal or without.
pub(super) fn article(
    summary: &Summary,
    data: &ChartData,
    index: usize,
    with_text: bool,
) -> Markup {
    let point = &summary.points[index];
    let required: Vec<_> = requirements::at_point(summary, index).collect();
    html! {
        article #(format!("point-{index}")) {
            h3 { (point.row.label) }
            p.note { (validity(summary, index)) }
            (spoiled(summary, index))
            (table(summary, index))
            (stream_table(summary, index))
            @if is_judged(summary) { (comparisons(summary, index)) }
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
                            span class=(class) { (requirements::outcome(one.row.outcome)) }
                            " " (requirements::figure(&one.row))
                        }
                    }
                }
            }
            (spread::displays(summary, data, index))
            div.charts {
                (spread::percentiles(summary, data, index))
                (spread::spread(summary, data, index))
                (cost::bars(summary, index))
            }
            (values(summary, index))
            (cost::table(summary, index))
            @if with_text {
                details {
                    summary { "Everything of this point, as the terminal shows it" }
                    pre tabindex="0" { (crate::text::point(summary, index, false)) }
                }
            }
        }
    }
}

/// What disturbed and invalidated trials.
fn spoiled(summary: &Summary, index: usize) -> Markup {
    let lines = crate::grade::lines(summary, index);
    let more = lines.len().saturating_sub(SPOILED_SHOWN);
    html! {
        @if !lines.is_empty() {
            ul.required {
                @for (validity, words) in lines.iter().take(SPOILED_SHOWN) { li {
                    span class="word unsure" { (validity.word()) } ": " (clipped(words))
                } }
                @if more > 0 { li { "and " (phrases::many(more, "more reason")) } }
            }
        }
    }
}

fn validity(summary: &Summary, index: usize) -> String {
    let point = &summary.points[index];
    let measured = point
        .measured_ns
        .map_or_else(String::new, |ns| format!(" × {} of each target", duration(ns as f64)));
    format!("{}{measured}; {}", phrases::many(point.rounds, "round"), phrases::valid_rounds(point))
}

fn grade_class(target: &TargetSummary) -> &'static str {
    match target.grade.validity {
        Validity::Invalid => "word bad",
        _ if target.grade.is_clean() => "word good",
        _ => "word unsure",
    }
}

fn table(summary: &Summary, index: usize) -> Markup {
    let targets = &summary.points[index].targets;
    let some = |of: fn(&TargetSummary) -> bool| targets.iter().any(of);
    let hits = some(|one| one.figures.hit_ratio.is_some());
    let bandwidth = some(|one| one.figures.bytes_per_s.is_some());
    let memory = some(|one| one.figures.server.rss_bytes.is_some());
    let primary = phrases::primary_unless(summary, SHOWN);
    html! {
        div.wide tabindex="0" { table {
            thead { tr {
                th { "target" } th { "grade" }
                @if let Some(primary) = primary { th.n { (primary.suite) } }
                th.n { "rate" }
                @if bandwidth { th.n { "bytes" } }
                th.n { "p50" } th.n { "p90" } th.n { "p99" } th.n { "p99.9" } th.n { "max" }
                th.n { "answers" }
                @if hits { th.n { "hits" } }
                th.n { "server CPU/op" } th.n { "kernel" }
                @if memory { th.n { "memory" } }
                th.n { "generator busy" }
            } }
            tbody { @for target in targets {
                @let figures = &target.figures;
                tr {
                    th scope="row" {
                        span class=(format!("dot s{}", target.target % LOOKS)) {}
                        (summary.targets[target.target].name)
                    }
                    td { span class=(grade_class(target)) { (target.grade.word()) } }
                    @if let Some(primary) = primary {
                        td.n { (phrases::primary_cell(Some(target), primary)) }
                    }
                    td.n { (phrases::rate_cell(Some(target))) }
                    @if bandwidth {
                        td.n { (unseen(figures.bytes_per_s.map(bytes_per_s))) }
                    }
                    @for ns in [
                        figures.latency.p50_ns, figures.latency.p90_ns, figures.latency.p99_ns,
                        figures.latency.p999_ns, figures.latency.max_ns,
                    ] { td.n { (phrases::latency(ns)) } }
                    td.n { (phrases::answers(target)) }
                    @if hits { td.n { (unseen(figures.hit_ratio.map(percent))) } }
                    td.n { (unseen(figures.server.cpu_ns_per_op.map(nanoseconds))) }
                    td.n { (unseen(figures.server.kernel_share().map(percent))) }
                    @if memory {
                        td.n { (unseen(figures.server.rss_bytes.map(|one| bytes(one as f64)))) }
                    }
                    td.n { (unseen(figures.generator_busy.map(percent))) }
                }
            } }
        } }
    }
}

/// The updates of streams, where any do.
fn stream_table(summary: &Summary, index: usize) -> Markup {
    let targets = || summary.points[index].targets.iter();
    let streams = |target: &TargetSummary| target.figures.streams.clone();
    let any = targets().any(|target| target.figures.streams.is_some());
    let row = |target: &TargetSummary, one: &StreamFigures| {
        let rate = one.updates_per_s.map(crate::number::rate);
        let fairness = one.fairness.filter(|_| one.streams > 1).map(percent);
        html! { tr {
            th scope="row" { (summary.targets[target.target].name) }
            td.n { (crate::number::count(one.streams)) } td.n { (unseen(rate)) }
            @for ns in [one.staleness.p50_ns, one.staleness.p99_ns, one.staleness.max_ns] {
                td.n { (phrases::latency(ns)) }
            }
            td.n { (crate::number::count(one.missed)) } td.n { (crate::number::count(one.merged)) }
            td.n { (fairness.unwrap_or_else(|| "–".to_owned())) }
        } }
    };
    html! {
        @if any {
            div.wide tabindex="0" { table {
                thead { tr {
                    th { "streams of" } th.n { "streams" } th.n { "updates" }
                    th.n { "stale p50" } th.n { "stale p99" } th.n { "stale max" }
                    th.n { "missed" } th.n { "merged" } th.n { "fairness" }
                } }
                tbody { @for target in targets() {
                    @if let Some(one) = streams(target) { (row(target, &one)) }
                } }
            } }
        }
    }
}

/// Figures that calls measured themselves: batches, steps, operations in process.
fn values(summary: &Summary, index: usize) -> Markup {
    let targets = || summary.points[index].targets.iter();
    let any = targets().any(|target| !target.values.is_empty());
    let row = |name: &str, one: &ValueFigures| {
        let (short, show) = call_figure(&one.name);
        html! { tr {
            th scope="row" { (name) } td { (short) }
            @for value in [one.min, one.median, one.mean, one.max] { td.n { (show(value)) } }
            td.n { (crate::number::count(one.count)) }
        } }
    };
    html! {
        @if any {
            details open {
                summary { "Figures that calls measured themselves" }
                div.wide tabindex="0" { table {
                    thead { tr {
                        th { "of" } th { "figure" } th.n { "min" } th.n { "median" }
                        th.n { "mean" } th.n { "max" } th.n { "values" }
                    } }
                    tbody { @for target in targets() { @for one in &target.values {
                        (row(&summary.targets[target.target].name, one))
                    } } }
                } }
            }
        }
    }
}

/// The first limit, with its evidence.
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
                        @if let Some(limit) = first.limit() { ". Try: " em { (limit.advice) } }
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
    let reach = reach(all.iter().copied());
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
                            td.n { (phrases::bound(one)) (ratio(interval.ratio)) "×" }
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

/// The extent of these intervals from 1, on the logarithmic scale.
pub(super) fn reach<'a>(all: impl Iterator<Item = &'a Compared>) -> f64 {
    let ends = all.filter_map(|one| one.interval).flat_map(|one| [one.low, one.high]);
    let ends = ends.filter(|end| end.is_finite() && *end > 0.0);
    ends.map(|end| end.ln().abs()).fold(0.05_f64, f64::max)
}

/// A ratio and its interval around 1, on a logarithmic scale that reaches so far on both sides.
pub(super) fn whiskers(middle: f64, low: f64, high: f64, reach: f64) -> Markup {
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
