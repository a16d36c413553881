//! A run that is being measured: its current point, and each target's figures so far. The page
//! loads itself again; each look reads trials only, no distribution and no sensor.

use findings::{PointProgress, Progress, TargetProgress};
use ledger::RunState;
use maud::{Markup, html};

use super::budget::{clipped, fit};
use super::chart::{Axis, Chart, LOOKS, Line, Scale};
use super::page::{moment, page, page_budget};
use super::served::{ledger_nav, state};
use crate::number::{count, duration, percent, rate};
use crate::phrases::{many, mean_of};

/// Reload interval of the page, in seconds.
const RELOAD_S: u32 = 2;

/// The most trials of a target that are drawn: the latest ones.
const MAX_TRIALS_DRAWN: usize = 200;

/// A run that is being measured, or how it ended.
pub fn live(progress: &Progress) -> String {
    let so_far = &progress.so_far;
    let is_running = so_far.run.state == RunState::Running;
    let report = format!("/runs/{}", so_far.id);
    let rows = progress.points.iter().enumerate().map(|(at, one)| point(progress, at, one));
    let (rows, more) = page_budget().share(400_000).list(rows);
    let contents = html! {
        (ledger_nav(None))
        nav aria-label="This run" {
            a href=(report) { "Its report so far" }
            a href=(format!("{report}/live.json")) { "As JSON" }
            @if is_running { span { "read again every " (RELOAD_S) " s" } }
        }
        header {
            p.kind {
                span { "Loadline" } span { "run " (so_far.id) }
                span { "since " (clipped(&moment(&so_far.run.started_at))) }
                (state(so_far.run.state))
            }
            h1 { (clipped(&so_far.title)) }
            div.answer { p { (now(progress)) } }
        }
        main {
            div.charts { (rates(progress)) }
            div.wide tabindex="0" { table {
                thead { tr {
                    th { "point" } th { "target" } th.n { "valid" } th.n { "rate" }
                    th.n { "p50" } th.n { "p99" } th.n { "wrong" } th.n { "missing" }
                    th.n { "generator busy" }
                } }
                (rows)
            } }
            @if more > 0 { p.note { (more) " more points have no room here." } }
            @if is_running {
                p.note {
                    "A round is shown here once it has ended"
                    @if let Some(ns) = progress.round_ns {
                        ", which takes about " (duration(ns)) " from its start"
                    }
                    ": the ledger holds none of it before. The terminal of the run moves once a "
                    "second."
                }
            }
            p.note {
                "Rates are means over valid rounds, or over disturbed ones while none is valid; "
                "latencies are medians over the same. Verdicts wait for the end."
            }
        }
    };
    page(&so_far.title, is_running.then_some(RELOAD_S), &contents).into_string()
}

/// Where the run is, in a sentence.
fn now(progress: &Progress) -> Markup {
    let begun = progress.points.iter().filter(|point| point.rounds > 0).count();
    let points = &progress.so_far.points;
    let rounds: usize = progress.points.iter().map(|point| point.rounds).sum();
    html! {
        @match (progress.now, progress.so_far.run.state) {
            (Some((at, round)), _) => {
                "Measuring round " (round) " of " strong { (clipped(&points[at].1.label)) } ". "
            }
            (None, RunState::Running) => { "Between two rounds. " }
            (None, state) => { "The run is " (state.word()) ". " }
        }
        (many(rounds, "round")) " so far; " (begun) " of " (many(points.len(), "point")) " begun."
    }
}

fn point(progress: &Progress, at: usize, one: &PointProgress) -> Markup {
    let (_, row) = &progress.so_far.points[at];
    let is_now = progress.now.is_some_and(|(point, _)| point == at);
    let shown: Vec<(usize, &TargetProgress)> = one
        .targets
        .iter()
        .enumerate()
        .filter(|(target, _)| progress.so_far.targets[*target].1.skipped.is_none())
        .collect();
    html! {
        tbody { @for (row_at, (target, own)) in shown.iter().enumerate() { tr {
            @if row_at == 0 {
                th scope="row" rowspan=(shown.len()) {
                    (clipped(&row.label))
                    p.note {
                        (many(one.rounds, "round"))
                        @if is_now { " · " span class="word unsure" { "being measured" } }
                    }
                }
            }
            (cells(progress, *target, own))
        } } }
    }
}

fn cells(progress: &Progress, target: usize, own: &TargetProgress) -> Markup {
    let trials = own.valid + own.disturbed + own.invalid;
    let spoiled = own.disturbed + own.invalid > 0;
    let none = || "–".to_owned();
    let mean = own.rate(progress.so_far.run.confidence).map(|one| mean_of(&one, rate));
    html! {
        td {
            span class=(format!("dot s{}", target % LOOKS)) {}
            (clipped(&progress.so_far.targets[target].1.name))
        }
        td.n {
            (own.valid) " of " (trials)
            @if let Some(reason) = own.reason.as_ref().filter(|_| spoiled) {
                p.note.wrap { (fit(reason, 200)) }
            }
        }
        td.n { (mean.unwrap_or_else(none)) }
        @for ns in [own.p50_ns(), own.p99_ns()] { td.n { (ns.map_or_else(none, duration)) } }
        td.n {
            @if own.wrong > 0 { span class="word bad" { (count(own.wrong)) } }
            @else { (count(own.wrong)) }
            " of " (count(own.operations))
        }
        td.n { (count(own.missing)) }
        td.n { (own.generator_busy.map_or_else(none, percent)) }
    }
}

/// The rate of each trial when it ended.
fn rates(progress: &Progress) -> Markup {
    let lines = progress.rates.iter().enumerate().map(|(target, all)| Line {
        name: progress.so_far.targets[target].1.name.clone(),
        look: target,
        marked: true,
        points: all[all.len().saturating_sub(MAX_TRIALS_DRAWN)..]
            .iter()
            .copied()
            .map(Into::into)
            .collect(),
    });
    Chart {
        title: "Rate of each round".to_owned(),
        x: Axis { label: "seconds since the run started".to_owned(), ..Axis::default() },
        y: Axis { label: "rate".to_owned(), scale: Scale::FromZero, show: rate, ..Axis::default() },
        lines: lines.collect(),
        ..Chart::default()
    }
    .draw()
}
