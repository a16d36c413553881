//! A search for the highest load: latency over load with where it held and broke, and every load.

use findings::{CapacitySummary, Summary, TargetSummary};
use maud::{Markup, html};

use super::chart::{Axis, Band, Chart, Dot, Line, Scale};
use super::page::MAX_POINTS_IN_FULL;
use super::render::table;
use crate::content;
use crate::number::{duration, plain, rate};
use crate::phrases::load;

/// The search; nothing when the run is none.
pub(super) fn section(summary: &Summary) -> Markup {
    let Some(capacity) = &summary.capacity else { return Markup::default() };
    html! {
        section {
            h2 { "Highest load" }
            div.charts {
                (latency(summary, capacity))
                (answered(summary, capacity))
            }
            (table(&content::capacity(capacity, summary)))
        }
    }
}

fn latency(summary: &Summary, capacity: &CapacitySummary) -> Markup {
    let lines = vec![
        line(capacity, summary, ("median", 0), |one| ns(one.figures.latency.p50_ns)),
        line(capacity, summary, ("99th percentile", 1), |one| ns(one.figures.latency.p99_ns)),
    ];
    drawn(capacity, "Latency over load", Axis::of("latency", Scale::Log, duration), lines)
}

fn answered(summary: &Summary, capacity: &CapacitySummary) -> Markup {
    let name = &summary.targets[0].name;
    let lines = vec![line(capacity, summary, (name, 0), |one| one.figures.rate_per_s)];
    drawn(capacity, "Answered over load", Axis::of("answered", Scale::FromZero, rate), lines)
}

fn ns(value: Option<u64>) -> Option<f64> {
    value.map(|value| value as f64)
}

/// A figure of the one target over the loads; its colour is the target's, its dash the figure's.
fn line(
    capacity: &CapacitySummary,
    summary: &Summary,
    (name, variant): (&str, usize),
    of: fn(&TargetSummary) -> Option<f64>,
) -> Line {
    let dot = |(point, probe): &(usize, ledger::ProbeRow)| {
        let y = of(summary.points.get(*point)?.targets.first()?)?;
        let way = (*point < MAX_POINTS_IN_FULL).then(|| format!("#point-{point}"));
        Some(Dot { way, ..Dot::from((probe.load, y)) })
    };
    let mut points: Vec<Dot> = capacity.probes.iter().filter_map(dot).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    Line { variant, ..Line::of(name, 0, points).marked() }
}

fn drawn(capacity: &CapacitySummary, title: &str, y: Axis, lines: Vec<Line>) -> Markup {
    let key = &capacity.search.key;
    let mut bands = Vec::new();
    let mut note = String::new();
    if let (Some(held), Some(broken)) = (capacity.found.held, capacity.found.broken) {
        let title = format!("{} held, {} broke", load(key, held), load(key, broken));
        note.clone_from(&title);
        bands.push(Band { from: held, to: broken, class: "disturbed", title });
    }
    if let Some(knee) = capacity.knee {
        note.push_str(&format!("; the knee is at {}", load(key, knee)));
    }
    let x = Axis::of(key, Scale::Log, if key.ends_with("rate") { rate } else { plain });
    let note = note.trim_start_matches("; ").to_owned();
    Chart { bands, note, ..Chart::of(title, x, y, lines) }.draw()
}
