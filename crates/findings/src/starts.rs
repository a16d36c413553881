//! Targets that ran on from round to round. What differs from one start of a program to the next,
//! such as where its memory lies, is then the same in every round: no interval over rounds has it
//! in, however narrow it is.

use ledger::DataState;

use crate::summary::Summary;
use crate::trial_summary::TrialSummary;

/// The targets, as indices, that were started in one round and ran on in others.
pub fn started_once(summary: &Summary) -> Vec<usize> {
    let is_mixed = |target: &usize| {
        let of_target = || summary.trials.iter().filter(|trial| trial.target == *target);
        of_target().any(is_continued) && !of_target().all(is_continued)
    };
    (0..summary.targets.len()).filter(is_mixed).collect()
}

/// Whether its target was warm although nothing was prepared or warmed up in its round.
fn is_continued(trial: &TrialSummary) -> bool {
    let row = &trial.row;
    row.state == DataState::Warm && row.prepare_ns.is_none() && row.warmup_ns.is_none()
}
