//! A run that is being measured: its current second, and each target's figures so far. The page
//! loads itself again; each look reads trials only, no distribution and no sensor.

use findings::{PointProgress, Progress, TargetProgress};
use ledger::{RunState, Validity};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::budget::{clipped, fit};
use super::chart::{Axis, Chart, Line as Curve, Scale};
use super::page::{page, page_budget};
use super::render::within;
use super::served::{ledger_nav, state};
use crate::causes::validity_note;
use crate::document::{Cell, Drawing, Line, Role, Sheet, Table, number, words, wrapped};
use crate::number::{count, duration, moment, percent, plain, rate};
use crate::phrases::{many, mean_of};

/// Reload interval of the page, in seconds.
const RELOAD_S: u32 = 1;

/// The most targets and their latest rates that are shown of this second.
const MAX_TARGETS_NOW: usize = 60;
const RATES_DRAWN: usize = 48;
const NOW_BYTES: usize = 60_000;

/// The most trials of a target that are drawn: the latest ones.
const MAX_TRIALS_DRAWN: usize = 200;

/// What a run does this second, as its own process tells it: the ledger doesn't have it before the
/// round ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Now {
    /// The label of the point.
    pub point: String,
    /// The round, from 1; 0 before the first.
    pub round: u32,
    /// What is done, and with which target.
    pub activity: String,
    /// The part of the planned rounds that is done, from 0 to 1.
    pub done: f64,
    /// The seconds that are left, as far as it is known.
    pub left_s: Option<f64>,
    /// The targets that are measured, in the suite's order.
    pub targets: Vec<TargetNow>,
}

/// One target in [`Now`]. Its figures stay from round to round.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetNow {
    /// Its place in the suite.
    pub target: usize,
    /// Its rate in the last slice or second.
    pub rate_per_s: Option<f64>,
    /// The rates of the last slices or seconds, the latest last.
    pub rates: Vec<f64>,
    /// Its median latency over the rounds of the point, in ns.
    pub p50_ns: Option<f64>,
    /// The 99th percentile of the same.
    pub p99_ns: Option<f64>,
    /// Wrong answers of the run.
    pub wrong: u64,
    /// Operations that the target refused.
    pub refused: u64,
    /// Answers that never came.
    pub missing: u64,
    /// The cores that it uses.
    pub cores: Option<f64>,
    /// Its valid trials.
    pub valid: u32,
    /// All its trials.
    pub trials: u32,
}

