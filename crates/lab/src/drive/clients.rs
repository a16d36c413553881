//! A group of slots: how many, how deep, when they send, and on which CPUs.

use base::units::Span;
use load::Scenario;
use wire::Backend;

use super::arrivals::Arrivals;

/// A named group of slots.
#[derive(Clone, Debug)]
pub struct Clients {
    /// Its name.
    pub name: String,
    /// Its operations with their weights, where groups differ; else it does the workload's.
    pub mix: Option<Vec<(usize, u32)>>,
    /// How many connections, each one slot.
    pub connections: usize,
    /// How many requests each keeps outstanding.
    pub pipeline: usize,
    /// When requests are sent.
    pub arrivals: Arrivals,
    /// How many threads drive them.
    pub threads: usize,
    /// The CPUs these threads are pinned to; empty is all.
    pub cpus: Vec<usize>,
    /// How long an answer may take before it is missing.
    pub timeout: Span,
    /// A new connection after this number of answers; `None` keeps connections.
    pub reconnect_every: Option<u64>,
    /// Whether the last microseconds before a scheduled request are spun away.
    pub spin: bool,
    /// How threads make the system calls of their connections.
    pub io: Backend,
}

impl Clients {
    /// What this group does of all that the groups do.
    pub fn scenario(&self, all: &Scenario) -> Scenario {
        let mix = self.mix.as_ref().unwrap_or(&all.mix).clone();
        let takes_steps = self.mix.is_none() || self.arrivals == Arrivals::Steps;
        let steps = if takes_steps { all.steps.clone() } else { Vec::new() };
        Scenario { mix, steps, ..all.clone() }
    }
}
