//! All runs of a suite on one kind of host: a chart per point with its changes, and the runs.

use findings::{History, PastFigure, PointHistory};
use ledger::RunLine;
use maud::{Markup, html};

use super::budget::{Budget, clipped, fit};
use super::chart::{Axis, Band, Chart, Dot, Line, Scale};
use super::page::{page, page_budget, rest_in};
use super::render::{table, within};
use super::served::{encoded, history_of, ledger_nav};
use crate::contest::change;
use crate::document::{Cell, Sheet, number, wrapped};
use crate::history::{figures, sentences, settings_words};
use crate::names;
use crate::number::count;
use crate::phrases::many;

/// Labels of an axis of runs.
const LABELS: usize = 6;

/// The budgets of the head and the charts; the tables get the rest.
const HEAD_BYTES: usize = 120_000;
const CHARTS_BYTES: usize = 200_000;

/// The suites of a ledger, each with its way to its history.
pub fn suites(all: &[RunLine]) -> String {
    let mut titles: Vec<(&str, usize)> = Vec::new();
    for run in all.iter().rev() {
        match titles.iter_mut().find(|(title, _)| *title == run.title) {
            Some((_, runs)) => *runs += 1,
            None => titles.push((&run.title, 1)),
        }
    }
    let sheet = Sheet::of("Suites", titles)
        .with(wrapped("suite"), |(title, _)| Cell::from(*title).link(Some(history_of(title))))
        .with(number("runs"), |(_, runs)| count(*runs as u64));
    let (table, more) = within(&sheet.table(), &mut page_budget());
    let contents = html! {
        (ledger_nav(Some("History")))
        header {
            p.kind { span { "Loadline" } }
            h1 { "History" }
            p { "Where a suite's figures changed for good, over its runs on one kind of host." }
        }
        main {
            @if all.is_empty() {
                p { "There is no run yet: " code { "loadline run SUITE" } " measures the first." }
            } @else {
                (table)
                (rest_in(more, "suites", "loadline ledger list"))
            }
        }
    };
    page("History", None, &contents).into_string()
}

/// The history of a suite.
pub fn history(history: &History) -> String {
    let budget = page_budget();
    let (charts, undrawn) =
        budget.share(CHARTS_BYTES).list(history.series.iter().map(|one| chart(history, one)));
    let mut tables = Budget::of(budget.left() - CHARTS_BYTES - HEAD_BYTES);
    let (tables, more) = tables.list(history.series.iter().map(|one| past(history, one)));
    let answer = history.outcome();
    let class = match (answer.worse, answer.cant_tell) {
        (true, _) => "answer bad",
        (_, true) => "answer unsure",
        _ => "answer good",
    };
    let sentences = sentences(history);
    let contents = html! {
        (ledger_nav(None))
        header {
            p.kind { span { "Loadline" } span { "history" } span { (clipped(&history.host)) } }
            h1 { (clipped(&history.title)) }
            div class=(class) { @for line in sentences.iter().take(20) { p { (fit(line, 800)) } } }
            @if history.elsewhere > 0 {
                p.note { (many(history.elsewhere, "run")) " on other hosts left out." }
            }
        }
        (asked(history))
        @if history.targets.iter().any(|name| *name != history.target) {
            p.note {
                "other targets: "
                @for name in history.targets.iter().filter(|one| **one != history.target).take(20) {
                    a href=(of_target(history, name)) { (fit(name, 100)) } " "
                }
            }
        }
        main {
            div.charts { (charts) }
            (tables)
            @if undrawn + more + sentences.len().saturating_sub(20) > 0 {
                p.note {
                    "Not all of it has room here: " code { "loadline history" } " has all of it."
                }
            }
        }
    };
    page(&history.title, None, &contents).into_string()
}

/// Another metric or target of the same suite.
fn asked(history: &History) -> Markup {
    let json = format!(
        "/history.json?suite={}&target={}&metric={}",
        encoded(&fit(&history.title, 700)),
        encoded(&fit(&history.target, 300)),
        encoded(&history.metric.suite)
    );
    html! {
        form.asked action="/history" {
            input type="hidden" name="suite" value=(fit(&history.title, 700));
            label {
                "target "
                input name="target" value=(fit(&history.target, 300)) size="16" list="targets";
            }
            label {
                "metric "
                select name="metric" { @for metric in history.metrics.iter() {
                    option selected[metric.suite == history.metric.suite] { (metric.suite) }
                } }
            }
            datalist id="targets" { @for name in history.targets.iter().take(40) {
                option value=(fit(name, 100)) {}
            } }
            button { "Show" }
            a href=(json) { "As JSON" }
        }
    }
}

/// The same of another target.
fn of_target(history: &History, target: &str) -> String {
    let (title, metric) = (fit(&history.title, 700), encoded(&history.metric.suite));
    format!("{}&target={}&metric={metric}", history_of(&title), encoded(&fit(target, 300)))
}

fn chart(history: &History, series: &PointHistory) -> Markup {
    let runs = &series.runs;
    let every = runs.len().div_ceil(LABELS).max(1);
    let label = |(at, run): (usize, &PastFigure)| (at as f64, format!("run {}", run.id));
    let marks = runs.iter().enumerate().filter(|(at, _)| at % every == 0).map(label);
    let dot = |(at, run): (usize, &PastFigure)| Dot {
        way: Some(format!("/runs/{}", run.id)),
        ..Dot::from((at as f64, run.figure))
    };
    let points = runs.iter().enumerate().map(dot).collect();
    let bands = series.changes.iter().map(|one| {
        let is_worse = history.is_worse(one);
        Band {
            from: one.index as f64 - 0.75,
            to: one.index as f64 - 0.25,
            class: if is_worse { "disturbed" } else { "improved" },
            title: format!(
                "{}: {}",
                if is_worse { "worse" } else { "better" },
                change(one.after / one.before)
            ),
        }
    });
    let metric = &history.metric;
    let title = format!("{} of {} at {}", names::metric(metric), history.target, series.point);
    let x = Axis::of("runs, oldest first", Scale::Marked(marks.collect()), |at| {
        format!("number {}", at + 1.0)
    });
    let lines = vec![Line::of("", 0, points).marked()];
    let chart = Chart::of(title, x, Axis::of_metric(metric), lines);
    Chart { bands: bands.collect(), ..chart }.draw()
}

fn past(history: &History, series: &PointHistory) -> Markup {
    html! {
        section {
            h2 { (clipped(&series.point)) }
            @if series.settings != "[]" { p.note { (clipped(&settings_words(series))) } }
            (table(&figures(history, series)))
        }
    }
}
