//! The cost of an operation on either side, beside the floors of this host.

use findings::{Figures, Summary};
use judge::series_interval;
use maud::{Markup, html};

use super::bars::{Bar, Bars};
use crate::number::nanoseconds;

type Of = fn(&Figures) -> Option<f64>;

/// CPU time per operation of each target and of its load, and the host's floors.
pub(super) fn bars(summary: &Summary, index: usize) -> Markup {
    let mut bars = Vec::new();
    for target in &summary.points[index].targets {
        let name = &summary.targets[target.target].name;
        let sides: [(&str, Of); 2] = [
            ("", |figures| figures.server.cpu_ns_per_op),
            (": the load on it", |figures| figures.generator.cpu_ns_per_op),
        ];
        for (whose, of) in sides {
            let here = summary.trials_at(index).map(|(_, trial)| trial);
            let here = here.filter(|trial| trial.target == target.target && trial.is_valid());
            let values: Vec<f64> = here.filter_map(|trial| of(&trial.figures)).collect();
            let interval = series_interval(&values, summary.run.confidence);
            bars.extend(of(&target.figures).map(|value| Bar {
                name: format!("{name}{whose}"),
                value,
                range: interval.map(|one| (one.low, one.high)),
                look: Some(target.target),
                said: String::new(),
            }));
        }
    }
    if bars.is_empty() {
        return Markup::default();
    }
    bars.extend(summary.floors.iter().map(|floor| Bar {
        name: format!("floor: {}", floor.name.replace('_', " ")),
        value: floor.value_ns,
        range: None,
        look: None,
        said: String::new(),
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
    let text = crate::text::cost(summary, index, false);
    html! {
        @if !text.is_empty() {
            details {
                summary { "What one operation costs" }
                pre tabindex="0" { (text) }
            }
        }
    }
}
