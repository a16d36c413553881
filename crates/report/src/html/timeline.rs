//! The run on one time axis: rates and latencies, and below them every sensor. Rounds and what
//! comes before them are shaded, slices, disturbed ones and events marked.

use std::collections::BTreeMap;

use findings::{ChartData, EventKind, MAX_POINTS, Pace, Stretch, Summary, Watched, event_kinds};
use maud::{Markup, PreEscaped, html};

use super::budget::{Budget, clipped, fit};
use super::chart::{Axis, Band, Chart, EVENT_MARKS, Line as Curve, Moments, Scale, together};
use super::page::{rest, rest_in};
use super::render::within;
use crate::content;
use crate::document::{Drawing, Line, Role, Sheet, number, words, wrapped};
use crate::names;
use crate::number::{bytes, bytes_per_s, duration, percent, plain, rate};
use crate::phrases::event_took;

/// Lines in one chart of sensors: more can't be distinguished.
const MAX_LINES: usize = 6;

/// The most rounds that are shaded, and the most disturbed slices that are marked.
const MAX_ROUNDS: usize = 240;
const MAX_DISTURBED: usize = 240;

/// The drawing of rounds that every chart has behind it.
const CLOCK: &str = "clock";

/// Rates, latencies and sensors over the time of the run, as many as fit.
pub(super) fn section(summary: &Summary, data: &ChartData, mut budget: Budget) -> Markup {
    if data.length_s <= 0.0 {
        return html! {};
    }
    let paced = |title: &str, of: fn(&Pace) -> &[(f64, f64)], show, scale| {
        let lines = data.paces.iter().enumerate().map(|(target, pace)| {
            let points = of(pace).iter().copied().map(Into::into).collect();
            Curve::of(&summary.targets[target].name, target, points)
        });
        let chart = timed(data, None, title, (show, false), scale, lines.collect());
        Chart { stripes: stripes(data), breaks: breaks(data), ..chart }
    };
    let paced = vec![
        paced("Rate", |pace| &pace.rate_per_s, rate as fn(f64) -> String, Scale::FromZero),
        paced("Median latency", |pace| &pace.p50_ns, duration, Scale::Log),
        paced("99th percentile of latency", |pace| &pace.p99_ns, duration, Scale::Log),
    ];
    let clock = Chart::shared_bands(CLOCK, &clock_axis(data), &bands(summary, data));
    let clock = budget.settle(clock, "The rounds have no room.");
    let (legend, paced) = together(paced);
    let (paced, undrawn) = budget.list(paced);
    let events = events(summary, data, &mut budget);
    let (sensors, left_out) = sensors(summary, data, &mut budget);
    let left_out = left_out + undrawn;
    html! {
        section {
            h2 { "Over time" }
            p.note {
                "One clock for all: seconds since the run started. Rounds are shaded, those of "
                "every other point darker; the stripe before each is starting, preparing and "
                "warming up"
                @if !data.slices.is_empty() {
                    "; at the foot each target's slices have its colour"
                }
                @if !data.disturbed.is_empty() {
                    "; red stripes are slices that were disturbed"
                }
                @if !data.events.is_empty() {
                    "; what the suite made happen is marked at the top, and shaded while it lasted"
                }
                ". A line has at most " (MAX_POINTS) " points, each the mean of its stretch "
                "(of the 99th percentile the greatest)."
            }
            (clock)
            (legend)
            div.charts { (paced) }
            (events)
            @if !sensors.is_empty() {
                details open[data.length_s < 600.0] {
                    summary { "What the sensors saw" }
                    (PreEscaped(sensors))
                    (rest_in(left_out, "charts", &format!("loadline ledger export {}", summary.id)))
                }
            }
        }
    }
}

