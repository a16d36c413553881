//! The rungs of a ladder: each against the one before and the first, with its figure as a bar.

use findings::{Compared, Profile, Step, Summary, ladder};
use judge::{Metric, series_interval};
use maud::{Markup, html};

use super::bars::{Bar, Bars};
use super::budget::{Budget, clipped, fit};
use super::page::rest;
use super::point::{class_of, reach, said, whiskers};
use crate::number::{nanoseconds, percent, ratio, value_of};
use crate::phrases::bound;

/// The ladder; nothing when the run is none.
pub(super) fn section(summary: &Summary, mut budget: Budget) -> Markup {
    let steps = ladder(summary);
    if steps.is_empty() {
        return Markup::default();
    }
    let reach = reach(steps.iter().flat_map(|step| step.before.iter().chain(&step.first)));
    let charts = bars(summary, &steps);
    let (charts, undrawn) = budget.share(30_000).list(charts);
    let rows = steps.iter().enumerate().map(|(at, step)| rung(summary, at, step, reach));
    let (rows, more) = budget.list(rows);
    html! {
        section {
            h2 { "Ladder" }
            p.note {
                "Each rung against the one before it and against the first, by "
                code { (summary.run.primary_metric) } ". Ratios are the rung ÷ the other; the line "
                "is 1."
            }
            div.wide tabindex="0" { table.forest {
                thead { tr {
                    th { "rung" } th { "against" } th.n { "ratio" } th { "interval" }
                    th { "verdict" } th { "decision" }
                } }
                (rows)
            } }
            (rest(summary, more, "rungs"))
            div.charts { (charts) }
            (rest(summary, undrawn, "points of this ladder"))
        }
    }
}

fn rung(summary: &Summary, at: usize, step: &Step<'_>, reach: f64) -> Markup {
    let all = [("the one before", &step.before), ("the first", &step.first)];
    let rows: Vec<(&str, &Compared)> =
        all.iter().flat_map(|(words, all)| all.iter().map(move |one| (*words, one))).collect();
    let height = rows.len().max(1);
    html! {
        tbody { @for (row, one) in (0..height).map(|row| (row, rows.get(row))) { tr {
            @if row == 0 {
                th scope="row" rowspan=(height) {
                    (at + 1) " " (summary.targets[step.target].name)
                    @if !step.row.note.is_empty() { p.note.wrap { (fit(&step.row.note, 600)) } }
                    @if let Some(profile) = &step.profile { (functions(profile)) }
                }
            }
            @match one {
                None => { td colspan="4" { "what the others stand on" } }
                Some((words, one)) => {
                    td {
                        (words)
                        @if summary.points.len() > 1 {
                            p.note { "at " (summary.points[one.point].row.label) }
                        }
                    }
                    @match one.interval {
                        None => { td.n { "unseen" } td {} }
                        Some(interval) => {
                            td.n { (bound(one)) (ratio(interval.ratio)) "×" }
                            td { (whiskers(interval.ratio, interval.low, interval.high, reach)) }
                        }
                    }
                    td { span class=(class_of(one.verdict)) { (said(summary, one)) } }
                }
            }
            @if row == 0 { td rowspan=(height) { (decision(step)) } }
        } } }
    }
}

fn decision(step: &Step<'_>) -> Markup {
    html! {
        @match (step.decided(), step.proposed()) {
            (Some((decision, reason)), _) => {
                strong { (decision.word()) } p.note.wrap { (fit(reason, 600)) }
            }
            (None, Some(proposed)) => { "undecided; the figures say: " (proposed) }
            (None, None) => { "–" }
        }
    }
}

fn functions(profile: &Profile) -> Markup {
    let words: Vec<String> = profile
        .functions
        .iter()
        .map(|one| {
            let mark = if one.is_stable() { "" } else { "?" };
            format!("{} {}{mark}", percent(one.mean), fit(&one.name, 80))
        })
        .collect();
    html! {
        p.note.wrap {
            "profile of " (profile.times) ": " (words.join(" · "))
            @if !profile.is_stable { " " span class="word unsure" { "unstable" } }
        }
    }
}

/// The figure of every rung at each point.
fn bars(summary: &Summary, steps: &[Step<'_>]) -> Vec<Markup> {
    let Some(metric) = summary.primary() else { return Vec::new() };
    let at = |point: usize| {
        let bar = |step: &Step<'_>| {
            let here = summary.trials_at(point).map(|(_, trial)| trial);
            let here = here.filter(|trial| trial.target == step.target && trial.is_valid());
            let values: Vec<f64> = here.filter_map(|trial| trial.figures.value(metric)).collect();
            let interval = series_interval(&values, summary.run.confidence)?;
            Some(Bar {
                name: summary.targets[step.target].name.clone(),
                value: interval.mean,
                range: Some((interval.low, interval.high)),
                look: Some(step.target),
                said: String::new(),
            })
        };
        let place = match summary.points.len() {
            1 => String::new(),
            _ => format!(" at {}", clipped(&summary.points[point].row.label)),
        };
        Bars {
            title: format!("{}{place}", metric.suite),
            show: shown(metric),
            bars: steps.iter().filter_map(bar).collect(),
            note: String::new(),
        }
        .draw()
    };
    (0..summary.points.len()).map(at).collect()
}

/// The format of a value of this metric.
pub(super) fn shown(metric: &Metric) -> fn(f64) -> String {
    use judge::Unit::{Bytes, BytesPerSecond, Count, Fraction, Nanoseconds, Number, PerSecond};
    match metric.unit {
        Nanoseconds if metric.json.ends_with("_ns_per_op") => nanoseconds,
        Nanoseconds => |value| value_of(value, Nanoseconds),
        PerSecond => |value| value_of(value, PerSecond),
        Bytes => |value| value_of(value, Bytes),
        BytesPerSecond => |value| value_of(value, BytesPerSecond),
        Count => |value| value_of(value, Count),
        Fraction => |value| value_of(value, Fraction),
        Number => |value| value_of(value, Number),
    }
}
