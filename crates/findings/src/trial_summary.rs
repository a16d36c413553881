//! The results of one trial.

use ledger::{Cause, CauseKind, StatementRow, TrialId, TrialRow, Validity};

use crate::call_values::ValueFigures;
use crate::causes::Why;
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
    /// The statements that its target executed, the first that in which most connections were.
    pub statements: Vec<StatementRow>,
}

/// How much others disturbed a trial, in shares of its time that add up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Disturbance {
    /// Of the run's cores what other programs ran, of a core what the hypervisor kept, and how long
    /// the host paused.
    pub(crate) taken: f64,
    /// How long its threads waited for a core, on average; `None` where they may have waited for
    /// each other.
    pub(crate) waited: Option<f64>,
}

impl Disturbance {
    /// Both in numbers that compare: waiting counts where it is known of both.
    pub(crate) fn compared_with(self, other: Self) -> (f64, f64) {
        match self.waited.zip(other.waited) {
            Some((own, others)) => (self.taken + own, other.taken + others),
            None => (self.taken, other.taken),
        }
    }
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

    /// Why it isn't to be compared, or what disturbed it and is ignored.
    pub fn why(&self) -> Vec<Why> {
        Why::of(self.row.validity, self.row.reason.as_deref(), &self.row.causes)
    }

    /// Its point and round.
    pub(crate) fn point_and_round(&self) -> (usize, u32) {
        (self.point, self.round)
    }

    /// Whether it was disturbed by what nothing else shows how much of: while pages are swapped or
    /// a quota is used up, everything may stand still.
    pub(crate) fn has_unmeasured_cause(&self) -> bool {
        let is_unmeasured =
            |cause: &Cause| matches!(cause.kind, CauseKind::Swap | CauseKind::Quota);
        self.row.causes.iter().any(is_unmeasured)
    }

    /// How much others disturbed it. `None` where what other programs ran was not seen: what isn't
    /// known is not nothing.
    pub(crate) fn disturbance(&self) -> Option<Disturbance> {
        let seen = &self.usage;
        let rest = [seen.steal_core_most, seen.paused].into_iter().flatten();
        // With more runnable threads than cores they wait for each other.
        let has_cores = seen.server_runnable_threads <= seen.server_cores;
        let waited = seen.server_waited_ns.zip(seen.measured_ns).filter(|_| has_cores);
        let threads = seen.server_runnable_threads.unwrap_or(1.0).max(1.0);
        let waited = waited.map(|(waited_ns, ns)| waited_ns / ns.max(1.0) / threads);
        Some(Disturbance { taken: seen.foreign? + rest.sum::<f64>(), waited })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_that_is_known_of_one_side_only_is_no_imbalance() {
        let waits = Disturbance { taken: 0.2, waited: Some(0.16) };
        let unknown = Disturbance { taken: 0.19, waited: None };
        assert_eq!(waits.compared_with(unknown), (0.2, 0.19));
        assert_eq!(unknown.compared_with(waits), (0.19, 0.2));
        let (own, others) = waits.compared_with(Disturbance { taken: 0.2, waited: Some(0.0) });
        assert!((own - 0.36).abs() < 1e-12 && (others - 0.2).abs() < 1e-12);
    }
}
