//! The results of one trial.

use ledger::{TrialId, TrialRow, Validity};

use crate::call_values::ValueFigures;
use crate::counters::CounterFigures;
use crate::figures::Figures;
use crate::groups::GroupFigures;
use crate::streams::StreamFigures;

/// One trial.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialSummary {
    /// Its id.
    pub id: TrialId,
    /// Its point.
    pub point: usize,
    /// Its round's number, from 1.
    pub round: u32,
    /// Its target.
    pub target: usize,
    /// The row.
    pub row: TrialRow,
    /// Its metrics.
    pub figures: Figures,
    /// Each group of clients and each operation.
    pub groups: Vec<GroupFigures>,
    /// The updates of each group of clients that subscribed.
    pub stream_groups: Vec<(String, StreamFigures)>,
    /// Figures that its calls measured themselves.
    pub values: Vec<ValueFigures>,
    /// The counters of its target.
    pub counters: Vec<CounterFigures>,
    /// Slices that were disturbed, set aside, and measured again.
    pub slices_measured_again: usize,
    /// The rates in the first and in the last third of its slices.
    pub(crate) thirds: Option<(f64, f64)>,
    /// The figures of both sides and the host, from which limits are derived.
    pub usage: judge::limits::Figures,
}

impl TrialSummary {
    /// Whether it may be compared.
    pub fn is_valid(&self) -> bool {
        self.row.validity == Validity::Valid
    }

    /// Whether its figures are right, though a disturbance may have moved them.
    pub fn is_usable(&self) -> bool {
        self.row.validity != Validity::Invalid
    }

    /// How much others disturbed it, in shares of its time that add up: of the run's cores what
    /// other programs ran, of a core what the hypervisor kept, and how long the host paused and
    /// its threads waited for a core. `None` where what other programs ran was not seen: what isn't
    /// known is not nothing.
    pub fn disturbance(&self) -> Option<f64> {
        let seen = &self.usage;
        // With more runnable threads than cores they wait for each other.
        let has_cores = seen.server_runnable_threads <= seen.server_cores;
        let waited = seen.server_waited_ns.zip(seen.measured_ns).filter(|_| has_cores);
        let waited = waited.map(|(waited_ns, ns)| waited_ns / ns.max(1.0));
        let rest = [seen.steal_core_most, seen.paused, waited].into_iter().flatten();
        Some(seen.foreign? + rest.sum::<f64>())
    }

    /// Whether each operation has a latency, but for updates, which have no request.
    pub(crate) fn has_all_latencies(&self) -> bool {
        let latencies: u64 = self.groups.iter().map(|group| group.latency.count).sum();
        let updates: u64 = self.stream_groups.iter().map(|(_, streams)| streams.updates).sum();
        latencies + updates >= self.row.operations
    }
}

/// The trials of one point: a run's trials stand in the order of its points.
pub(crate) fn at_point(trials: &[TrialSummary], point: usize) -> &[TrialSummary] {
    let first = trials.partition_point(|trial| trial.point < point);
    let end = trials.partition_point(|trial| trial.point <= point);
    &trials[first..end]
}
