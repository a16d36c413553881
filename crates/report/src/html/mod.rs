//! A run as one HTML file: no script, nothing fetched, so that it opens offline and in ten years;
//! and the pages around it of a ledger that is looked at in a browser.
//!
//! The sentence comes first, then what carries it. Everything is of [`Summary`] and [`Sights`];
//! what decides was decided there. No page is longer than [`LIMIT_BYTES`]: each part of it has its
//! share, and what has no room is named with the command that shows it.
//!
//! | file | what it draws |
//! |---|---|
//! | `room` | how much of a part has room |
//! | `chart`, `bars` | lines over two axes and bars with intervals, as SVG |
//! | `point` | a point: its targets and what is said of them |
//! | `spread` | how the latencies of a point lie |
//! | `cost` | what an operation costs, beside what the host can't go below |
//! | `sweep` | figures against swept values |
//! | `ladder`, `capacity` | the rungs of a ladder, and a search for the highest load |
//! | `timeline` | the run on one clock: rates, latencies, sensors |
//! | `about` | host, build, and how to run it again |
//! | `served` | the runs of a ledger, and a run with the way back to them |
//! | `trials` | the trials of a point |
//! | `beside` | two runs side by side |
//! | `history` | all runs of a suite |
//! | `live` | a run that is being measured |

mod about;
mod bars;
mod beside;
mod capacity;
mod chart;
mod cost;
mod history;
mod ladder;
mod live;
mod point;
mod room;
mod served;
mod spread;
mod sweep;
mod timeline;
mod trials;

use ledger::RunState;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::conclusion::conclusion;
use crate::outcome::outcome;
use crate::sights::Sights;
use crate::summary::Summary;
use room::{Room, fit, words};

pub use beside::beside;
pub use history::{history, suites};
pub use live::live;
pub use served::{Listed, notice, run_served, runs};
pub use trials::trials;

/// The longest a page may be.
pub const LIMIT_BYTES: usize = 500_000;

/// The most points that a page shows in full, and of which it needs more than trials.
pub const POINTS_IN_FULL_MOST: usize = 60;

/// What the parts of a run's page may take of it at most; its points get what they leave.
const HEAD_BYTES: usize = 30_000;
const OVERVIEW_BYTES: usize = 60_000;
const VERDICTS_BYTES: usize = 60_000;
const SWEEP_BYTES: usize = 80_000;
const TIMELINE_BYTES: usize = 120_000;
const ABOUT_BYTES: usize = 50_000;

/// What stands around the parts: the links between them, and those of a served page.
const AROUND_BYTES: usize = 8_000;

const STYLE: &str = include_str!("style.css");

/// The run as one HTML file.
pub fn html(summary: &Summary, sights: &Sights) -> String {
    page(&summary.suite.title, None, &body(summary, sights, &Place::Alone)).into_string()
}

/// Where a run is shown, which is where its links lead.
enum Place {
    /// In a file of its own.
    Alone,
    /// Among the other runs of a ledger.
    Served,
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
                title { (words(title)) }
                style { (PreEscaped(STYLE)) }
            }
            body { (contents) }
        }
    }
}

/// The room of what stands in a page's body.
fn room_of_a_page() -> Room {
    let longest_title = "x".repeat(room::WORDS_BYTES + 10);
    let frame = page(&longest_title, Some(9_999), &Markup::default()).into_string().len();
    Room::of(LIMIT_BYTES - frame - AROUND_BYTES)
}

fn body(summary: &Summary, sights: &Sights, place: &Place) -> Markup {
    let mut room = room_of_a_page();
    let report = format!("loadline report {}", summary.id);
    let mut settle = |part: Markup, what: &str| {
        if part.0.is_empty() {
            return part;
        }
        room.settle(part, &format!("{what} have no room in one page: {report} shows them."))
    };
    let head = settle(head(summary, &Room::of(HEAD_BYTES)), "Title and claims");
    let about = settle(about::section(summary, Room::of(ABOUT_BYTES)), "Host and suite");
    let several = summary.points.len() > 1;
    let verdicts = html! {
        (capacity::section(summary))
        (ladder::section(summary, Room::of(VERDICTS_BYTES)))
    };
    let verdicts = settle(verdicts, "Verdicts");
    let sweep = settle(sweep::section(summary, Room::of(SWEEP_BYTES)), "Charts of swept values");
    let timeline =
        settle(timeline::section(summary, sights, Room::of(TIMELINE_BYTES)), "Charts over time");
    let overview = room.share(OVERVIEW_BYTES);
    let (points, in_full) =
        points(summary, sights, Room::of(room.left().saturating_sub(OVERVIEW_BYTES)));
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
                (points)
            }
            @if !timeline.0.is_empty() { div #time { (timeline) } }
            div #about { (about) }
        }
    }
}

/// The points in full, as many as fit, and how many those are.
fn points(summary: &Summary, sights: &Sights, mut room: Room) -> (Markup, usize) {
    let mut out = String::new();
    let mut shown = 0;
    for index in 0..summary.points.len().min(POINTS_IN_FULL_MOST) {
        // A point that says very much is shown without its text before it is left out.
        let article = [true, false].into_iter().find_map(|with_text| {
            let article = point::article(summary, sights, index, with_text);
            room.fits(&article).then_some(article)
        });
        let Some(article) = article else { break };
        out.push_str(&article.0);
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

fn head(summary: &Summary, room: &Room) -> Markup {
    let class = match outcome(summary).exit_code(false) {
        3 => "answer bad",
        4 => "answer unsure",
        _ => "answer good",
    };
    let state = match summary.run.state {
        RunState::Finished => "",
        state => state.word(),
    };
    let sentences = conclusion(summary);
    let sentences = sentences.iter().map(|line| html! { p { (fit(line, 2_000)) } });
    let (sentences, more) = room.share(12_000).list(sentences);
    let (said, unsaid) = room.share(14_000).list(said(summary));
    html! {
        header {
            p.kind {
                span { "Loadline" } span { "run " (summary.id) }
                time datetime=(words(&summary.run.started_at)) {
                    (words(&moment(&summary.run.started_at)))
                }
                @if !state.is_empty() { strong { (state) } }
            }
            h1 { (words(&summary.suite.title)) }
            div class=(class) { (sentences) (rest(summary, more, "sentences")) }
            dl.said { (said) }
            (rest(summary, unsaid, "remarks"))
        }
    }
}

/// Claims, compromises, the note, and what was skipped.
fn said(summary: &Summary) -> Vec<Markup> {
    let suite = &summary.suite;
    let pair = |name: &str, text: &str| html! { dt { (name) } dd { (fit(text, 2_000)) } };
    let mut all: Vec<Markup> = suite.claims.iter().map(|one| pair("claim", one)).collect();
    all.extend(suite.compromises.iter().map(|one| pair("compromise", one)));
    all.extend(summary.run.note.iter().map(|one| pair("note", one)));
    all.extend(summary.targets.iter().filter_map(|target| {
        let why = target.skipped.as_ref()?;
        Some(pair("skipped", &format!("{}: {why}", target.name)))
    }));
    all
}

/// That more has no room, and what shows it; nothing when there is no more.
fn rest(summary: &Summary, more: usize, what: &str) -> Markup {
    html! {
        @if more > 0 {
            p.note {
                (more) " more " (what) " have no room here: "
                code { "loadline report " (summary.id) } " has all of it."
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
