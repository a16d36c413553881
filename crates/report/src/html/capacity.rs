//! A search for the highest load: latency over load with where it held and broke, and every load.

use findings::{CapacitySummary, Summary, TargetSummary};
use maud::{Markup, html};

use super::budget::fit;
use super::chart::{Axis, Band, Chart, Dot, Line, Scale};
use crate::number::{duration, plain, rate};
use crate::phrases::load;

/// The search; nothing when the run is none.
pub(super) fn section(summary: &Summary) -> Markup {
    let Some(capacity) = &summary.capacity else { return Markup::default() };
    let rows = crate::text::capacity_rows(capacity, summary);
    let (head, rows) = rows.split_first().expect("a table has a head");
    html! {
        section {
            h2 { "Highest load" }
            div.charts {
                (latency(summary, capacity))
                (answered(summary, capacity))
            }
            div.wide tabindex="0" { table {
                thead { tr { @for cell in head { th { (cell) } } } }
                tbody { @for row in rows { tr {
                    @for (column, cell) in row.iter().enumerate() {
                        @match (column, cell.as_str()) {
                            (1, "held") => { td { span class="word good" { "held" } } }
                            (1, "broken") => { td { span class="word bad" { "broken" } } }
                            (1, word) => { td { span class="word unsure" { (word) } } }
                            (7, reason) => { td.wrap { (fit(reason, 600)) } }
                            (_, text) => { td { (text) } }
                        }
                    }
                } } }
            } }
        }
    }
}

fn latency(summary: &Summary, capacity: &CapacitySummary) -> Markup {
    let lines = vec![
        line(summary, capacity, "median", 0, |one| ns(one.figures.latency.p50_ns)),
        line(summary, capacity, "99th percentile", 1, |one| ns(one.figures.latency.p99_ns)),
    ];
    let y =
        Axis { label: "latency".to_owned(), scale: Scale::Log, show: duration, ..Axis::default() };
    drawn(capacity, "Latency over load", y, lines)
}

fn answered(summary: &Summary, capacity: &CapacitySummary) -> Markup {
    let name = &summary.targets[0].name;
    let lines = vec![line(summary, capacity, name, 0, |one| one.figures.rate_per_s)];
    let y = Axis { label: "answered".to_owned(), show: rate, ..Axis::default() };
    drawn(capacity, "Answered over load", y, lines)
}

fn ns(value: Option<u64>) -> Option<f64> {
    value.map(|value| value as f64)
}

fn line(
    summary: &Summary,
    capacity: &CapacitySummary,
    name: &str,
    look: usize,
    of: fn(&TargetSummary) -> Option<f64>,
) -> Line {
    let dot = |(point, probe): &(usize, ledger::ProbeRow)| {
        let y = of(summary.points.get(*point)?.targets.first()?)?;
        Some(Dot { x: probe.load, y, range: None })
    };
    let mut points: Vec<Dot> = capacity.probes.iter().filter_map(dot).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    Line { name: name.to_owned(), look, marked: true, points }
}

fn drawn(capacity: &CapacitySummary, title: &str, y: Axis, lines: Vec<Line>) -> Markup {
    let is_rate = capacity.search.key.ends_with("rate");
    let mut bands = Vec::new();
    let mut note = String::new();
    if let (Some(held), Some(broken)) = (capacity.found.held, capacity.found.broken) {
        let title = format!("{} held, {} broke", load(capacity, held), load(capacity, broken));
        note.clone_from(&title);
        bands.push(Band { from: held, to: broken, class: "disturbed", title });
    }
    if let Some(knee) = capacity.knee {
        note.push_str(&format!("; the knee is at {}", load(capacity, knee)));
    }
    Chart {
        title: title.to_owned(),
        x: Axis {
            label: capacity.search.key.clone(),
            scale: Scale::Log,
            show: if is_rate { rate } else { plain },
            ..Axis::default()
        },
        y,
        lines,
        bands,
        note: note.trim_start_matches("; ").to_owned(),
        ..Chart::default()
    }
    .draw()
}
