//! The pages of a ledger that is looked at in a browser: its runs, one of them, and refusals.

use std::collections::HashMap;

use findings::{ChartData, Summary};
use ledger::{RunId, RunKind, RunLine, RunResult, RunState};
use maud::{Markup, html};

use super::body;
use super::budget::{clipped, fit};
use super::page::{self, Place, moment, page, page_budget};
use crate::number::count;
use crate::phrases::many;
use crate::run_line::sentence;
use crate::text::Role;

/// The most runs that a page lists.
const RUNS_ON_A_PAGE: usize = 500;

/// Reload interval of a list of runs, one of which is being measured, in seconds.
const RELOAD_S: u32 = 5;

/// Which runs of a ledger a page lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Listed {
    /// Only those that ask this.
    pub kind: Option<RunKind>,
    /// The number of newest runs that are skipped.
    pub skipped: usize,
}

/// A run as [`html`](fn@super::html) shows it, with links to the pages around it.
pub fn run_served(summary: &Summary, data: &ChartData) -> String {
    let id = summary.id;
    let contents = html! {
        (ledger_nav(None))
        nav aria-label="This run" {
            @if summary.run.state == RunState::Running {
                a href=(format!("/runs/{id}/live")) { "Watch it while it is measured" }
            }
            @if summary.points.len() == 1 { a href=(format!("/runs/{id}/points/1")) { "Trials" } }
            a href=(history_of(&fit(&summary.suite.title, 700))) { "History of its suite" }
            a href=(format!("/runs/{id}.json")) { "This run as JSON" }
        }
        (body(summary, data, &Place::Served))
    };
    page(&summary.suite.title, None, &contents).into_string()
}

/// The ways to every page that lists something; the one of `here` is no link.
pub(super) fn ledger_nav(here: Option<&str>) -> Markup {
    let pages = [
        ("/", "All runs"),
        ("/?kind=comparison", "Comparisons"),
        ("/?kind=ladder", "Ladders"),
        ("/?kind=capacity", "Capacity"),
        ("/history", "History"),
    ];
    html! {
        nav aria-label="Ledger" {
            @for (way, name) in pages {
                @if here == Some(name) { strong aria-current="page" { (name) } }
                @else { a href=(way) { (name) } }
            }
        }
    }
}

/// The address of a suite's history.
pub(super) fn history_of(title: &str) -> String {
    format!("/history?suite={}", encoded(title))
}

/// A text as a part of an address, by RFC 3986.
pub(super) fn encoded(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

/// What came of each run, by its number.
type Results = HashMap<RunId, RunResult>;

/// The runs of a ledger, newest first, at most 500 of them. `all` is in any order.
pub fn runs(ledger: &str, all: &[RunLine], results: &Results, listed: Listed) -> String {
    let of_kind = |run: &&RunLine| listed.kind.is_none_or(|kind| run.kind == kind);
    let mut newest: Vec<&RunLine> = all.iter().filter(of_kind).collect();
    // A merged run has a later number than its time.
    newest.sort_by(|a, b| (&b.started_at, b.id).cmp(&(&a.started_at, a.id)));
    let begin = listed.skipped.min(newest.len());
    let end = begin.saturating_add(RUNS_ON_A_PAGE).min(newest.len());
    let (table, more) = table(&newest[begin..end], results);
    let end = end - more;
    let trials: u64 = newest.iter().map(|run| run.trials).sum();
    let title = match listed.kind {
        None => "All runs",
        Some(RunKind::Sweep) => "Sweeps",
        Some(RunKind::Comparison) => "Comparisons",
        Some(RunKind::Ladder) => "Ladders",
        Some(RunKind::Capacity) => "Capacity",
    };
    let page_at = |skip: usize| match listed.kind {
        None => format!("/?skip={skip}"),
        Some(kind) => format!("/?kind={}&skip={skip}", kind.word()),
    };
    let is_running = |run: &&RunLine| run.state == RunState::Running;
    let reload_s = newest[begin..end].iter().any(is_running).then_some(RELOAD_S);
    let contents = html! {
        (ledger_nav(Some(title)))
        header {
            p.kind { span { "Loadline" } span { (clipped(ledger)) } }
            h1 { (title) }
            p {
                (many(newest.len(), "run")) " with " (many(trials as usize, "trial"))
                ", newest first. "
                a href="/runs.json" { "As JSON" }
            }
        }
        main {
            @if newest.is_empty() {
                p.answer.unsure {
                    "There is none yet: " code { (first_command(listed.kind)) } " makes the first."
                }
            } @else {
                (table)
                nav aria-label="Pages" {
                    @if begin > 0 {
                        a href=(page_at(begin.saturating_sub(RUNS_ON_A_PAGE))) { "Newer runs" }
                    }
                    @if end < newest.len() { a href=(page_at(end)) { "Older runs" } }
                    span { "runs " ((begin + 1).min(end)) " to " (end) " of " (newest.len()) }
                }
            }
        }
    };
    page("Runs of a ledger", reload_s, &contents).into_string()
}

/// The command that makes a run of this kind.
fn first_command(kind: Option<RunKind>) -> &'static str {
    match kind {
        None | Some(RunKind::Sweep) => "loadline run SUITE",
        Some(RunKind::Comparison) => "loadline compare SUITE",
        Some(RunKind::Ladder) => "loadline ladder SUITE",
        Some(RunKind::Capacity) => "loadline capacity SUITE",
    }
}

