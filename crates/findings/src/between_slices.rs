//! Work of a target outside its own slices, while other targets were measured.

use serde::Serialize;

use crate::summary::Summary;

/// From this share of a core on, a target's work outside its slices is named.
const NAMED_FROM_CORES: f64 = 0.01;

/// What a target did between its slices, over its trials at a point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BetweenSlices {
    /// The time between them.
    pub time_ns: f64,
    /// The CPU time that it used then.
    pub cpu_ns: f64,
}

impl BetweenSlices {
    /// Of one target at one point; `None` where it was unseen or other targets took no turns.
    pub fn of(summary: &Summary, point: usize, target: usize) -> Option<Self> {
        let here =
            summary.trials.iter().filter(|trial| trial.point == point && trial.target == target);
        let seen = here.filter_map(|trial| {
            Some((trial.usage.server_outside_ns?, trial.usage.server_outside_cpu_ns?))
        });
        let sum =
            seen.reduce(|(time, cpu), (more_time, more_cpu)| (time + more_time, cpu + more_cpu));
        sum.map(|(time_ns, cpu_ns)| Self { time_ns, cpu_ns })
    }

    /// Cores that it used on average.
    pub fn cores(self) -> f64 {
        self.cpu_ns / self.time_ns.max(1.0)
    }

    /// Whether it is enough to disturb the others.
    pub fn is_worth_naming(self) -> bool {
        self.cores() >= NAMED_FROM_CORES
    }
}
