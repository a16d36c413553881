//! What a target says of its statements, and what would help it, into the ledger.

use ledger::{AdviceRow, FactRow, Ledger, LedgerError, StatementRow, TargetId, TrialId};
use load::{Advice, Statement};

use super::trial::Trial;

/// Writes what was seen in a trial, and the version of its target.
pub(super) fn store(
    ledger: &mut Ledger,
    target_id: TargetId,
    trial_id: TrialId,
    trial: &Trial,
) -> Result<(), LedgerError> {
    let Some(seen) = &trial.advised else { return Ok(()) };
    if let Some(version) = &seen.version {
        let (name, value) = ("version".to_owned(), version.clone());
        ledger.add_fact(&FactRow { target_id, name, value })?;
    }
    for (rank, one) in (1..).zip(&seen.statements) {
        let Statement { text, active, waits, plan } = one.clone();
        ledger.add_statement(&StatementRow { trial_id, rank, text, active, waits, plan })?;
    }
    for (rank, one) in (1..).zip(&seen.advice) {
        let Advice { code, wait, share, evidence, statement, help } = one.clone();
        let statement = statement.and_then(|place| u32::try_from(place + 1).ok());
        let code = code.to_owned();
        let row = AdviceRow { trial_id, rank, code, wait, share, evidence, statement, help };
        ledger.add_advice(&row)?;
    }
    Ok(())
}