/// A run that is being measured, or how it ended; `now` is what its process tells.
pub fn live(progress: &Progress, now: Option<&Now>) -> String {
    let so_far = &progress.so_far;
    let is_running = so_far.run.state == RunState::Running;
    let report = format!("/runs/{}", so_far.id);
    let (ended, more) = within(&ended(progress), &mut page_budget().share(400_000));
    let contents = html! {
        (ledger_nav(None))
        nav aria-label="This run" {
            a href=(report) { "Its report so far" }
            a href=(format!("{report}/live.json")) { "As JSON" }
            @if is_running { span { "read again every second" } }
        }
        header {
            p.kind {
                span { "Loadline" } span { "run " (so_far.id) }
                span { "since " (clipped(&moment(&so_far.run.started_at))) }
                (state(so_far.run.state))
            }
            h1 { (clipped(&so_far.title)) }
            div.answer { p { (place(progress)) } @if let Some(now) = now { (bar(now)) } }
        }
        main {
            @if let Some(now) = now { (this_second(progress, now)) }
            @else if is_running && progress.points.iter().all(|point| point.rounds == 0) {
                p { "No round has ended yet, so there is nothing to show but where the run is." }
            }
            div.charts { (rates(progress)) }
            (ended)
            @if more > 0 { p.note { (more) " more targets of points have no room here." } }
            @if is_running {
                p.note {
                    "A round stands in this table once it has ended"
                    @if let Some(ns) = progress.round_ns.filter(|ns| *ns > 0.0) {
                        ", which takes about " (duration(ns)) " from its start"
                    }
                    ": the ledger holds none of it before."
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
fn place(progress: &Progress) -> Markup {
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

/// How much of the run is done, and what it does.
fn bar(now: &Now) -> Markup {
    let done = now.done.clamp(0.0, 1.0);
    html! {
        progress max="1" value=(format!("{done:.3}")) aria-label="done" {}
        p.note {
            (percent(done)) " · " (clipped(&now.activity))
            @if let Some(left) = now.left_s { " · " (duration(left * 1e9)) " left" }
        }
    }
}

/// Every target's figures of this second.
fn this_second(progress: &Progress, now: &Now) -> Markup {
    let rates = || now.targets.iter().flat_map(|one| &one.rates).copied();
    let most = rates().filter(|rate| rate.is_finite()).fold(f64::MIN_POSITIVE, f64::max);
    let lately = |one: &&TargetNow| {
        let rates = &one.rates[one.rates.len().saturating_sub(RATES_DRAWN)..];
        let (palette_index, words) = (one.target, "the latest rates".to_owned());
        let heights = rates.iter().map(|rate| rate / most).collect();
        Line::default().drawn(Some(Drawing::Bars { palette_index, heights, words }))
    };
    let caption = "This second; latencies are of all rounds of the point so far";
    let sheet = Sheet::of(caption, now.targets.iter().take(MAX_TARGETS_NOW))
        .with(words("target"), |one| name(progress, one.target))
        .with(number("rate"), |one| {
            one.rate_per_s
                .map_or_else(Line::default, |one| Line::with_role(Role::Strong, rate(one)))
        })
        .with(words("lately"), lately)
        .with(number("p50"), |one| one.p50_ns.map(duration))
        .with(number("p99"), |one| one.p99_ns.map(duration))
        .with(number("wrong"), |one| wrong(one.wrong))
        .with(number("refused"), |one| count(one.refused))
        .with(number("missing"), |one| count(one.missing))
        .with(number("server cores"), |one| one.cores.map(|cores| format!("{cores:.2}")))
        .with(number("valid trials"), |one| format!("{} of {}", one.valid, one.trials));
    within(&sheet.table(), &mut page_budget().share(NOW_BYTES)).0
}

fn name(progress: &Progress, target: usize) -> Cell {
    let name = progress.so_far.targets.get(target).map_or("", |(_, row)| &*row.name);
    Cell::from(clipped(name).into_owned()).of_target(target)
}

fn wrong(answers: u64) -> Line {
    Line::with_role(if answers > 0 { Role::Bad } else { Role::Plain }, count(answers))
}

/// Each target's figures over the rounds of each point that have ended.
fn ended(progress: &Progress) -> Table {
    type Of<'a> = (usize, &'a PointProgress, usize, &'a TargetProgress);
    let all = progress.points.iter().enumerate().flat_map(|(at, point)| {
        let targets = point.targets.iter().enumerate();
        targets.map(move |(target, own)| (at, point, target, own))
    });
    let measured =
        all.filter(|(_, _, target, _)| progress.so_far.targets[*target].1.skipped.is_none());
    Sheet::of("Rounds that have ended", measured)
        .with(wrapped("point"), |(at, point, target, _): &Of<'_>| {
            let label = clipped(&progress.so_far.points[*at].1.label).into_owned();
            let is_now = progress.now.is_some_and(|(now, _)| now == *at);
            let now = if is_now { " · being measured" } else { "" };
            let rounds = format!("{}{now}", many(point.rounds, "round"));
            Cell::from(label).note(if *target == 0 { rounds } else { String::new() })
        })
        .with(words("target"), |(_, _, target, _)| name(progress, *target))
        .with(number("valid"), |(.., own)| {
            let trials = own.valid + own.disturbed + own.invalid;
            let why = validity_note(Validity::Disturbed, &own.why).filter(|_| own.valid < trials);
            let why = why.as_ref().map_or("".into(), |why| fit(why, 200));
            Cell::from(format!("{} of {trials}", own.valid)).note(why)
        })
        .with(number("rate"), |(.., own)| {
            own.rate(progress.so_far.run.confidence).map(|one| mean_of(&one, rate))
        })
        .with(number("p50"), |(.., own)| own.p50_ns().map(duration))
        .with(number("p99"), |(.., own)| own.p99_ns().map(duration))
        .with(number("wrong"), |(.., own)| {
            wrong(own.wrong).then(format!(" of {}", count(own.operations)))
        })
        .with(number("refused"), |(.., own)| count(own.refused))
        .with(number("missing"), |(.., own)| count(own.missing))
        .with(number("generator busy"), |(.., own)| own.generator_busy.map(percent))
        .table()
}

/// The rate of each trial when it ended.
fn rates(progress: &Progress) -> Markup {
    let lines = progress.rates.iter().enumerate().map(|(target, all)| {
        let latest = &all[all.len().saturating_sub(MAX_TRIALS_DRAWN)..];
        let points = latest.iter().copied().map(Into::into).collect();
        Curve::of(&progress.so_far.targets[target].1.name, target, points).marked()
    });
    let x = Axis::of("seconds since the run started", Scale::FromZero, plain);
    let y = Axis::of("rate", Scale::FromZero, rate);
    Chart::of("Rate of each round", x, y, lines.collect()).draw()
}
