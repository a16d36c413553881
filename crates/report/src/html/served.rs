//! The pages of a ledger that is looked at in a browser: its runs, one of them, and refusals.

use findings::{ChartData, Summary};
use ledger::{RunKind, RunLine, RunState};
use maud::{Markup, html};

use super::body;
use super::budget::{clipped, fit};
use super::page::{Place, page, page_budget};
use super::render::within;
use crate::document::{Cell, Line, Role, Sheet, Table, number, words, wrapped};
use crate::number::{count, moment};
use crate::phrases::many;
use crate::run_line::sentence;

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

/// The runs of a ledger, newest first, at most 500 of them. `all` is in any order.
pub fn runs(ledger: &str, all: &[RunLine], listed: Listed) -> String {
    let of_kind = |run: &&RunLine| listed.kind.is_none_or(|kind| run.kind == kind);
    let mut newest: Vec<&RunLine> = all.iter().filter(of_kind).collect();
    // A merged run has a later number than its time.
    newest.sort_by(|a, b| (&b.started_at, b.id).cmp(&(&a.started_at, a.id)));
    let begin = listed.skipped.min(newest.len());
    let end = begin.saturating_add(RUNS_ON_A_PAGE).min(newest.len());
    let listed_here = &newest[begin..end];
    let (table, more) = within(&table(listed_here), &mut page_budget());
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

/// Each run is a link to its page.
fn table(shown: &[&RunLine]) -> Table {
    let way = |run: &RunLine| format!("/runs/{}", run.id);
    let found = |run: &RunLine| {
        let (role, words) = sentence(run);
        let line = Line::with_role(role, fit(&words, 1_000).into_owned());
        match &run.note {
            Some(note) => line.and(Role::Dim, format!(" {}", fit(note, 200))),
            None => line,
        }
    };
    Sheet::of("Runs and what came of them", shown.iter().copied())
        .with(number("run"), |run| Cell::from(run.id.to_string()).link(Some(way(run))))
        .with(wrapped("suite, and what came of it"), |run| {
            let title = fit(&run.title, 200).into_owned();
            Cell { note: found(run), ..Cell::from(title).link(Some(way(run))) }
        })
        .with(words("started"), |run| moment(&run.started_at))
        .with(words("asks"), |run| run.kind.word())
        .with(words("state"), |run| match run.state {
            RunState::Running => Cell::from("watch it").link(Some(format!("{}/live", way(run)))),
            _ => Cell::default(),
        })
        .with(number("points"), |run| count(run.points))
        .with(number("valid trials"), |run| {
            format!("{} of {}", count(run.valid_trials), count(run.trials))
        })
        .table()
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
