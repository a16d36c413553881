//! The rungs of a ladder: each against the one before and the first, with its figure as a bar.

use findings::{Compared, Profile, Step, Summary, ladder};
use maud::{Markup, html};

use super::bars::{Bar, Bars};
use super::budget::{Budget, clipped, fit};
use super::names::{self, shown};
use super::page::{rest, table};
use super::point::{class_of, reach, said, whiskers};
use crate::number::{percent, ratio};
use crate::phrases::bound;

const COLUMNS: &[(&str, &str)] = &[
    ("", "rung"),
    ("", "against"),
    ("n", "ratio"),
    ("", "interval"),
    ("", "decision"),
    ("verdict", "verdict"),
];

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
            (table("Rungs and their verdicts", COLUMNS, &rows))
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
                None => { td colspan="3" { "what the others stand on" } }
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
                }
            }
            @if row == 0 { td rowspan=(height) { (decision(step)) } }
            td.verdict {
                @match one {
                    Some((_, one)) => {
                        span class=(class_of(one.verdict)) { (said(summary, one)) }
                    }
                    None => { "–" }
                }
            }
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
            let target = summary.points[point].of_target(step.target)?;
            Bar::of(summary, point, target, metric)
        };
        let place = match summary.points.len() {
            1 => String::new(),
            _ => format!(" at {}", clipped(&summary.points[point].row.label)),
        };
        Bars {
            title: format!("{}{place}", names::metric(metric)),
            show: shown(metric),
            bars: steps.iter().filter_map(bar).collect(),
            note: String::new(),
        }
        .draw()
    };
    (0..summary.points.len()).map(at).collect()
}
