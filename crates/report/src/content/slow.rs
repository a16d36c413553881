//! The slowest requests of a point.

use findings::Summary;
use judge::Unit;

use super::target::name;
use crate::document::{Sheet, Table, number, words};

/// The slowest requests of each target at a point, over all its trials, the slowest first and at
/// most this number of each. Empty when none were kept.
pub(crate) fn slowest(summary: &Summary, point: usize, most: usize) -> Table {
    let trials = &summary.trials;
    let mut here: Vec<_> =
        summary.slow.iter().filter(|slow| trials[slow.trial].point == point).collect();
    here.sort_by_key(|slow| (trials[slow.trial].target, std::cmp::Reverse(slow.row.latency_ns)));
    let of_each = here.chunk_by(|a, b| trials[a.trial].target == trials[b.trial].target);
    let shown = of_each.flat_map(|own| &own[..own.len().min(most)]).copied();
    Sheet::of("The slowest requests of each target", shown)
        .with(words("slowest of"), |slow| name(summary, trials[slow.trial].target))
        .figures(
            number("latency"),
            Unit::Nanoseconds,
            |slow| Some(slow.row.latency_ns as f64),
            |_, shown| shown,
        )
        .with(words("operation"), |slow| slow.row.operation.clone())
        .with(words("clients"), |slow| slow.row.clients.clone())
        .with(number("round"), |slow| trials[slow.trial].round.to_string())
        .with(number("at"), |slow| format!("{:.3} s", slow.row.at_ns as f64 / 1e9))
        .table()
}
