//! The counters of services: of one trial, or of all valid trials of a target at a point.

use std::collections::BTreeMap;

use ledger::CounterRow;
use serde::Serialize;

/// One counter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CounterFigures {
    /// Its name, as the service writes it.
    pub name: String,
    /// Whether it only grows.
    pub grows: bool,
    /// Its growth in the measured time, of all trials together; or the mean of where it stood at
    /// the end of each.
    pub value: f64,
    /// Its growth per operation; `None` where it does not grow or nothing was done.
    pub per_op: Option<f64>,
}

impl CounterFigures {
    /// The counters of trials with these numbers of operations, by name. A counter that one of the
    /// trials did not see is left out, because its sum would be too small.
    pub(crate) fn merged(trials: &[(&[&CounterRow], u64)]) -> Vec<CounterFigures> {
        let mut sums: BTreeMap<&str, (bool, f64, usize)> = BTreeMap::new();
        for row in trials.iter().flat_map(|(rows, _)| rows.iter()) {
            let sum = sums.entry(&row.name).or_insert((row.grows, 0.0, 0));
            (sum.1, sum.2) = (sum.1 + row.value, sum.2 + 1);
        }
        let operations: u64 = trials.iter().map(|(_, operations)| operations).sum();
        let seen = sums.into_iter().filter(|(_, (_, _, seen))| *seen == trials.len());
        let figures = |(name, (grows, sum, seen)): (&str, (bool, f64, usize))| CounterFigures {
            name: name.to_owned(),
            grows,
            value: if grows { sum } else { sum / seen as f64 },
            per_op: (grows && operations > 0).then(|| sum / operations as f64),
        };
        seen.map(figures).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::TrialId;

    #[test]
    fn growth_adds_up_and_levels_are_averaged_over_trials_that_saw_them() {
        let row = |name: &str, grows, value| CounterRow {
            trial_id: TrialId::from(1),
            name: name.into(),
            grows,
            value,
        };
        let rows = [
            row("gets", true, 10.0),
            row("items", false, 4.0),
            row("gets", true, 20.0),
            row("items", false, 6.0),
            row("late", true, 1.0),
        ];
        let rows: Vec<&CounterRow> = rows.iter().collect();
        let merged = CounterFigures::merged(&[(&rows[..2], 10), (&rows[2..], 5)]);
        let names: Vec<_> =
            merged.iter().map(|one| (&one.name[..], one.value, one.per_op)).collect();
        assert_eq!(names, [("gets", 30.0, Some(2.0)), ("items", 5.0, None)]);
    }
}
