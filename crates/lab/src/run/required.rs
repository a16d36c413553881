//! What became of requirements, and which named loads each target carries, into the ledger.

use ledger::{Ledger, LedgerError, PointId, RunId, TargetId};

use super::require::{Terms, judge_requirement};
use super::trial::Trial;
use crate::plan::Point;

/// Where rows belong to.
pub(super) struct Place<'a> {
    pub(super) run: RunId,
    pub(super) point: PointId,
    /// The targets, in the order of the point's.
    pub(super) targets: &'a [TargetId],
}

/// Writes what became of each requirement, by the first target, and of each named load, by every
/// target that was measured. `terms` are those of the first target.
pub(super) fn store<'p>(
    ledger: &mut Ledger,
    place: &Place<'_>,
    point: &'p Point,
    trials: &[Trial],
    mut terms: Terms<'p>,
) -> Result<(), LedgerError> {
    for requirement in &point.requirements {
        let judged = judge_requirement(requirement, trials, &terms);
        ledger.add_requirement(&judged.row(place.run, place.point, requirement))?;
    }
    for (target, (of_point, id)) in point.targets.iter().zip(place.targets).enumerate() {
        if trials.iter().all(|trial| trial.target != target) {
            continue;
        }
        (terms.target, terms.subject) = (target, &of_point.name);
        for (name, requirement) in &point.carried {
            let judged = judge_requirement(requirement, trials, &terms);
            let row = judged.row(place.run, place.point, requirement);
            ledger.add_carried(&row.of_target(*id, name))?;
        }
    }
    Ok(())
}