/// The suite's events: a line for each event and target.
fn events(summary: &Summary, data: &ChartData, budget: &mut Budget) -> Markup {
    let at = |ns: u64| format!("{:.2} s", ns as f64 / 1e9);
    let mark = |kind: &EventKind<'_>| {
        let place = data.events.iter().position(|one| one.name == kind.name);
        place.filter(|mark| *mark < EVENT_MARKS).map(Drawing::Event)
    };
    let sheet = Sheet::of("What the suite made happen", event_kinds(summary, None))
        .with(words("event"), |kind| Line::from(kind.name).drawn(mark(kind)))
        .with(wrapped("what it does"), |kind| {
            (kind.action != kind.name).then(|| kind.action.to_owned())
        })
        .with(words("target"), |kind| content::name(summary, kind.target))
        .with(number("times"), |kind| kind.times.to_string())
        .with(number("first at"), |kind| at(kind.first_ns))
        .with(number("last at"), |kind| at(kind.last_ns))
        .with(number("took"), |kind| event_took(kind).unwrap_or_else(|| "at once".to_owned()))
        .with(wrapped("failed"), |kind| match kind.failure {
            Some(why) => Line::with_role(Role::Bad, format!("{} failed", kind.failed))
                .then(format!(": {why}")),
            None => Line::default(),
        });
    let (table, more) = within(&sheet.table(), budget);
    html! { @if !table.0.is_empty() {
        h3 { "Events" }
        (table)
        @if data.events.len() > EVENT_MARKS {
            p.note { "Only the first " (EVENT_MARKS) " are marked in the charts." }
        }
        (rest(summary, more, "events"))
    } }
}

/// The marks in a chart of one target, or of all.
fn moments(data: &ChartData, of: Option<usize>) -> Vec<Moments> {
    let shown = data.events.iter().take(EVENT_MARKS).enumerate();
    let marked = shown.map(|(mark, one)| {
        let own = one.times.iter().filter(|(target, _)| of.is_none_or(|of| of == *target));
        let times = own.map(|(_, time)| (time.start_s, time.end_s)).collect();
        Moments { name: fit(&one.name, 120).into_owned(), mark, times }
    });
    marked.filter(|one| !one.times.is_empty()).collect()
}

/// The time of the run: every chart has this axis.
fn clock_axis(data: &ChartData) -> Axis {
    Axis::of("seconds since the run started", Scale::Within(0.0, data.length_s), plain)
}

fn timed(
    data: &ChartData,
    of: Option<usize>,
    title: &str,
    (show, binary): (fn(f64) -> String, bool),
    scale: Scale,
    lines: Vec<Curve>,
) -> Chart {
    let y = Axis { binary, ..Axis::of(title.to_lowercase(), scale, show) };
    let chart = Chart::of(title, clock_axis(data), y, lines);
    Chart { behind: Some(CLOCK), events: moments(data, of), ..chart }
}

fn bands(summary: &Summary, data: &ChartData) -> Vec<Band> {
    let settling = data.settling.iter().take(MAX_ROUNDS).map(|one| Band {
        from: one.start_s,
        to: one.end_s,
        class: "settling",
        title: "starting, preparing, warming up".to_owned(),
    });
    let rounds = data.rounds.iter().take(MAX_ROUNDS).map(|(point, one)| Band {
        from: one.start_s,
        to: one.end_s,
        class: if point % 2 == 0 { "phase" } else { "phase other" },
        title: fit(&summary.points[*point].row.label, 60).into_owned(),
    });
    let disturbed = data.disturbed.iter().take(MAX_DISTURBED).map(|one| Band {
        from: one.start_s,
        to: one.end_s,
        class: "disturbed",
        title: "disturbed".to_owned(),
    });
    settling.chain(rounds).chain(disturbed).collect()
}

/// Targets are not measured from one round to the next.
fn breaks(data: &ChartData) -> Vec<f64> {
    data.rounds.iter().map(|(_, round)| round.start_s).collect()
}

/// Each target's slices, in its look.
fn stripes(data: &ChartData) -> Vec<(usize, Vec<(f64, f64)>)> {
    let of = |(target, all): &(usize, Vec<Stretch>)| {
        (*target, all.iter().map(|one| (one.start_s, one.end_s)).collect())
    };
    data.slices.iter().map(of).collect()
}

