//! The result of a search for the highest load, in a sentence or two.

use findings::{CapacitySummary, Summary};
use ledger::RequirementOutcome;

use crate::number::percent;
use crate::phrases::load;

/// The answer in a sentence or two.
pub(super) fn sentences(capacity: &CapacitySummary, summary: &Summary) -> Vec<String> {
    let name = &summary.targets[0].name;
    let broke = |load: f64| {
        let probe = capacity.probes.iter().find(|(_, probe)| probe.load == load);
        let reason = probe.and_then(|(_, probe)| probe.reason.clone());
        reason.unwrap_or_else(|| "a requirement".to_owned())
    };
    let unclear = unclear(capacity);
    let first = match (capacity.found.held, capacity.found.broken) {
        // A load between the two was not shown to hold.
        (Some(held), Some(broken)) => format!(
            "{name} carries at least {}, and breaks by {}: {}{unclear}.",
            load(capacity, held),
            load(capacity, broken),
            broke(broken)
        ),
        (Some(held), None) => {
            let highest = if unclear.is_empty() { ", the highest load of the search" } else { "" };
            format!("{name} carries at least {}{highest}{unclear}.", load(capacity, held))
        }
        (None, Some(broken)) => format!(
            "{name} does not even carry {}: {}{unclear}.",
            load(capacity, broken),
            broke(broken)
        ),
        (None, None) => format!("It can't be told what {name} carries: no load was clear."),
    };
    let mut lines = vec![first];
    if let Some((limit, evidence)) = &capacity.limit {
        lines.push(format!("The limit there is {limit}: {evidence}."));
    }
    if let Some(busy) = capacity.generator_busy {
        lines.push(format!(
            "The generator was {} busy there, so this is a lower bound: give it more threads \
             and CPUs.",
            percent(busy)
        ));
    }
    if let Some(knee) = capacity.knee {
        let knee = load(capacity, knee);
        lines.push(format!("The knee is at {knee}: beyond it latency rises faster than load."));
    }
    lines
}

/// `; 79.0k/s was unclear`: the loads between what held and what broke, or beyond the only one of
/// them.
fn unclear(capacity: &CapacitySummary) -> String {
    let (held, broken) = (capacity.found.held, capacity.found.broken);
    let inside = |load: f64| held.is_none_or(|held| load > held) && broken.is_none_or(|b| load < b);
    let loads = capacity.probes.iter().map(|(_, probe)| probe);
    let loads = loads.filter(|one| one.outcome == RequirementOutcome::CantTell && inside(one.load));
    let mut loads: Vec<f64> = loads.map(|probe| probe.load).collect();
    loads.sort_by(f64::total_cmp);
    match loads[..] {
        [] => String::new(),
        [one] => format!("; {} was unclear", load(capacity, one)),
        [first, .., last] => {
            format!("; {} to {} was unclear", load(capacity, first), load(capacity, last))
        }
    }
}
