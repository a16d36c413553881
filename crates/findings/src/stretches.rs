//! The stretches of a schedule, of all trials of a target at a point that count.

use ledger::{LedgerError, StretchRow};
use serde::Serialize;

use crate::latency::Latency;

/// One of several rates, a tenth of a trace, or else the whole of a schedule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StretchFigures {
    /// The group of clients whose schedule it is.
    pub clients: String,
    /// Its place in the schedule, from 0.
    pub ordinal: u32,
    /// What it asks for, in words.
    pub name: String,
    /// The trials, and those of them in which the target fell behind in it.
    pub trials: usize,
    /// See `trials`.
    pub overloaded_trials: usize,
    /// Requests that became due in it, per second of its time.
    pub offered_per_s: Option<f64>,
    /// Requests that were answered while it lasted, per second.
    pub answered_per_s: Option<f64>,
    /// The fewest that waited for a slot at once in its second half, where most did of all trials.
    pub waited: u64,
    /// Latencies of what was due in it, where the schedule has several stretches.
    #[serde(rename = "latency_ns")]
    pub latency: Option<Latency>,
    /// Wrong answers to what was due in it.
    pub wrong: u64,
    /// What was refused of it.
    pub refused: u64,
    /// What was not answered in time.
    pub missing: u64,
}

impl StretchFigures {
    /// Those of these rows, by group of clients and in their order.
    ///
    /// Fails when a histogram in the ledger is damaged.
    pub(crate) fn of(rows: &[&StretchRow]) -> Result<Vec<StretchFigures>, LedgerError> {
        let key = |row: &StretchRow| (row.clients.clone(), row.ordinal);
        let mut sorted = rows.to_vec();
        sorted.sort_by_key(|row| key(row));
        sorted.chunk_by(|a, b| key(a) == key(b)).map(StretchFigures::of_one).collect()
    }

    fn of_one(rows: &[&StretchRow]) -> Result<StretchFigures, LedgerError> {
        let sum = |of: fn(&StretchRow) -> u64| rows.iter().map(|row| of(row)).sum::<u64>();
        let length_ns = sum(|row| row.length_ns);
        let per_s = |count: u64| (length_ns > 0).then(|| count as f64 * 1e9 / length_ns as f64);
        let latency = Latency::of_all(rows.iter().filter_map(|row| row.latency()))?;
        let first = rows[0];
        Ok(StretchFigures {
            clients: first.clients.clone(),
            ordinal: first.ordinal,
            name: first.name.clone(),
            trials: rows.len(),
            overloaded_trials: rows.iter().filter(|row| row.overloaded).count(),
            offered_per_s: per_s(sum(|row| row.offered)),
            answered_per_s: per_s(sum(|row| row.answered)),
            waited: rows.iter().map(|row| row.waited).max().unwrap_or(0),
            latency: latency.seen().copied(),
            wrong: sum(|row| row.wrong),
            refused: sum(|row| row.refused),
            missing: sum(|row| row.missing),
        })
    }

    /// The part of what was due that was not answered while it lasted, 0 to 1.
    pub fn shortfall(&self) -> f64 {
        match self.offered_per_s.zip(self.answered_per_s) {
            Some((due, answered)) if due > 0.0 => (1.0 - answered / due).max(0.0),
            _ => 0.0,
        }
    }

    /// Of these the one in which the target fell behind most, and all of the same schedule.
    pub fn worst(all: &[StretchFigures]) -> Option<(&StretchFigures, Vec<&StretchFigures>)> {
        let behind = all.iter().filter(|one| one.overloaded_trials > 0);
        let order = |one: &StretchFigures| (one.shortfall(), one.waited as f64);
        let worst = behind.max_by(|a, b| {
            let ((a, waited_in_a), (b, waited_in_b)) = (order(a), order(b));
            a.total_cmp(&b).then(waited_in_a.total_cmp(&waited_in_b))
        })?;
        let of_schedule = all.iter().filter(|one| one.clients == worst.clients);
        Some((worst, of_schedule.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_is_that_in_which_the_greatest_part_was_not_answered() {
        let row = |clients: &str, ordinal, offered, answered, overloaded| StretchRow {
            clients: clients.to_owned(),
            ordinal,
            length_ns: 2_000_000_000,
            offered,
            answered,
            overloaded,
            ..StretchRow::default()
        };
        let rows = [
            row("b", 0, 2_000, 2_000, false),
            row("b", 1, 3_000, 2_000, true),
            row("b", 2, 200, 1_200, false),
            row("a", 0, 1_000, 900, true),
            row("b", 1, 3_000, 2_200, false),
        ];
        let all = StretchFigures::of(&rows.iter().collect::<Vec<_>>()).unwrap();
        let names: Vec<_> = all.iter().map(|one| (&one.clients[..], one.ordinal)).collect();
        assert_eq!(names, [("a", 0), ("b", 0), ("b", 1), ("b", 2)]);
        let (worst, of_schedule) = StretchFigures::worst(&all).unwrap();
        assert_eq!((worst.trials, worst.overloaded_trials, of_schedule.len()), (2, 1, 3));
        assert_eq!((worst.offered_per_s, worst.answered_per_s), (Some(1_500.0), Some(1_050.0)));
        assert_eq!(all[3].shortfall(), 0.0, "it caught up");
        assert!(StretchFigures::worst(&all[1..2]).is_none());
    }
}