/// The sensors' charts as HTML, and the number that didn't fit.
fn sensors(summary: &Summary, data: &ChartData, budget: &mut Budget) -> (String, usize) {
    let mut out = String::new();
    let mut left_out = 0;
    let all = by_sensor(data);
    let owners = std::iter::once(None).chain((0..summary.targets.len()).map(Some));
    for owner in owners {
        let name = owner.map_or("host", |target| summary.targets[target].name.as_str());
        let (mut drawn, mut silent) = (String::new(), Vec::new());
        for ((_, sensor), series) in all.iter().filter(|((of, _), _)| *of == owner) {
            let charts = charts(data, owner, sensor, series);
            let charts: Vec<Markup> = charts.iter().map(Chart::draw).collect();
            silent.extend(quiet(series).map(|name| format!("{sensor} {}", names::words(name))));
            let part = PreEscaped(charts.iter().map(|chart| chart.0.as_str()).collect::<String>());
            if budget.fits(&part) {
                drawn.push_str(&part.0);
            } else {
                left_out += charts.iter().filter(|chart| !chart.0.is_empty()).count();
            }
        }
        if drawn.is_empty() && silent.is_empty() {
            continue;
        }
        let part = html! {
            h3 { (clipped(name)) }
            @if !drawn.is_empty() { div.charts { (PreEscaped(drawn)) } }
            @if !silent.is_empty() {
                p.note { "nothing but 0: " (fit(&silent.join(", "), 1_500)) }
            }
        };
        out.push_str(&part.0);
    }
    (out, left_out)
}

type BySensor<'a> = BTreeMap<(Option<usize>, &'a str), Vec<&'a Watched>>;

fn by_sensor(data: &ChartData) -> BySensor<'_> {
    let mut all = BySensor::new();
    for one in &data.series {
        all.entry((one.target, one.sensor.as_str())).or_default().push(one);
    }
    all
}

fn is_quiet(series: &Watched) -> bool {
    series.samples.iter().all(|(_, value)| *value == 0.0)
}

fn quiet<'a>(series: &[&'a Watched]) -> impl Iterator<Item = &'a str> {
    let quiet = series.iter().filter(|one| is_quiet(one) && !one.samples.is_empty());
    quiet.map(|one| one.name.as_str())
}

/// One chart for each unit, and for each thing that names share before their dot.
fn charts(data: &ChartData, of: Option<usize>, sensor: &str, series: &[&Watched]) -> Vec<Chart> {
    let mut groups: BTreeMap<(&str, &str), Vec<&Watched>> = BTreeMap::new();
    for one in series.iter().filter(|one| !is_quiet(one)) {
        let thing = one.name.split_once('.').map_or("", |(thing, _)| thing);
        groups.entry((thing, one.unit.as_str())).or_default().push(one);
    }
    let mut charts = Vec::new();
    for ((thing, unit), series) in groups {
        for series in series.chunks(MAX_LINES) {
            let short = |one: &Watched| {
                names::words(one.name.split_once('.').map_or(&one.name[..], |(_, name)| name))
            };
            let all: Vec<String> = series.iter().map(|one| short(one)).collect();
            let title = names::sensor(sensor, thing, &all);
            let lines = series.iter().zip(&all).enumerate().map(|(variant, (one, name))| {
                // A target's colour where it is of one; what is seen of it differs by its dash.
                let look = of.filter(|_| series.len() == 1).unwrap_or(variant);
                let points = one.samples.iter().copied().map(Into::into).collect();
                Curve { variant, ..Curve::of(name, look, points) }
            });
            let lines = lines.collect();
            let show = (shown(unit), unit == "bytes");
            let chart = timed(data, of, &title, show, Scale::FromZero, lines);
            // The host is watched from the first round to the last, a target only while it runs.
            let breaks = of.map_or(Vec::new(), |_| breaks(data));
            charts.push(Chart { breaks, ..chart });
        }
    }
    charts
}

/// The format of values of a sensor's unit.
fn shown(unit: &str) -> fn(f64) -> String {
    match unit {
        "fraction" => percent,
        "bytes" => bytes,
        "ns" => duration,
        "per_s" => rate,
        "bytes_per_s" => bytes_per_s,
        _ => plain,
    }
}
