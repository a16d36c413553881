//! The pages of a ledger that is looked at in a browser: its runs, one of them, and refusals.

use ledger::{RunLine, RunState};
use maud::{Markup, html};

use super::{body, moment, page};
use crate::number::count;
use crate::sights::Sights;
use crate::summary::Summary;

/// The most runs that a page lists.
const RUNS_ON_A_PAGE: usize = 500;

/// A run that is being measured is read again so often, in seconds: seldom enough that looking at
/// it costs the host little.
const RELOAD_S: u32 = 5;

/// A run as [`html`](fn@super::html) shows it, with links to what is around it. The page loads
/// itself again as long as the run is being measured.
pub fn run_served(summary: &Summary, sights: &Sights) -> String {
    let reload_s = (summary.run.state == RunState::Running).then_some(RELOAD_S);
    let contents = html! {
        nav aria-label="Ledger" {
            a href="/" { "All runs" }
            a href=(format!("/runs/{}.json", summary.id)) { "This run as JSON" }
            @if reload_s.is_some() { span { "read again every " (RELOAD_S) " s until it ends" } }
        }
        (body(summary, sights))
    };
    page(&summary.suite.title, reload_s, &contents).into_string()
}

/// The runs of a ledger, newest first, at most 500 of them after the `skipped` newest.
/// `all` is in any order.
pub fn runs(ledger: &str, all: &[RunLine], skipped: usize) -> String {
    let mut newest: Vec<&RunLine> = all.iter().collect();
    // A run that was merged has a later number than its time says.
    newest.sort_by(|a, b| (&b.started_at, b.id).cmp(&(&a.started_at, a.id)));
    let begin = skipped.min(newest.len());
    let end = begin.saturating_add(RUNS_ON_A_PAGE).min(newest.len());
    let trials: u64 = all.iter().map(|run| run.trials).sum();
    let contents = html! {
        header {
            p.kind { span { "Loadline" } span { (ledger) } }
            h1 { "Runs" }
            p {
                (count(all.len() as u64)) " runs with " (count(trials)) " trials, newest first. "
                a href="/runs.json" { "As JSON" }
            }
        }
        main {
            @if all.is_empty() {
                p { "There is no run yet: " code { "loadline run SUITE" } " measures the first." }
            } @else {
                (table(&newest[begin..end]))
                nav aria-label="Pages" {
                    @if begin > 0 {
                        a href=(format!("/?skip={}", begin.saturating_sub(RUNS_ON_A_PAGE))) {
                            "Newer runs"
                        }
                    }
                    @if end < newest.len() {
                        a href=(format!("/?skip={end}")) { "Older runs" }
                    }
                    span { "runs " ((begin + 1).min(end)) " to " (end) " of " (newest.len()) }
                }
            }
        }
    };
    page("Runs of a ledger", None, &contents).into_string()
}

/// Each run is a link to its page; two of them can be picked to be shown side by side.
fn table(shown: &[&RunLine]) -> Markup {
    // The newest one and the one before it of the same suite are what is asked for most.
    let later = shown.first();
    let earlier = later.and_then(|later| shown[1..].iter().find(|one| one.title == later.title));
    let is = |picked: Option<&&RunLine>, run: &RunLine| picked.is_some_and(|one| one.id == run.id);
    html! {
        form action="/beside" {
            p { button { "Show the two picked runs side by side" } }
            div.wide tabindex="0" {
                table {
                    thead { tr {
                        th { "a" } th { "b" } th.n { "run" } th { "started" } th { "suite" }
                        th { "state" } th.n { "valid trials" } th { "note" }
                    } }
                    tbody { @for run in shown { tr {
                        td { (radio("a", run, is(earlier, run))) }
                        td { (radio("b", run, is(later, run))) }
                        td.n { a href=(format!("/runs/{}", run.id)) { (run.id) } }
                        td { time datetime=(run.started_at) { (moment(&run.started_at)) } }
                        td { a href=(format!("/runs/{}", run.id)) { (run.title) } }
                        td { (state(run.state)) }
                        td.n { (count(run.valid_trials)) " of " (count(run.trials)) }
                        td { (run.note.as_deref().unwrap_or_default()) }
                    } } }
                }
            }
        }
    }
}

fn radio(name: &str, run: &RunLine, checked: bool) -> Markup {
    let label = format!("run {} as {name}", run.id);
    html! {
        input type="radio" name=(name) value=(run.id) aria-label=(label) checked[checked] required;
    }
}

fn state(state: RunState) -> Markup {
    let class = match state {
        RunState::Finished => "word good",
        RunState::Running => "word",
        RunState::Interrupted => "word unsure",
        RunState::Failed => "word bad",
    };
    html! { span class=(class) { (state.word()) } }
}

/// A page that says why there is no other.
pub fn notice(title: &str, words: &str) -> String {
    let contents = html! {
        header { p.kind { span { "Loadline" } } h1 { (title) } }
        main { p { (words) } p { a href="/" { "All runs" } } }
    };
    page(title, None, &contents).into_string()
}
