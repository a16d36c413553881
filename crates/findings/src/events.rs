//! The events of a suite that ran against targets, and their outcomes.

use std::collections::HashMap;

use ledger::{EventRow, TrialId};

/// One event that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct EventSummary {
    /// Its trial.
    pub trial: usize,
    /// The row.
    pub row: EventRow,
}

/// The events of a run in the order of its trials.
pub(crate) fn events(rows: Vec<EventRow>, trials: &HashMap<TrialId, usize>) -> Vec<EventSummary> {
    let placed = |row: EventRow| Some(EventSummary { trial: *trials.get(&row.trial_id)?, row });
    let mut events: Vec<EventSummary> = rows.into_iter().filter_map(placed).collect();
    events.sort_by_key(|one| (one.trial, one.row.ordinal));
    events
}
