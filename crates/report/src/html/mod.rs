//! A run as one HTML file: no script, nothing fetched, so that it opens offline and in ten years;
//! and the pages around it of a ledger that is looked at in a browser.
//!
//! The conclusion comes first, then its evidence. Everything comes from [`Summary`] and
//! [`ChartData`]; nothing is decided here. No page is longer than [`LIMIT_BYTES`]: each part of it
//! has its budget, and what doesn't fit is named with the command that shows it.
//!
//! | file | what it draws |
//! |---|---|
//! | `page`, `budget` | the frame of a page, and the bytes that its parts may take |
//! | `chart`, `axis`, `bars` | lines over two axes and bars with intervals, as SVG |
//! | `render` | lines and tables of a document |
//! | `point` | a point: its targets and verdicts |
//! | `spread` | the latency distributions of a point |
//! | `cost` | the cost of an operation, beside the floors of the host |
//! | `sweep` | figures against swept values |
//! | `ladder`, `capacity` | the rungs of a ladder, and a search for the highest load |
//! | `timeline` | the run on one clock: rates, latencies, sensors |
//! | `about` | host, build, and the command that repeats the run |
//! | `served` | the runs of a ledger, and a run with the way back to them |
//! | `trials` | the trials of a point |
//! | `history` | all runs of a suite |
//! | `live` | a run that is being measured |

mod about;
mod axis;
mod bars;
mod budget;
mod capacity;
mod chart;
mod cost;
mod history;
mod ladder;
mod live;
mod page;
mod point;
mod render;
mod served;
mod spread;
mod sweep;
mod timeline;
mod trials;

use findings::{ChartData, Summary, outcome};
use ledger::RunState;
use maud::{Markup, PreEscaped, html};

use crate::conclusion::conclusion;
use crate::content;
use crate::number::moment;
use budget::{Budget, clipped, fit};
use page::{Place, page, page_budget, rest};

pub use history::{history, suites};
pub use live::{Now, TargetNow, live};
pub use page::{LIMIT_BYTES, MAX_POINTS_IN_FULL};
pub use served::{Listed, notice, run_served, runs};
pub use trials::trials;

/// The budgets of the parts of a run's page; its points get the rest, and what they leave goes to
/// the charts over time.
const HEAD_BYTES: usize = 30_000;
const OVERVIEW_BYTES: usize = 45_000;
const VERDICTS_BYTES: usize = 60_000;
const SWEEP_BYTES: usize = 120_000;
const TIMELINE_BYTES: usize = 80_000;
const ABOUT_BYTES: usize = 50_000;

/// The run as one HTML file.
pub fn html(summary: &Summary, data: &ChartData) -> String {
    page(&summary.suite.title, None, &body(summary, data, &Place::Alone)).into_string()
}

fn body(summary: &Summary, data: &ChartData, place: &Place) -> Markup {
    let mut budget = page_budget();
    let report = format!("loadline report {}", summary.id);
    let mut settle = |part: Markup, what: &str| {
        if part.0.is_empty() {
            return part;
        }
        budget.settle(part, &format!("{what} have no room in one page: {report} shows them."))
    };
    let head = settle(head(summary, &Budget::of(HEAD_BYTES)), "Title and claims");
    let about = settle(about::section(summary, Budget::of(ABOUT_BYTES)), "Host and suite");
    let several = summary.points.len() > 1;
    let verdicts = html! {
        (capacity::section(summary))
        (ladder::section(summary, Budget::of(VERDICTS_BYTES)))
    };
    let verdicts = settle(verdicts, "Verdicts");
    let sweep = settle(sweep::section(summary, Budget::of(SWEEP_BYTES)), "Charts of swept values");
    let overview = budget.share(OVERVIEW_BYTES);
    let behind = budget.left().saturating_sub(OVERVIEW_BYTES);
    let (points, in_full) =
        points(summary, data, Budget::of(behind.saturating_sub(TIMELINE_BYTES)));
    // The sensors get whatever is left.
    let timeline = Budget::of(behind.saturating_sub(points.0.len()));
    let timeline = timeline::section(summary, data, timeline);
    let overview = match several {
        true => point::overview(summary, in_full, overview, place),
        false => Markup::default(),
    };
    html! {
        (head)
        nav aria-label="Sections" {
            @if !verdicts.0.is_empty() { a href="#verdicts" { "Verdicts" } }
            @if several { a href="#points" { "Points" } }
            @if !sweep.0.is_empty() { a href="#sweep" { "Against swept values" } }
            a href="#detail" { @if several { "Each point" } @else { "Figures" } }
            @if !timeline.0.is_empty() { a href="#time" { "Over time" } }
            a href="#about" { "Host and suite" }
        }
        main {
            @if !verdicts.0.is_empty() { div #verdicts { (verdicts) } }
            (overview)
            @if !sweep.0.is_empty() { div #sweep { (sweep) } }
            section #detail {
                @if several { h2 { "Each point" } }
                @if summary.points.is_empty() {
                    p { "Nothing was measured: the run ended before its first point began." }
                }
                (points)
            }
            @if !timeline.0.is_empty() { div #time { (timeline) } }
            div #about { (about) }
        }
    }
}

/// The points in full, as many as fit, and their number.
fn points(summary: &Summary, data: &ChartData, mut budget: Budget) -> (Markup, usize) {
    let mut out = String::new();
    let mut shown = 0;
    for index in 0..summary.points.len().min(MAX_POINTS_IN_FULL) {
        let article = point::article(summary, data, index);
        if !budget.fits(&article) {
            break;
        }
        out.push_str(&article.0);
        shown += 1;
    }
    let left_out = summary.points.len() - shown;
    let page = html! {
        (PreEscaped(out))
        @if left_out > 0 {
            p.note {
                // What is marked in charts leads here instead.
                @for index in shown..summary.points.len().min(MAX_POINTS_IN_FULL) {
                    span #(format!("point-{index}")) {}
                }
                (left_out) " more points have no room in one page: "
                code { "loadline report " (summary.id) } " shows all of them."
            }
        }
    };
    (page, shown)
}

fn head(summary: &Summary, budget: &Budget) -> Markup {
    // What is worse is no failure, but nothing good either.
    let class = match (summary.run.state, outcome(summary).exit_code(true)) {
        (RunState::Failed, _) | (_, 1 | 3) => "answer bad",
        (RunState::Interrupted, _) | (_, 4) => "answer unsure",
        (RunState::Running, _) => "answer",
        (RunState::Finished, _) => "answer good",
    };
    let state = match summary.run.state {
        RunState::Finished => "",
        state => state.word(),
    };
    let sentences = conclusion(summary);
    let sentences = sentences.iter().map(|line| html! { p { (fit(line, 2_000)) } });
    let (sentences, more) = budget.share(12_000).list(sentences);
    let remark = |(name, text): (&str, String)| html! { dt { (name) } dd { (fit(&text, 2_000)) } };
    let remarks = content::remarks(summary).into_iter().map(remark);
    let (said, unsaid) = budget.share(14_000).list(remarks);
    html! {
        header {
            p.kind {
                span { "Loadline" } span { "run " (summary.id) }
                time datetime=(clipped(&summary.run.started_at)) {
                    (clipped(&moment(&summary.run.started_at)))
                }
                @if !state.is_empty() { strong { (state) } }
            }
            h1 { (clipped(&summary.suite.title)) }
            div class=(class) { (sentences) (rest(summary, more, "sentences")) }
            dl.said { (said) }
            (rest(summary, unsaid, "remarks"))
        }
    }
}
