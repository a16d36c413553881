//! The trials of a point: each with its figures, over rounds, and the slowest requests.

use findings::{ChartData, Summary, TrialSummary};
use judge::Metric;
use ledger::Validity;
use maud::{Markup, html};

use super::budget::{Budget, clipped, fit};
use super::chart::{Axis, Chart, Dot, LOOKS, Line, Scale};
use super::names;
use super::names::shown;
use super::page::{page, page_budget, table};
use super::point::article;
use super::served::ledger_nav;
use crate::causes::reason;
use crate::number::{count, duration, nanoseconds, percent, rate};
use crate::phrases::{latency, unseen};

/// The metrics drawn by round, besides the run's primary one.
const BY_ROUND: &[&str] = &["rate_per_s", "latency.p50", "latency.p99", "server.cpu_ns_per_op"];

/// The most rounds that are labelled.
const MAX_LABELS: usize = 10;

/// The most slow requests that are listed.
const MAX_SLOW: usize = 40;

/// The budgets of the page's parts; the table gets the rest.
const ARTICLE_BYTES: usize = 120_000;
const CHARTS_BYTES: usize = 60_000;
const SLOW_BYTES: usize = 20_000;

/// One point of a run with its trials. `index` is that of a point of the run.
pub fn trials(summary: &Summary, data: &ChartData, index: usize) -> String {
    let (id, point) = (summary.id, &summary.points[index]);
    let mut budget = page_budget();
    let whole = "This point has no room in full here.";
    let mut share = budget.share(ARTICLE_BYTES);
    let article = share.settle(article(summary, data, index, true), whole);
    let slow = slow(summary, index, budget.share(SLOW_BYTES));
    budget = Budget::of(budget.left() - ARTICLE_BYTES - CHARTS_BYTES - SLOW_BYTES - 5_000);
    let trials: Vec<&TrialSummary> = summary.trials_at(index).map(|(_, one)| one).collect();
    let (rows, more) = budget.list(trials.iter().map(|one| row(summary, one)));
    // A round may have no room for the rows of all its targets.
    let last_row = match more {
        0 => u32::MAX,
        more => trials[trials.len() - more].round.saturating_sub(1),
    };
    let (charts, _) = Budget::of(CHARTS_BYTES).list(by_round(summary, index, last_row));
    let way = |to: usize| format!("/runs/{id}/points/{to}");
    let contents = html! {
        (ledger_nav(None))
        nav aria-label="This point" {
            a href=(format!("/runs/{id}")) { "Run " (id) }
            @if index > 0 { a href=(way(index)) { "Point before" } }
            @if index + 1 < summary.points.len() { a href=(way(index + 2)) { "Next point" } }
            a href=(format!("{}.json", way(index + 1))) { "This point as JSON" }
        }
        header {
            p.kind {
                span { "Loadline" } span { "run " (id) }
                span { "point " (index + 1) " of " (summary.points.len()) }
            }
            h1 { (clipped(&summary.suite.title)) }
        }
        main {
            section { (article) }
            section {
                h2 { "By round" }
                div.charts { (charts) }
                (table("Every trial of this point", TRIALS, &html! { tbody { (rows) } }))
                @if more > 0 {
                    p.note {
                        (more) " more trials have no room here: "
                        code { "loadline ledger export " (id) " --format csv" } " has all of them."
                    }
                }
            }
            (slow)
        }
    };
    page(&point.row.label, None, &contents).into_string()
}

const TRIALS: &[(&str, &str)] = &[
    ("n", "round"),
    ("", "target"),
    ("", "validity"),
    ("n", "rate"),
    ("n", "p50"),
    ("n", "p99"),
    ("n", "max"),
    ("n", "wrong"),
    ("n", "missing"),
    ("n", "server CPU per op"),
    ("n", "generator busy"),
    ("n", "measured"),
    ("n", "slices again"),
    ("n", "trial"),
];

const SLOWEST: &[(&str, &str)] = &[
    ("n", "latency"),
    ("", "target"),
    ("", "operation"),
    ("", "clients"),
    ("n", "round"),
    ("n", "at"),
];

