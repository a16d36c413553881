//! The slowest requests of a point, shown with `--verbose`.

use findings::Summary;
use judge::Unit;

use super::paint::{Paint, Role};
use crate::escape::one_line;
use crate::number::Scale;
use crate::wrap::wrapped;

/// Number shown of each target; `--json` has all that were kept.
const MAX_SHOWN: usize = 8;

/// The slowest requests of each target at a point, over all its trials, the slowest first. Empty
/// when none were kept.
pub fn slowest(summary: &Summary, point: usize, colour: bool) -> String {
    let paint = Paint::new(colour);
    let mut out = String::new();
    for (index, target) in summary.targets.iter().enumerate() {
        let of_it = |trial: &findings::TrialSummary| trial.point == point && trial.target == index;
        let mut here: Vec<_> =
            summary.slow.iter().filter(|slow| of_it(&summary.trials[slow.trial])).collect();
        here.sort_by_key(|slow| std::cmp::Reverse(slow.row.latency_ns));
        here.truncate(MAX_SHOWN);
        let latencies = here.iter().map(|slow| slow.row.latency_ns as f64);
        let scale = Scale::of(Unit::Nanoseconds, latencies);
        for (number, slow) in here.iter().enumerate() {
            let name = one_line(&target.name);
            let lead = if number == 0 { format!("{name} slowest") } else { String::new() };
            let lead = format!("{lead:<width$}", width = name.chars().count() + 8);
            let (trial, row) = (&summary.trials[slow.trial], &slow.row);
            let clients = one_line(&row.clients);
            out.push_str(&format!(
                "  {}  {}  {} of {clients}, round {}, at {:.3} s\n",
                paint.text(Role::Dim, &lead),
                scale.show(row.latency_ns as f64),
                one_line(&row.operation),
                trial.round,
                row.at_ns as f64 / 1e9,
            ));
        }
    }
    wrapped(&out)
}
