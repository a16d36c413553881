//! The cost of an operation on either side, beside the floors of this host.

use findings::Summary;
use maud::{Markup, html};

use super::bars::{Bar, Bars};
use super::render::blocks;
use crate::content;
use crate::number::nanoseconds;

/// The CPU time of an operation on either side.
const SIDES: [(&str, &str); 2] =
    [("server.cpu_ns_per_op", ""), ("generator.cpu_ns_per_op", ": the load on it")];

/// CPU time per operation of each target and of its load, and the host's floors.
pub(super) fn bars(summary: &Summary, index: usize) -> Markup {
    let mut bars = Vec::new();
    for target in &summary.points[index].targets {
        bars.extend(SIDES.iter().filter_map(|(name, whose)| {
            let bar = Bar::of(summary, index, target, summary.metrics.named(name)?)?;
            Some(Bar { name: format!("{}{whose}", bar.name), ..bar })
        }));
    }
    if bars.is_empty() {
        return Markup::default();
    }
    bars.extend(summary.floors.iter().map(|floor| Bar {
        name: format!("floor: {}", floor.name.replace('_', " ")),
        value: floor.value_ns,
        range: None,
        look: None,
    }));
    let note = match summary.floors.is_empty() {
        true => String::new(),
        false => "Floors are what the simplest things cost on this host.".to_owned(),
    };
    let title = "CPU time of an operation".to_owned();
    Bars { title, show: nanoseconds, bars, note }.draw()
}

/// The same in figures, with wake-ups, packets and system calls, where they were seen.
pub(super) fn table(summary: &Summary, index: usize) -> Markup {
    let cost = content::cost(summary, index);
    html! {
        @if !cost.is_empty() {
            details { summary { "What one operation costs" } (blocks(&cost)) }
        }
    }
}
