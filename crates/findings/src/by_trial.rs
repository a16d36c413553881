//! The rows of a run's tables by the trial that they belong to.

use std::collections::HashMap;

use ledger::TrialId;

/// The rows of a table that belong to trials.
pub(crate) struct ByTrial<'view, Row>(HashMap<TrialId, Vec<&'view Row>>);

impl<'view, Row> ByTrial<'view, Row> {
    /// The rows, each of which names its trial.
    pub(crate) fn new(rows: &'view [Row], trial: fn(&Row) -> TrialId) -> Self {
        let mut all: HashMap<TrialId, Vec<&Row>> = HashMap::new();
        rows.iter().for_each(|row| all.entry(trial(row)).or_default().push(row));
        ByTrial(all)
    }

    /// Those of one trial.
    pub(crate) fn of(&self, trial: TrialId) -> &[&'view Row] {
        self.0.get(&trial).map(Vec::as_slice).unwrap_or_default()
    }
}
