//! Targets that were started once and ran on from round to round. What differs from one start of a
//! program to the next, such as where its memory lies, is then the same in every round: no
//! interval over rounds has it in, however narrow it is.

use ledger::DataState;

use crate::summary::Summary;
use crate::trial_summary::TrialSummary;

/// The fact of a target that the lab didn't start: it runs on, however often it is prepared.
const STARTED: &str = "started";

/// What every run of a batch reports: the time of its process.
const PROCESS_TIME: &str = "wall_ns";

/// The targets, as indices, that were started once: before the run, or in one of its rounds.
pub fn started_once(summary: &Summary) -> Vec<usize> {
    of_targets(&summary.facts, &summary.trials)
}

/// The same of targets with these facts, and their trials.
pub(crate) fn of_targets(facts: &[Vec<(String, String)>], trials: &[TrialSummary]) -> Vec<usize> {
    let is_one = |target: &usize| {
        let of_target = || trials.iter().filter(|trial| trial.target == *target);
        facts[*target].iter().any(|(name, _)| name == STARTED)
            || (of_target().any(is_continued) && !of_target().all(is_continued))
    };
    (0..facts.len()).filter(is_one).collect()
}

/// Whether its target was warm although nothing was prepared or warmed up in its round. Of a batch
/// each run is a process of its own.
fn is_continued(trial: &TrialSummary) -> bool {
    let row = &trial.row;
    let is_batch = trial.values.iter().any(|one| one.name == PROCESS_TIME);
    row.state == DataState::Warm && row.prepare_ns.is_none() && row.warmup_ns.is_none() && !is_batch
}
