//! What came of the stretches of a trial's schedules, in the ledger.

use ledger::{Ledger, LedgerError, StretchRow, TrialId};

use super::trial::Trial;
use crate::drive::empty_histogram;
use crate::plan::Point;

/// Writes the stretches of each group's schedule.
pub(super) fn store(
    ledger: &mut Ledger,
    trial_id: TrialId,
    point: &Point,
    trial: &Trial,
) -> Result<(), LedgerError> {
    for one in &trial.stretches {
        let group = &point.clients[one.group];
        let mut latency = empty_histogram();
        one.latencies.iter().for_each(|own| own.add_to(&mut latency));
        let row = StretchRow {
            trial_id,
            clients: group.name.clone(),
            ordinal: one.ordinal as u32,
            name: group.arrivals.stretch_name(one.ordinal),
            length_ns: one.length_ns,
            offered: one.waited.offered,
            answered: one.answered,
            waited: one.waited.fewest,
            overloaded: one.is_overloaded(),
            wrong: one.outcomes.wrong,
            refused: one.outcomes.refused,
            missing: one.outcomes.missing,
            ..StretchRow::default()
        };
        ledger.add_stretch(&row.with_latency(&latency)?)?;
    }
    Ok(())
}
