//! A point on the page: its targets with their verdicts first, then rate and latency with their
//! intervals, then the rest.

use findings::{ChartData, Compared, StreamFigures, Summary, TargetSummary, ValueFigures};
use judge::{Metric, Verdict};
use ledger::{RequirementOutcome, Validity};
use maud::{Markup, html};

use super::bars::{Bar, Bars};
use super::budget::{Budget, clipped};
use super::chart::LOOKS;
use super::names::shown as shown_as;
use super::page::{Place, rest, table};
use super::{cost, names, spread};
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

/// The metrics that are drawn with their intervals, besides the run's primary one.
const DRAWN: &[&str] = &["rate_per_s", "latency.p50", "latency.p99"];

/// The most points in the table of all.
const MAX_ROWS: usize = 300;

/// The most verdicts of a point that are shown one by one in the table of all points.
const MAX_VERDICTS: usize = 3;

/// All points in one table, each a link to its own part of the page if it has one: only the first
/// `in_full` do.
pub(super) fn overview(
    summary: &Summary,
    in_full: usize,
    mut budget: Budget,
    place: &Place,
) -> Markup {
    let names: Vec<_> = summary.targets.iter().map(|target| clipped(&target.name)).collect();
    let mut columns = vec![("", "point")];
    columns.extend(names.iter().map(|name| ("n", &**name)));
    if matches!(place, Place::Served) {
        columns.push(("", "trials"));
    }
    let verdict = format!("verdict on {}", names.first().map_or("", |name| &**name));
    if is_judged(summary) {
        columns.push(("verdict", &verdict));
    }
    let metric = summary.primary().map_or("Rate".into(), names::metric);
    let caption = format!("{metric} at each point");
    let rows = (0..summary.points.len()).take(MAX_ROWS);
    let rows = rows.map(|index| overview_row(summary, index, in_full, place));
    let head = table(&caption, &columns, &Markup::default());
    let (rows, _) = if budget.fits(&head) { budget.list(rows) } else { (Markup::default(), 0) };
    let shown = rows.0.matches("<tr>").count();
    html! {
        section #points {
            h2 { "Points" }
            @if shown > 0 { (table(&caption, &columns, &html! { tbody { (rows) } })) }
            (rest(summary, summary.points.len() - shown, "points"))
        }
    }
}

