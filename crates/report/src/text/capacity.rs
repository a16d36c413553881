//! The loads of a search for the highest one: a line per load.

use findings::{CapacitySummary, Figures, Summary};
use judge::Unit;
use ledger::ProbeRow;

use crate::number::Scale;
use crate::phrases::{load, unseen};

/// A line per load, in the order of loads.
pub(super) fn table(capacity: &CapacitySummary, summary: &Summary) -> Vec<String> {
    crate::wrap::table(&rows(capacity, summary), 2, str::to_owned)
}

type Of = fn(&Figures) -> Option<f64>;

/// The cells of that table, with its head: load, outcome, figures, and why.
pub(crate) fn rows(capacity: &CapacitySummary, summary: &Summary) -> Vec<Vec<String>> {
    let mut probes: Vec<&(usize, ProbeRow)> = capacity.probes.iter().collect();
    probes.sort_by(|a, b| a.1.load.total_cmp(&b.1.load));
    let mut rows = vec![
        ["load", "", "answered", "p50", "p99", "CPU/op", "rounds", ""].map(str::to_owned).to_vec(),
    ];
    let figures = |point: usize| Some(&summary.points[point].targets.first()?.figures);
    let scale = |unit: Unit, of: Of| {
        Scale::of(unit, probes.iter().filter_map(|(point, _)| of(figures(*point)?)))
    };
    let columns: [(Unit, Of); 4] = [
        (Unit::PerSecond, |one| one.rate_per_s),
        (Unit::Nanoseconds, |one| one.latency.p50_ns.map(|ns| ns as f64)),
        (Unit::Nanoseconds, |one| one.latency.p99_ns.map(|ns| ns as f64)),
        (Unit::Nanoseconds, |one| one.server.cpu_ns_per_op),
    ];
    let columns = columns.map(|(unit, of)| (scale(unit, of), of));
    for (point, probe) in &probes {
        let mut row = vec![
            load(capacity, probe.load),
            probe.outcome.word().replace("cant_tell", "can't tell"),
        ];
        row.extend(columns.iter().map(|(scale, of)| {
            let shown = figures(*point).and_then(of).map(|value| scale.show(value));
            unseen(shown)
        }));
        row.push(summary.points[*point].rounds.to_string());
        row.push(crate::escape::one_line(probe.reason.as_deref().unwrap_or_default()));
        rows.push(row);
    }
    rows
}
