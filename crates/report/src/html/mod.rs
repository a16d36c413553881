//! A run as one HTML file: no script, nothing fetched, so that it opens offline and in ten years;
//! and the pages around it of a ledger that is looked at in a browser.
//!
//! The sentence comes first, then what carries it. Everything is of [`Summary`] and [`Sights`];
//! what decides was decided there. A page stays under [`LIMIT_BYTES`]: what would not fit is left
//! out, and the page says so.
//!
//! | file | what it draws |
//! |---|---|
//! | `chart` | lines over two axes, as SVG |
//! | `point` | a point: its targets, verdicts and distributions |
//! | `sweep` | figures against swept values |
//! | `timeline` | the run on one clock: rates, latencies, sensors |
//! | `about` | host, build, and how to run it again |
//! | `served` | the runs of a ledger, and a run with the way back to them |
//! | `beside` | two runs side by side |

mod about;
mod beside;
mod chart;
mod point;
mod served;
mod sweep;
mod timeline;

use ledger::RunState;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::conclusion::conclusion;
use crate::outcome::outcome;
use crate::sights::Sights;
use crate::summary::Summary;

pub use beside::beside;
pub use served::{notice, run_served, runs};

/// The longest a page may be.
pub const LIMIT_BYTES: usize = 500_000;

/// What points in full may take of it, and what the timeline may.
const POINTS_LIMIT_BYTES: usize = 280_000;
const TIMELINE_LIMIT_BYTES: usize = 150_000;

const STYLE: &str = include_str!("style.css");

/// The run as one HTML file.
pub fn html(summary: &Summary, sights: &Sights) -> String {
    page(&summary.suite.title, None, &body(summary, sights)).into_string()
}

/// A page with this title around these contents, which loads itself again after so many seconds.
fn page(title: &str, reload_s: Option<u32>, contents: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                @if let Some(seconds) = reload_s { meta http-equiv="refresh" content=(seconds); }
                // Without an icon of its own, a browser asks the server for one.
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { (contents) }
        }
    }
}

fn body(summary: &Summary, sights: &Sights) -> Markup {
    let timeline = timeline::section(summary, sights, TIMELINE_LIMIT_BYTES);
    let sweep = sweep::section(summary);
    let several = summary.points.len() > 1;
    let (points, in_full) = points(summary, sights);
    html! {
        (head(summary))
        nav aria-label="Sections" {
            @if several { a href="#points" { "Points" } }
            @if !sweep.0.is_empty() { a href="#sweep" { "Against swept values" } }
            a href="#detail" { @if several { "Each point" } @else { "Figures" } }
            @if !timeline.0.is_empty() { a href="#time" { "Over time" } }
            a href="#about" { "Host and suite" }
        }
        main {
            @if several { (point::overview(summary, in_full)) }
            (sweep)
            section #detail {
                @if several { h2 { "Each point" } }
                (points)
            }
            (timeline)
            (about::section(summary))
        }
    }
}

/// The points in full, as many as fit, and how many those are.
fn points(summary: &Summary, sights: &Sights) -> (Markup, usize) {
    let mut out = String::new();
    let mut shown = 0;
    for index in 0..summary.points.len() {
        let article = point::article(summary, sights, index).into_string();
        if shown > 0 && out.len() + article.len() > POINTS_LIMIT_BYTES {
            break;
        }
        out.push_str(&article);
        shown += 1;
    }
    let left_out = summary.points.len() - shown;
    let page = html! {
        (PreEscaped(out))
        @if left_out > 0 {
            p.note {
                (left_out) " more points have no room in one page: "
                code { "loadline report " (summary.id) } " shows all of them."
            }
        }
    };
    (page, shown)
}

fn head(summary: &Summary) -> Markup {
    let class = match outcome(summary).exit_code(false) {
        3 => "answer bad",
        4 => "answer unsure",
        _ => "answer good",
    };
    let state = match summary.run.state {
        RunState::Finished => "",
        state => state.word(),
    };
    html! {
        header {
            p.kind {
                span { "Loadline" } span { "run " (summary.id) }
                time datetime=(summary.run.started_at) { (moment(&summary.run.started_at)) }
                @if !state.is_empty() { strong { (state) } }
            }
            h1 { (summary.suite.title) }
            div class=(class) {
                @for line in conclusion(summary) { p { (line) } }
            }
            dl.said {
                @for claim in &summary.suite.claims { dt { "claim" } dd { (claim) } }
                @for one in &summary.suite.compromises { dt { "compromise" } dd { (one) } }
                @if let Some(note) = &summary.run.note { dt { "note" } dd { (note) } }
                @for target in &summary.targets {
                    @if let Some(why) = &target.skipped {
                        dt { "skipped" } dd { (target.name) ": " (why) }
                    }
                }
            }
        }
    }
}

/// `2026-01-02T03:04:05.678Z` as people read it: `2026-01-02 03:04 UTC`.
fn moment(rfc3339: &str) -> String {
    match (rfc3339.get(..10), rfc3339.get(11..16), rfc3339.ends_with('Z')) {
        (Some(day), Some(minute), true) => format!("{day} {minute} UTC"),
        _ => rfc3339.to_owned(),
    }
}
