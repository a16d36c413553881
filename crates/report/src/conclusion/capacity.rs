//! The result of a search for the highest load, in a sentence or two.

use findings::{CapacitySummary, Summary};

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
    let why = match (found.held, found.broken) {
        (Some(_), Some(broken)) => format!("; what breaks first: {}", broke(broken)),
        (Some(_), None) => ", the highest load of the search".to_owned(),
        (None, Some(broken)) => format!(": {}", broke(broken)),
        (None, None) => ": no load was clear".to_owned(),
    };
    let mut lines = vec![format!("{}{why}.", carries(name, key, found.held, found.broken))];
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
