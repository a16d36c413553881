//! The loads of a search for the highest one: a line per load.

use findings::{CapacitySummary, Summary};
use ledger::ProbeRow;

use crate::number::{duration, nanoseconds, rate};
use crate::phrases::load;

/// A line per load, in the order of loads.
pub(super) fn table(capacity: &CapacitySummary, summary: &Summary) -> Vec<String> {
    let lines = crate::phrases::align(&rows(capacity, summary), str::to_owned);
    lines.into_iter().map(|line| format!("  {line}")).collect()
}

/// The cells of that table, with its head: load, outcome, figures, and why.
pub(crate) fn rows(capacity: &CapacitySummary, summary: &Summary) -> Vec<Vec<String>> {
    let mut probes: Vec<&(usize, ProbeRow)> = capacity.probes.iter().collect();
    probes.sort_by(|a, b| a.1.load.total_cmp(&b.1.load));
    let mut rows = vec![
        ["load", "", "answered", "p50", "p99", "CPU/op", "rounds", ""].map(str::to_owned).to_vec(),
    ];
    for (point, probe) in probes {
        let point = &summary.points[*point];
        let target = point.targets.first();
        let figures = target.map(|target| &target.figures);
        let latency = |ns: Option<u64>| ns.map_or("unseen".to_owned(), |ns| duration(ns as f64));
        rows.push(vec![
            load(capacity, probe.load),
            probe.outcome.word().replace("cant_tell", "can't tell"),
            figures.and_then(|one| one.rate_per_s).map_or("unseen".to_owned(), rate),
            latency(figures.and_then(|one| one.latency.p50_ns)),
            latency(figures.and_then(|one| one.latency.p99_ns)),
            figures
                .and_then(|one| one.server.cpu_ns_per_op)
                .map_or("unseen".to_owned(), nanoseconds),
            point.rounds.to_string(),
            crate::escape::one_line(probe.reason.as_deref().unwrap_or_default()),
        ]);
    }
    rows
}
