//! The loads of a search for the highest one.

use findings::{CapacitySummary, Figures, Summary};
use judge::Unit;
use ledger::{ProbeRow, RequirementOutcome};

use crate::document::{Line, Role, Sheet, Table, number, words, wrapped};
use crate::phrases::{load, unseen};

type Of = fn(&Figures) -> Option<f64>;

/// A row per load, in the order of loads.
pub(crate) fn capacity(capacity: &CapacitySummary, summary: &Summary) -> Table {
    let mut probes: Vec<&(usize, ProbeRow)> = capacity.probes.iter().collect();
    probes.sort_by(|a, b| a.1.load.total_cmp(&b.1.load));
    let sheet = Sheet::of("Every load that was tried", probes)
        .with(words("load"), |(_, probe)| load(&capacity.search.key, probe.load))
        .with(words("outcome"), |(_, probe)| outcome(probe.outcome));
    let columns: [(&str, Unit, Of); 4] = [
        ("answered", Unit::PerSecond, |one| one.rate_per_s),
        ("p50", Unit::Nanoseconds, |one| one.latency.p50_ns.map(|ns| ns as f64)),
        ("p99", Unit::Nanoseconds, |one| one.latency.p99_ns.map(|ns| ns as f64)),
        ("CPU/op", Unit::Nanoseconds, |one| one.server.cpu_ns_per_op),
    ];
    let sheet = columns.into_iter().fold(sheet, |sheet, (name, unit, figure)| {
        let of = |(point, _): &&(usize, ProbeRow)| {
            figure(&summary.points[*point].targets.first()?.figures)
        };
        sheet.figures(number(name), unit, of, |_, shown| unseen(shown))
    });
    sheet
        .with(number("rounds"), |(point, _)| summary.points[*point].rounds.to_string())
        .with(wrapped("why"), |(_, probe)| probe.reason.clone())
        .table()
}

fn outcome(outcome: RequirementOutcome) -> Line {
    let role = match outcome {
        RequirementOutcome::Held => Role::Good,
        RequirementOutcome::Broken => Role::Bad,
        RequirementOutcome::CantTell => Role::Unsure,
    };
    Line::with_role(role, crate::requirements::outcome(outcome))
}