const COLUMNS: &[(&str, &str)] = &[
    ("n", "run"),
    ("", "suite, and what came of it"),
    ("", "started"),
    ("", "asks"),
    ("n", "points"),
    ("n", "valid trials"),
    ("", "a"),
    ("", "b"),
];

/// Each run is a link to its page; two of them can be picked to be shown side by side. Also how
/// many of them have no room.
fn table(shown: &[&RunLine], results: &Results) -> (Markup, usize) {
    // The newest run and the one before it of the same suite are requested most.
    let later = shown.first();
    let earlier = later.and_then(|later| shown[1..].iter().find(|one| one.title == later.title));
    let is = |picked: Option<&&RunLine>, run: &RunLine| picked.is_some_and(|one| one.id == run.id);
    let row = |run: &&RunLine| line(run, results.get(&run.id), (is(earlier, run), is(later, run)));
    let (rows, more) = page_budget().list(shown.iter().map(row));
    let table = html! {
        form action="/beside" {
            (page::table("Runs and what came of them", COLUMNS, &html! { tbody { (rows) } }))
            p { button { "Show the two picked runs side by side" } }
        }
    };
    (table, more)
}

fn line(run: &RunLine, result: Option<&RunResult>, (earlier, later): (bool, bool)) -> Markup {
    let way = format!("/runs/{}", run.id);
    let (role, words) = sentence(run, result);
    let class = match role {
        Role::Good => "sentence good",
        Role::Bad => "sentence bad",
        Role::Unsure => "sentence unsure",
        Role::Strong | Role::Dim => "sentence",
    };
    html! { tr {
        th.n scope="row" { a href=(way) { (run.id) } }
        td.wrap {
            a href=(way) { (fit(&run.title, 200)) }
            p class=(class) {
                (fit(&words, 600))
                @if run.state == RunState::Running {
                    " " a href=(format!("/runs/{}/live", run.id)) { "Watch it" }
                }
            }
            @if let Some(note) = &run.note { p.note { (fit(note, 200)) } }
        }
        td { time datetime=(clipped(&run.started_at)) { (clipped(&moment(&run.started_at))) } }
        td { (run.kind.word()) }
        td.n { (count(run.points)) }
        td.n { (count(run.valid_trials)) " of " (count(run.trials)) }
        td { (radio("a", run, earlier)) }
        td { (radio("b", run, later)) }
    } }
}

fn radio(name: &str, run: &RunLine, checked: bool) -> Markup {
    let label = format!("run {} as {name}", run.id);
    html! {
        input type="radio" name=(name) value=(run.id) aria-label=(label) checked[checked] required;
    }
}

pub(super) fn state(state: RunState) -> Markup {
    let class = match state {
        // That it ended says nothing about what it found.
        RunState::Finished | RunState::Running => "word",
        RunState::Interrupted => "word unsure",
        RunState::Failed => "word bad",
    };
    html! { span class=(class) { (state.word()) } }
}

/// A page with an error.
pub fn notice(title: &str, said: &str) -> String {
    let contents = html! {
        (ledger_nav(None))
        header { p.kind { span { "Loadline" } } h1 { (clipped(title)) } }
        main { p { (fit(said, 4_000)) } }
    };
    page(title, None, &contents).into_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_address_holds_any_title() {
        assert_eq!(super::encoded("a b&c=é/~"), "a%20b%26c%3D%C3%A9%2F~");
    }
}