fn overview_row(summary: &Summary, index: usize, in_full: usize, place: &Place) -> Markup {
    let point = &summary.points[index];
    let label = clipped(&point.row.label);
    html! {
        tr {
            th.wrap scope="row" {
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
            @if matches!(place, Place::Served) { td { (trials_link(summary, index)) } }
            @if is_judged(summary) { td.verdict { (verdict_words(summary, index)) } }
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

/// The verdicts of a point by the primary metric, or how many there are of each.
fn verdict_words(summary: &Summary, index: usize) -> Markup {
    let primary: Vec<&Compared> = summary.comparisons_at(index).filter(|one| one.primary).collect();
    if primary.len() > MAX_VERDICTS {
        let kinds = [
            ("better", "better than"),
            ("worse", "worse than"),
            ("same", "the same as"),
            ("cant_tell", "can't tell from"),
        ];
        let of = |code: &'static str| primary.iter().filter(move |one| one.verdict.code() == code);
        return html! {
            @for (code, words) in kinds {
                @if let Some(first) = of(code).next() {
                    div { span class=(class_of(first.verdict)) { (words) " " (of(code).count()) } }
                }
            }
        };
    }
    html! {
        @for one in &primary {
            div {
                @if primary.len() > 1 { (clipped(&summary.targets[one.b].name)) ": " }
                (verdict(summary, one))
            }
        }
    }
}

/// A verdict of the primary metric with its ratio and interval.
fn verdict(summary: &Summary, one: &Compared) -> Markup {
    html! {
        span class=(class_of(one.verdict)) { (said(summary, one)) }
        " " span.ratio { (phrases::plain_interval(one)) }
        @if one.disturbed_rounds > 0 && one.likely.is_none() {
            " " (one.disturbed_rounds) " of " (one.interval.map_or(0, |all| all.rounds))
            " rounds disturbed"
        }
        @if let Some(likely) = phrases::likely(summary, one) { "; " (likely) }
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
    html! {
        article #(format!("point-{index}")) {
            h3 { (point.row.label) }
            p.note { (validity(summary, index)) }
            (spoiled(summary, index))
            @if point.targets.is_empty() {
                p { "Nothing was measured here: the run ended before a round of this point did." }
            } @else {
                (targets(summary, index))
                (requirements(summary, index))
                // With several points the same figures are drawn against what was swept.
                @if summary.points.len() == 1 { div.charts { (intervals(summary, index)) } }
                (stream_table(summary, index))
                @if is_judged(summary) { (comparisons(summary, index)) }
                (limits(summary, index))
                (latencies(summary, data, index))
                (values(summary, index))
                (cost::table(summary, index))
            }
            @if with_text {
                details {
                    summary { "Everything of this point, as the terminal shows it" }
                    pre tabindex="0" { (crate::text::point(summary, index, false)) }
                }
            }
        }
    }
}

/// The primary metric, rate and latencies of each target as bars with their intervals.
fn intervals(summary: &Summary, index: usize) -> Markup {
    let own = summary.run.primary_metric.as_str();
    let names = [own].into_iter().chain(DRAWN.iter().copied().filter(|name| *name != own));
    let drawn = |metric: &Metric| {
        let targets = summary.points[index].targets.iter();
        let targets = targets.filter(|one| one.grade.validity != Validity::Invalid);
        let bars = targets.filter_map(|one| Bar::of(summary, index, one, metric)).collect();
        let title = names::metric(metric).into_owned();
        Bars { title, show: shown_as(metric), bars, note: String::new() }.draw()
    };
    let metrics = names.filter_map(|name| summary.metrics.named(name));
    html! { @for metric in metrics { (drawn(metric)) } }
}

/// Latencies in figures and charts, and what an operation costs.
fn latencies(summary: &Summary, data: &ChartData, index: usize) -> Markup {
    let rows = spread::rows(summary, data, index);
    let none =
        rows.0.is_empty() && summary.points[index].targets.iter().all(|one| one.valid_trials == 0);
    html! {
        (rows)
        @if none { p.note { "No trial here is valid, so there are no latencies to draw." } }
        div.charts {
            (spread::percentiles(summary, data, index))
            (spread::spread(summary, data, index))
            (cost::bars(summary, index))
        }
    }
}

/// The requirements of a point with their values and the room that is left.
fn requirements(summary: &Summary, index: usize) -> Markup {
    let columns = [("", "requirement"), ("n", "value"), ("n", "room"), ("verdict", "outcome")];
    let class = |outcome| match outcome {
        RequirementOutcome::Held => "word good",
        RequirementOutcome::Broken => "word bad",
        RequirementOutcome::CantTell => "word unsure",
    };
    let all: Vec<_> = requirements::at_point(summary, index).map(|one| &one.row).collect();
    let body = html! { tbody { @for row in &all { tr {
        th scope="row" {
            code { (row.expression) }
            @let beside = requirements::beside(row).join("; ");
            @if !beside.is_empty() { p.note.wrap { (beside) } }
        }
        td.n { (requirements::value(row)) }
        td.n { (requirements::room(row).unwrap_or_else(|| "–".to_owned())) }
        td.verdict { span class=(class(row.outcome)) { (requirements::outcome(row.outcome)) } }
    } } } };
    html! { @if !all.is_empty() { (table("Requirements", &columns, &body)) } }
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

/// What each target showed here, and what the first one is against it.
fn targets(summary: &Summary, index: usize) -> Markup {
    let targets = &summary.points[index].targets;
    let some = |of: fn(&TargetSummary) -> bool| targets.iter().any(of);
    let hits = some(|one| one.figures.hit_ratio.is_some());
    let bandwidth = some(|one| one.figures.bytes_per_s.is_some());
    let memory = some(|one| one.figures.server.rss_bytes.is_some());
    let primary = phrases::primary_unless(summary, SHOWN);
    let name = primary.map(|metric| names::metric(metric).to_lowercase());
    let first = format!("verdict on {}", clipped(&summary.targets[0].name));
    let columns: Vec<(&str, &str)> = [
        Some(("", "target")),
        Some(("", "grade")),
        name.as_deref().map(|name| ("n", name)),
        Some(("n", "rate")),
        bandwidth.then_some(("n", "bytes")),
        Some(("n", "p50")),
        Some(("n", "p90")),
        Some(("n", "p99")),
        Some(("n", "p99.9")),
        Some(("n", "max")),
        Some(("n", "server CPU/op")),
        Some(("n", "kernel")),
        memory.then_some(("n", "memory")),
        Some(("n", "generator busy")),
        hits.then_some(("n", "hits")),
        Some(("n", "answers")),
        is_judged(summary).then_some(("verdict", &*first)),
    ]
    .into_iter()
    .flatten()
    .collect();
    let row = |target: &TargetSummary| {
        let figures = &target.figures;
        let latencies = &figures.latency;
        let mut compared = summary.comparisons_at(index).filter(|one| one.primary);
        html! { tr {
            th scope="row" {
                span class=(format!("dot s{}", target.target % LOOKS)) {}
                (summary.targets[target.target].name)
            }
            td { span class=(grade_class(target)) { (target.grade.word()) } }
            @if let Some(primary) = primary {
                td.n { (phrases::primary_cell(Some(target), primary)) }
            }
            td.n { (phrases::rate_cell(Some(target))) }
            @if bandwidth { td.n { (unseen(figures.bytes_per_s.map(bytes_per_s))) } }
            @for ns in [
                latencies.p50_ns, latencies.p90_ns, latencies.p99_ns, latencies.p999_ns,
                latencies.max_ns,
            ] { td.n { (phrases::latency(ns)) } }
            td.n { (unseen(figures.server.cpu_ns_per_op.map(nanoseconds))) }
            td.n { (unseen(figures.server.kernel_share().map(percent))) }
            @if memory {
                td.n { (unseen(figures.server.rss_bytes.map(|one| bytes(one as f64)))) }
            }
            td.n { (unseen(figures.generator_busy.map(percent))) }
            @if hits { td.n { (unseen(figures.hit_ratio.map(percent))) } }
            td.n { (phrases::answers(target)) }
            @if is_judged(summary) {
                td.verdict {
                    @match compared.find(|one| one.b == target.target) {
                        Some(one) => (verdict(summary, one)),
                        None => "–",
                    }
                }
            }
        } }
    };
    let body = html! { tbody { @for target in targets { (row(target)) } } };
    table("Targets", &columns, &body)
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
    let columns = [
        ("", "streams of"),
        ("n", "streams"),
        ("n", "updates"),
        ("n", "stale p50"),
        ("n", "stale p99"),
        ("n", "stale max"),
        ("n", "missed"),
        ("n", "merged"),
        ("n", "fairness"),
    ];
    let body = html! { tbody { @for target in targets() {
        @if let Some(one) = streams(target) { (row(target, &one)) }
    } } };
    html! { @if any { (table("Updates of streams", &columns, &body)) } }
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
    let columns = [
        ("", "of"),
        ("", "figure"),
        ("n", "min"),
        ("n", "median"),
        ("n", "mean"),
        ("n", "max"),
        ("n", "values"),
    ];
    let body = html! { tbody { @for target in targets() { @for one in &target.values {
        (row(&summary.targets[target.target].name, one))
    } } } };
    html! { @if any { (table("Figures that calls measured themselves", &columns, &body)) } }
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
    let Some(one) = all.first() else { return Markup::default() };
    let caption = format!(
        "{} ÷ the other, with {} intervals over rounds; the line is 1",
        clipped(&summary.targets[0].name),
        whole_percent(one.confidence)
    );
    let columns =
        [("", "against"), ("", "metric"), ("n", "ratio"), ("", "interval"), ("verdict", "verdict")];
    let reach = reach(all.iter().copied());
    let body = html! { tbody { @for one in &all {
        @if let Some(interval) = one.interval {
            tr class=[one.primary.then_some("primary")] {
                th scope="row" {
                    span class=(format!("dot s{}", one.b % LOOKS)) {}
                    (summary.targets[one.b].name)
                }
                td { (names::metric(&one.metric)) }
                td.n { (phrases::bound(one)) (ratio(interval.ratio)) "×" }
                td { (whiskers(interval.ratio, interval.low, interval.high, reach)) }
                td.verdict { span class=(class_of(one.verdict)) { (said(summary, one)) } }
            }
        }
    } } };
    html! {
        (table(&caption, &columns, &body))
        p.note {
            "The primary metric carries the verdict. The others are compared each for itself, "
            "without correction for their number."
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