fn row(summary: &Summary, trial: &TrialSummary) -> Markup {
    let (figures, row) = (&trial.figures, &trial.row);
    let class = match row.validity {
        Validity::Valid => "word good",
        Validity::Disturbed => "word unsure",
        Validity::Invalid => "word bad",
    };
    html! { tr id=(round_id(trial)) {
        th.n scope="row" { (trial.round) }
        td {
            span class=(format!("dot s{}", trial.target % LOOKS)) {}
            (clipped(&summary.targets[trial.target].name))
        }
        td.wrap {
            span class=(class) { (row.validity.word()) }
            @if let Some(reason) = reason(row.validity, &trial.why()) { " " (fit(&reason, 600)) }
            @if row.overloaded { " " span class="word bad" { "overloaded" } }
        }
        td.n { (unseen(figures.rate_per_s.map(rate))) }
        @for ns in [figures.latency.p50_ns, figures.latency.p99_ns, figures.latency.max_ns] {
            td.n { (latency(ns)) }
        }
        td.n { (count(row.wrong)) } td.n { (count(row.missing)) }
        td.n { (unseen(figures.server.cpu_ns_per_op.map(nanoseconds))) }
        td.n { (unseen(row.generator_busy.map(percent))) }
        td.n { (duration(row.measured_ns as f64)) }
        td.n { (trial.slices_measured_again) }
        td.n { (trial.id) }
    } }
}

/// The id of a trial's row.
fn round_id(trial: &TrialSummary) -> String {
    format!("round-{}-{}", trial.round, trial.target + 1)
}

/// Figures of each target over the rounds of a point; those up to `last_row` have a row below.
fn by_round(summary: &Summary, index: usize, last_row: u32) -> Vec<Markup> {
    let mut metrics: Vec<&Metric> = Vec::new();
    let names =
        std::iter::once(summary.run.primary_metric.as_str()).chain(BY_ROUND.iter().copied());
    for metric in names.filter_map(|name| summary.metrics.named(name)) {
        if metrics.iter().all(|one| one.suite != metric.suite) {
            metrics.push(metric);
        }
    }
    let rounds = summary.points[index].rounds;
    let every = rounds.div_ceil(MAX_LABELS).max(1);
    let marks: Vec<(f64, String)> =
        (1..=rounds).step_by(every).map(|round| (round as f64, round.to_string())).collect();
    let chart = |metric: &&Metric| {
        let lines = (0..summary.targets.len()).map(|target| {
            let here = summary.trials_at(index).map(|(_, trial)| trial);
            let here = here.filter(|trial| trial.target == target && trial.is_valid());
            let dot = |one: &TrialSummary| {
                let way = (one.round <= last_row).then(|| format!("#{}", round_id(one)));
                let (x, y) = (f64::from(one.round), one.figures.value(metric)?);
                Some(Dot { x, y, range: None, way })
            };
            let points = here.filter_map(dot).collect();
            Line::of(&summary.targets[target].name, target, points).marked()
        });
        Chart {
            title: format!("{} by round", names::metric(metric)),
            x: Axis {
                label: "round".to_owned(),
                scale: Scale::Marked(marks.clone()),
                show: |round| format!("round {round}"),
                ..Axis::default()
            },
            y: Axis {
                label: metric.suite.to_string(),
                scale: Scale::FromZero,
                show: shown(metric),
                binary: metric.unit == judge::Unit::Bytes,
                ..Axis::default()
            },
            lines: lines.collect(),
            ..Chart::default()
        }
        .draw()
    };
    metrics.iter().map(chart).collect()
}

/// The slowest requests of the point over all its trials.
fn slow(summary: &Summary, index: usize, mut budget: Budget) -> Markup {
    let trials = &summary.trials;
    let mut here: Vec<_> =
        summary.slow.iter().filter(|slow| trials[slow.trial].point == index).collect();
    here.sort_by_key(|slow| std::cmp::Reverse(slow.row.latency_ns));
    let row = |slow: &&findings::SlowSummary| {
        let trial = &trials[slow.trial];
        html! { tr {
            th.n scope="row" { (duration(slow.row.latency_ns as f64)) }
            td { (clipped(&summary.targets[trial.target].name)) }
            td { (clipped(&slow.row.operation)) } td { (clipped(&slow.row.clients)) }
            td.n { (trial.round) }
            td.n { (format!("{:.3} s", slow.row.at_ns as f64 / 1e9)) }
        } }
    };
    let (rows, _) = budget.list(here.iter().take(MAX_SLOW).map(row));
    html! {
        @if !rows.0.is_empty() {
            section {
                h2 { "Slowest requests" }
                (table("The slowest first", SLOWEST, &html! { tbody { (rows) } }))
            }
        }
    }
}
