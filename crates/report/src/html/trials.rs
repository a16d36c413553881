//! The trials of a point: each with its figures, over rounds, and the slowest requests.

use findings::{ChartData, Latency, Summary, TrialSummary};
use judge::Metric;
use ledger::Validity;
use maud::{Markup, html};

use super::budget::{Budget, clipped};
use super::chart::{Axis, Chart, Dot, Line as Curve, Scale};
use super::page::{page, page_budget, rest_in};
use super::point::article;
use super::render::within;
use super::served::ledger_nav;
use crate::causes::validity_note;
use crate::content;
use crate::document::{Line, NamedFigure, Role, Sheet, Table, number, words, wrapped};
use crate::names;
use crate::number::{count, duration, nanoseconds, percent, rate};
use crate::phrases::unseen;

/// The metrics drawn by round, besides the run's primary one.
const BY_ROUND: &[&str] = &["rate_per_s", "latency.p50", "latency.p99", "server.cpu_ns_per_op"];

/// The most rounds that are labelled.
const MAX_LABELS: usize = 10;

/// The most slow requests of a target that are listed.
const MAX_SLOW: usize = 20;

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
    let article = share.settle(article(summary, data, index), whole);
    let slowest = content::slowest(summary, index, MAX_SLOW);
    let (slow, _) = within(&slowest, &mut budget.share(SLOW_BYTES));
    budget = Budget::of(budget.left() - ARTICLE_BYTES - CHARTS_BYTES - SLOW_BYTES - 5_000);
    let trials: Vec<&TrialSummary> = summary.trials_at(index).map(|(_, one)| one).collect();
    let (rows, more) = within(&every(summary, &trials), &mut budget);
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
                (rows)
                (rest_in(more, "trials", &format!("loadline ledger export {id} --format csv")))
            }
            @if !slow.0.is_empty() { section { h2 { "Slowest requests" } (slow) } }
        }
    };
    page(&point.row.label, None, &contents).into_string()
}

fn every(summary: &Summary, trials: &[&TrialSummary]) -> Table {
    let sheet = Sheet::of("Every trial of this point", trials.iter().copied())
        .ids(|one| round_id(one))
        .with(number("round"), |one| one.round.to_string())
        .with(words("target"), |one| content::name(summary, one.target))
        .with(wrapped("validity"), |one| validity(one))
        .with(number("rate"), |one| unseen(one.figures.rate_per_s.map(rate)));
    let latencies: [NamedFigure<Latency, Option<u64>>; 3] =
        [("p50", |one| one.p50_ns), ("p99", |one| one.p99_ns), ("max", |one| one.max_ns)];
    let sheet = latencies.into_iter().fold(sheet, |sheet, (name, of)| {
        sheet.with(number(name), |one| of(&one.figures.latency).map(|ns| duration(ns as f64)))
    });
    sheet
        .with(number("wrong"), |one| count(one.row.wrong))
        .with(number("refused"), |one| count(one.row.refused))
        .with(number("missing"), |one| count(one.row.missing))
        .with(number("server CPU per op"), |one| {
            unseen(one.figures.server.cpu_ns_per_op.map(nanoseconds))
        })
        .with(number("generator busy"), |one| unseen(one.row.generator_busy.map(percent)))
        .with(number("measured"), |one| duration(one.row.measured_ns as f64))
        .with(number("slices again"), |one| one.slices_measured_again.to_string())
        .with(number("trial"), |one| one.id.to_string())
        .table()
}

fn validity(trial: &TrialSummary) -> Line {
    let row = &trial.row;
    let role = match row.validity {
        Validity::Valid => Role::Good,
        Validity::Disturbed => Role::Unsure,
        Validity::Invalid => Role::Bad,
    };
    let why =
        validity_note(row.validity, &trial.why()).map_or(String::new(), |why| format!(" {why}"));
    let line = Line::with_role(role, row.validity.word()).then(why);
    if row.overloaded { line.and(Role::Bad, " overloaded") } else { line }
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
            Curve::of(&summary.targets[target].name, target, points).marked()
        });
        let title = format!("{} by round", names::metric(metric));
        let x = Axis::of("round", Scale::Marked(marks.clone()), |round| format!("round {round}"));
        Chart::of(title, x, Axis::of_metric(metric), lines.collect()).draw()
    };
    metrics.iter().map(chart).collect()
}
