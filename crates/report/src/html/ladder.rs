//! The rungs of a ladder: each against the one before and the first, with its figure as a bar.

use findings::{Step, Summary, ladder};
use maud::{Markup, html};

use super::bars::{Bar, Bars};
use super::budget::{Budget, clipped};
use super::page::rest;
use super::render::item;
use crate::content;
use crate::names::{self, shown};

/// The ladder; nothing when the run is none.
pub(super) fn section(summary: &Summary, mut budget: Budget) -> Markup {
    let steps = ladder(summary);
    if steps.is_empty() {
        return Markup::default();
    }
    let (charts, undrawn) = budget.share(30_000).list(bars(summary, &steps));
    let (rungs, more) = budget.list(content::ladder(summary).iter().map(item));
    html! {
        section {
            h2 { "Ladder" }
            p.note {
                "Each rung against the one before it and against the first, by "
                code { (summary.run.primary_metric) } ". Ratios are the rung ÷ the other; the line "
                "is 1."
            }
            ul.lines { (rungs) }
            (rest(summary, more, "lines of this ladder"))
            div.charts { (charts) }
            (rest(summary, undrawn, "points of this ladder"))
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
