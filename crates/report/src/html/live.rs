//! A run that is being measured: its current second, and each target's figures so far. The page
//! loads itself again; each look reads trials only, no distribution and no sensor.

use findings::{PointProgress, Progress, TargetProgress};
use ledger::{RunState, Validity};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::budget::{clipped, fit};
use super::chart::{Axis, Chart, LOOKS, Line, Scale};
use super::page::{moment, page, page_budget, table};
use super::served::{ledger_nav, state};
use crate::causes::reason;
use crate::number::{count, duration, percent, rate};
use crate::phrases::{many, mean_of};

/// Reload interval of the page, in seconds.
const RELOAD_S: u32 = 1;

/// The most targets and their latest rates that are shown of this second.
const MAX_TARGETS_NOW: usize = 60;
const RATES_DRAWN: usize = 48;
const NOW_BYTES: usize = 60_000;

/// The most trials of a target that are drawn: the latest ones.
const MAX_TRIALS_DRAWN: usize = 200;

const COLUMNS: &[(&str, &str)] = &[
    ("", "point"),
    ("", "target"),
    ("n", "valid"),
    ("n", "rate"),
    ("n", "p50"),
    ("n", "p99"),
    ("n", "wrong"),
    ("n", "missing"),
    ("n", "generator busy"),
];

const NOW: &[(&str, &str)] = &[
    ("", "target"),
    ("n", "rate"),
    ("", "lately"),
    ("n", "p50"),
    ("n", "p99"),
    ("n", "wrong"),
    ("n", "missing"),
    ("n", "server cores"),
    ("n", "valid trials"),
];

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
    let rows = progress.points.iter().enumerate().map(|(at, one)| point(progress, at, one));
    let (rows, more) = page_budget().share(400_000).list(rows);
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
            (table("Rounds that have ended", COLUMNS, &rows))
            @if more > 0 { p.note { (more) " more points have no room here." } }
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
    let dash = || "–".to_owned();
    let rates = || now.targets.iter().flat_map(|one| &one.rates).copied();
    let most = rates().filter(|rate| rate.is_finite()).fold(f64::MIN_POSITIVE, f64::max);
    let row = |one: &TargetNow| {
        let name = progress.so_far.targets.get(one.target).map_or("", |(_, row)| &*row.name);
        html! { tr {
            th scope="row" {
                span class=(format!("dot s{}", one.target % LOOKS)) {} (clipped(name))
            }
            td.n { strong { (one.rate_per_s.map_or_else(dash, rate)) } }
            td { (spark(one, most)) }
            @for ns in [one.p50_ns, one.p99_ns] { td.n { (ns.map_or_else(dash, duration)) } }
            td.n {
                @if one.wrong > 0 { span class="word bad" { (count(one.wrong)) } } @else { "0" }
            }
            td.n { (count(one.missing)) }
            td.n { (one.cores.map_or_else(dash, |cores| format!("{cores:.2}"))) }
            td.n { (one.valid) " of " (one.trials) }
        } }
    };
    let rows = now.targets.iter().take(MAX_TARGETS_NOW).map(row);
    let (rows, _) = page_budget().share(NOW_BYTES).list(rows);
    table(
        "This second; latencies are of all rounds of the point so far",
        NOW,
        &html! {
            tbody { (rows) }
        },
    )
}

/// The latest rates as bars over one scale.
fn spark(one: &TargetNow, most: f64) -> Markup {
    let rates = &one.rates[one.rates.len().saturating_sub(RATES_DRAWN)..];
    let bar = |(at, rate): (usize, &f64)| {
        let height = if rate.is_finite() { 22.0 * (rate / most).clamp(0.0, 1.0) } else { 0.0 };
        format!("M{} 23v-{height:.1}h2.4v{height:.1}z", at * 3)
    };
    let bars: String = rates.iter().enumerate().map(bar).collect();
    html! {
        svg class=(format!("spark s{}", one.target % LOOKS)) viewBox="0 0 144 24" role="img"
            aria-label="the latest rates" {
            path.bars d=(bars) {}
        }
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
            @if let Some(reason) = reason(Validity::Disturbed, &own.why).filter(|_| spoiled) {
                p.note.wrap { (fit(&reason, 200)) }
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
    let lines = progress.rates.iter().enumerate().map(|(target, all)| {
        let latest = &all[all.len().saturating_sub(MAX_TRIALS_DRAWN)..];
        let points = latest.iter().copied().map(Into::into).collect();
        Line::of(&progress.so_far.targets[target].1.name, target, points).marked()
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
