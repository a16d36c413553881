//! The highest load that meets every requirement, from a run whose points are loads.

use judge::limits::is_generator_bound;
use judge::{Capacity, Held, Try, knee};
use ledger::{ProbeRow, RequirementOutcome, SearchRow};

use crate::point_summary::PointSummary;

/// A search for the highest load.
#[derive(Debug, Clone, PartialEq)]
pub struct CapacitySummary {
    /// The parameters of the search.
    pub search: SearchRow,
    /// Every load that was tried, in order: the point, and its outcome.
    pub probes: Vec<(usize, ProbeRow)>,
    /// The loads between which the highest one lies.
    pub found: Capacity,
    /// The load beyond which latency rises faster than the load; `None` when there is none.
    pub knee: Option<f64>,
    /// The busy share of the generator at the lowest load that broke, when it was too high for the
    /// break to be the target's.
    pub generator_busy: Option<f64>,
    /// The first limit at the lowest load that broke: its name and its evidence.
    pub limit: Option<(String, String)>,
}

impl CapacitySummary {
    /// Summarises the search over these loads.
    pub(crate) fn of(
        search: SearchRow,
        probes: Vec<(usize, ProbeRow)>,
        points: &[PointSummary],
    ) -> CapacitySummary {
        let tries: Vec<Try> = probes.iter().map(|(_, probe)| tried(probe)).collect();
        let found = Capacity::of(&tries);
        let first = |point: usize| {
            points.get(point)?.targets.first().filter(|target| target.valid_trials > 0)
        };
        let below = |load: f64| found.broken.is_none_or(|broken| load < broken);
        let latencies = probes.iter().filter(|(_, probe)| below(probe.load));
        let latencies: Vec<(f64, f64)> = latencies
            .filter_map(|(point, probe)| {
                // The median is known well even from short rounds.
                let p50_ns = first(*point)?.figures.latency.p50_ns?;
                Some((probe.load, p50_ns as f64))
            })
            .collect();
        let at_broken = probes.iter().find(|(_, probe)| Some(probe.load) == found.broken);
        let at_broken = at_broken.and_then(|(point, _)| first(*point));
        let busy = at_broken.and_then(|target| target.figures.generator_busy);
        let limit = at_broken.and_then(|target| target.limits.first());
        CapacitySummary {
            search,
            found,
            knee: knee(&latencies),
            limit: limit.map(|limit| (limit.name().to_owned(), limit.evidence.clone())),
            generator_busy: busy.filter(|busy| is_generator_bound(*busy)),
            probes,
        }
    }
}

fn tried(probe: &ProbeRow) -> Try {
    let held = match probe.outcome {
        RequirementOutcome::Held => Held::Yes,
        RequirementOutcome::Broken => Held::No,
        RequirementOutcome::CantTell => Held::Unclear,
    };
    Try { load: probe.load, held, answered: None }
}
