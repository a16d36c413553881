//! A point on the page: its targets with their verdicts first, then rate and latency with their
//! intervals, then the rest.

use findings::{ChartData, Compared, Summary, TargetSummary};
use judge::{Metric, SeriesInterval, Unit};
use ledger::Validity;
use maud::{Markup, html};

use super::bars::{Bar, Bars};
use super::budget::{Budget, clipped};
use super::page::{Place, rest};
use super::render::{blocks, words};
use super::{cost, render, spread};
use crate::content;
use crate::document::{Cell, Line, Sheet, number, verdict, words as column, wrapped};
use crate::names::{self, shown as shown_as};
use crate::phrases;

/// The metrics that are drawn with their intervals, besides the run's primary one.
const DRAWN: &[&str] = &["rate_per_s", "latency.p50", "latency.p99"];

/// The most points in the table of all.
const MAX_ROWS: usize = 300;

/// The most verdicts of a point that are shown one by one in the table of all points.
const MAX_VERDICTS: usize = 3;

/// All points in one table, each a link to its own part of the page if it has one: only the first
/// `in_full` do.
pub(super) fn overview(
    summary: &Summary,
    in_full: usize,
    mut budget: Budget,
    place: &Place,
) -> Markup {
    let point = |index: &usize| &summary.points[*index];
    let metric = summary.primary().map_or("Rate".into(), names::metric);
    let rows = (0..summary.points.len()).take(MAX_ROWS);
    let sheet =
        Sheet::of(format!("{metric} at each point"), rows).with(wrapped("point"), |index| {
            let way = (*index < in_full).then(|| format!("#point-{index}"));
            Cell::from(clipped(&point(index).row.label).into_owned()).link(way)
        });
    let targets = summary.targets.iter().enumerate();
    let mut sheet = targets.fold(sheet, |sheet, (target, row)| {
        let here = |index: &usize| point(index).of_target(target);
        let unit = summary.primary().map_or(Unit::PerSecond, |metric| metric.unit);
        sheet.figures(
            number(&row.name),
            unit,
            |index| {
                let (interval, value) = overall(summary, here(index)?);
                interval.map(|interval| interval.mean).or(value)
            },
            |index, shown| Some(graded(summary, here(index)?, shown)),
        )
    });
    if matches!(place, Place::Served) {
        sheet = sheet.with(column("trials"), |index| {
            let trials = point(index).rounds * point(index).targets.len();
            let way = format!("/runs/{}/points/{}", summary.id, index + 1);
            Cell::from(phrases::many(trials, "trial")).link(Some(way))
        });
    }
    // Of a ladder each rung is judged, and its verdicts stand together.
    if summary.targets.len() > 1 && (summary.rungs.is_empty() || summary.contest.is_some()) {
        let name = format!("verdict on {}", summary.targets[0].name);
        sheet = sheet.with(verdict(name), |index| verdicts(summary, *index));
    }
    let table = sheet.table();
    let (shown, more) = render::within(&table, &mut budget);
    let more = more + summary.points.len() - table.rows.len();
    html! {
        section #points {
            h2 { "Points" }
            (shown)
            (rest(summary, more, "points"))
        }
    }
}

/// The one figure that fits: the metric that verdicts are about, or else the rate.
fn overall(summary: &Summary, one: &TargetSummary) -> (Option<SeriesInterval>, Option<f64>) {
    match summary.primary() {
        Some(metric) => (one.primary, one.figures.value(metric)),
        None => (one.rate, one.figures.rate_per_s),
    }
}

/// A figure with its width; what isn't clean is marked.
fn graded(summary: &Summary, one: &TargetSummary, shown: Option<String>) -> String {
    let word = one.grade.word();
    let mark = if one.grade.is_clean() { String::new() } else { format!(" ({word})") };
    match shown {
        Some(shown) => shown + &phrases::width(overall(summary, one).0) + &mark,
        None if one.grade.validity == Validity::Invalid => word.to_owned(),
        None => phrases::unseen(None),
    }
}

/// The verdicts of a point by the primary metric, or how many there are of each.
fn verdicts(summary: &Summary, index: usize) -> Line {
    let primary: Vec<&Compared> = summary.comparisons_at(index).filter(|one| one.primary).collect();
    let mut line = Line::default();
    if primary.len() > MAX_VERDICTS {
        let kinds = [
            ("better", "better than"),
            ("worse", "worse than"),
            ("same", "the same as"),
            ("cant_tell", "can't tell from"),
        ];
        for (code, words) in kinds {
            let found: Vec<_> = primary.iter().filter(|one| one.verdict.code() == code).collect();
            if let Some(first) = found.first() {
                let role = phrases::role_of(first.verdict);
                line = line.and(role, format!("{words} {}", found.len())).then("\n");
            }
        }
        return line;
    }
    for one in &primary {
        if primary.len() > 1 {
            line = line.then(format!("{}: ", summary.targets[one.b].name));
        }
        let words = phrases::verdict(one.verdict, Some(summary.run.same_within));
        let likely = phrases::likely(summary, one);
        let seen = match likely {
            Some(likely) => format!(" {}; {likely}\n", phrases::plain_interval(one)),
            None => format!(" {}\n", phrases::interval(one)),
        };
        line = line.and(phrases::role_of(one.verdict), words).then(seen);
    }
    line
}

/// One point in full.
pub(super) fn article(summary: &Summary, data: &ChartData, index: usize) -> Markup {
    let point = &summary.points[index];
    let all = content::point(summary, index);
    let (targets, others) = all.split_at(1);
    html! {
        article #(format!("point-{index}")) {
            h3 { (point.row.label) }
            p.note { (words(&content::measured(summary, index))) }
            @if point.targets.is_empty() {
                p { "Nothing was measured here: the run ended before a round of this point did." }
            } @else {
                (blocks(targets))
                // With several points the same figures are drawn against what was swept.
                @if summary.points.len() == 1 { div.charts { (intervals(summary, index)) } }
                (blocks(others))
                (latencies(summary, data, index))
                (cost::table(summary, index))
            }
        }
    }
}

/// The primary metric, rate and latencies of each target as bars with their intervals.
fn intervals(summary: &Summary, index: usize) -> Markup {
    let own = summary.run.primary_metric.as_str();
    let names = [own].into_iter().chain(DRAWN.iter().copied().filter(|name| *name != own));
    let drawn = |metric: &Metric| {
        let targets = summary.points[index].targets.iter();
        let targets = targets.filter(|one| one.grade.validity != Validity::Invalid);
        let bars = targets.filter_map(|one| Bar::of(summary, index, one, metric)).collect();
        let title = names::metric(metric).into_owned();
        Bars { title, show: shown_as(metric), bars, note: String::new() }.draw()
    };
    let metrics = names.filter_map(|name| summary.metrics.named(name));
    html! { @for metric in metrics { (drawn(metric)) } }
}

/// Latencies in figures and charts, and what an operation costs.
fn latencies(summary: &Summary, data: &ChartData, index: usize) -> Markup {
    let rows = spread::rows(summary, data, index);
    let none =
        rows.0.is_empty() && summary.points[index].targets.iter().all(|one| one.valid_trials == 0);
    html! {
        (rows)
        @if none { p.note { "No answer was timed here, so there are no latencies to draw." } }
        div.charts {
            (spread::percentiles(summary, data, index))
            (cost::bars(summary, index))
        }
    }
}
