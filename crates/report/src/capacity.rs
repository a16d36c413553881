//! The highest load that meets every requirement, from a run whose points are loads.

use judge::limits::is_generator_bound;
use judge::{Capacity, Held, Try, knee};
use ledger::{ProbeRow, RequirementOutcome, SearchRow};

use crate::number::{duration, nanoseconds, percent, plain, rate};
use crate::summary::{PointSummary, Summary};

/// A search for the highest load.
#[derive(Debug, Clone, PartialEq)]
pub struct CapacitySummary {
    /// What was searched.
    pub search: SearchRow,
    /// Every load that was tried, in order: the point, and what became of it.
    pub probes: Vec<(usize, ProbeRow)>,
    /// The loads between which the highest one lies.
    pub found: Capacity,
    /// The load beyond which latency rises faster than the load; `None` when there is none.
    pub knee: Option<f64>,
    /// The busy share of the generator at the lowest load that broke, when it was too high for the
    /// break to be the target's.
    pub generator_busy: Option<f64>,
    /// What gave way first at the lowest load that broke: its name and its evidence.
    pub limit: Option<(String, String)>,
}

impl CapacitySummary {
    /// What these loads say.
    pub(crate) fn of(
        search: SearchRow,
        probes: Vec<(usize, ProbeRow)>,
        points: &[PointSummary],
    ) -> CapacitySummary {
        let tries: Vec<Try> = probes.iter().map(|(_, probe)| tried(probe)).collect();
        let found = Capacity::of(&tries);
        let first = |point: usize| points.get(point)?.targets.first();
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

    /// A load in words.
    pub fn load(&self, load: f64) -> String {
        if self.search.key.ends_with("rate") {
            return rate(load);
        }
        let unit = self.search.key.rsplit('.').next().unwrap_or_default();
        let unit = if load == 1.0 { unit.trim_end_matches('s') } else { unit };
        format!("{} {unit}", plain(load))
    }

    /// The answer in a sentence or two.
    pub(crate) fn sentences(&self, summary: &Summary) -> Vec<String> {
        let name = &summary.targets[0].name;
        let broke = |load: f64| {
            let probe = self.probes.iter().find(|(_, probe)| probe.load == load);
            let reason = probe.and_then(|(_, probe)| probe.reason.clone());
            reason.unwrap_or_else(|| "a requirement".to_owned())
        };
        let first = match (self.found.held, self.found.broken) {
            (Some(held), Some(broken)) => {
                let middle = match self.search.key.ends_with("rate") {
                    true => (held * broken).sqrt(),
                    false => held,
                };
                format!(
                    "{name} carries {} [{}, {}]; what breaks first: {}.",
                    self.load(middle),
                    self.load(held),
                    self.load(broken),
                    broke(broken)
                )
            }
            (Some(held), None) => {
                format!("{name} carries at least {}, the most that was told.", self.load(held))
            }
            (None, Some(broken)) => {
                format!("{name} does not even carry {}: {}.", self.load(broken), broke(broken))
            }
            (None, None) => format!("It can't be told what {name} carries: no load was clear."),
        };
        let mut lines = vec![first];
        if let Some((limit, evidence)) = &self.limit {
            lines.push(format!("The limit there is {limit}: {evidence}."));
        }
        if let Some(busy) = self.generator_busy {
            lines.push(format!(
                "The generator was {} busy there, so this is a lower bound: give it more threads \
                 and CPUs.",
                percent(busy)
            ));
        }
        if let Some(knee) = self.knee {
            let knee = self.load(knee);
            lines.push(format!("The knee is at {knee}: beyond it latency rises faster than load."));
        }
        lines
    }

    /// A line per load, in the order of loads.
    pub(crate) fn table(&self, summary: &Summary) -> Vec<String> {
        let lines = crate::words::align(&self.rows(summary), str::to_owned);
        lines.into_iter().map(|line| format!("  {line}")).collect()
    }

    /// The cells of that table, with its head: load, outcome, figures, and why.
    pub(crate) fn rows(&self, summary: &Summary) -> Vec<Vec<String>> {
        let mut probes: Vec<&(usize, ProbeRow)> = self.probes.iter().collect();
        probes.sort_by(|a, b| a.1.load.total_cmp(&b.1.load));
        let mut rows = vec![
            ["load", "", "answered", "p50", "p99", "CPU/op", "rounds", ""]
                .map(str::to_owned)
                .to_vec(),
        ];
        for (point, probe) in probes {
            let point = &summary.points[*point];
            let target = point.targets.first();
            let figures = target.map(|target| &target.figures);
            let latency =
                |ns: Option<u64>| ns.map_or("unseen".to_owned(), |ns| duration(ns as f64));
            rows.push(vec![
                self.load(probe.load),
                probe.outcome.word().replace("cant_tell", "can't tell"),
                figures.and_then(|one| one.rate_per_s).map_or("unseen".to_owned(), rate),
                latency(figures.and_then(|one| one.latency.p50_ns)),
                latency(figures.and_then(|one| one.latency.p99_ns)),
                figures
                    .and_then(|one| one.server.cpu_ns_per_op)
                    .map_or("unseen".to_owned(), nanoseconds),
                point.rounds.to_string(),
                crate::text::one_line(probe.reason.as_deref().unwrap_or_default()),
            ]);
        }
        rows
    }
}

fn tried(probe: &ProbeRow) -> Try {
    let held = match probe.outcome {
        RequirementOutcome::Held => Held::Yes,
        RequirementOutcome::Broken => Held::No,
        RequirementOutcome::CantTell => Held::Unclear,
    };
    Try { load: probe.load, held }
}
