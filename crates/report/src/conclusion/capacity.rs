//! The result of a search for the highest load, in a sentence or two.

use findings::{CapacitySummary, Summary};
use ledger::{ProbeRow, RequirementOutcome};

use crate::number::percent;
use crate::phrases::{carries, load};

/// The answer in a sentence or two.
pub(super) fn sentences(capacity: &CapacitySummary, summary: &Summary) -> Vec<String> {
    let name = &summary.targets[0].name;
    let (key, found) = (&capacity.search.key, &capacity.found);
    let broke = |load: f64| {
        let probe = capacity.probes.iter().find(|(_, probe)| probe.load == load);
        let reason = probe.and_then(|(_, probe)| probe.reason.clone());
        reason.unwrap_or_else(|| "a requirement".to_owned())
    };
    let unclear = unclear(capacity);
    let why = match (found.held, found.broken) {
        (_, Some(broken)) => format!(": {}{unclear}", broke(broken)),
        (Some(_), None) if unclear.is_empty() => ", the highest load that was tried".to_owned(),
        (Some(_), None) => unclear,
        (None, None) => ": no load was clear".to_owned(),
    };
    let mut lines = vec![format!("{}{why}.", carries(name, key, found.held, found.broken))];
    let at_held = capacity.probes.iter().find(|(_, probe)| Some(probe.load) == found.held);
    if let Some((_, ProbeRow { load: at, reason: Some(reason), .. })) = at_held {
        let at = load(key, *at);
        lines.push(format!("At {at} it was {reason}: undisturbed it may carry more."));
    }
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
        let knee = load(key, knee);
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
        [one] => format!("; {} was unclear", load(&capacity.search.key, one)),
        [first, .., last] => {
            format!(
                "; {} to {} was unclear",
                load(&capacity.search.key, first),
                load(&capacity.search.key, last)
            )
        }
    }
}
