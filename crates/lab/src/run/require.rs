//! Whether a requirement held: for the first target, over all its rounds at a point.

use ledger::RequirementOutcome;

use super::stopping::CONFIDENCE;
use super::trial::Trial;
use crate::plan::Requirement;

/// Metrics that are counted, not estimated: one wrong answer in any round is one too many.
const COUNTED: &[&str] = &["wrong", "missing", "misses"];

/// The metric's value and what became of the requirement.
pub(super) fn outcome(
    requirement: &Requirement,
    trials: &[Trial],
) -> (Option<f64>, RequirementOutcome) {
    let first: Vec<&Trial> = trials.iter().filter(|trial| trial.target == 0).collect();
    let held = |holds| {
        if holds { RequirementOutcome::Held } else { RequirementOutcome::Broken }
    };
    if COUNTED.contains(&requirement.metric) {
        if first.iter().all(|trial| trial.measured_ns == 0) {
            return (None, RequirementOutcome::CantTell);
        }
        let sum = first.iter().filter_map(|trial| trial.metric(requirement.metric)).sum();
        return (Some(sum), held(requirement.holds(sum)));
    }
    let valid = first.iter().filter(|trial| trial.is_valid());
    let values: Vec<f64> = valid.filter_map(|trial| trial.metric(requirement.metric)).collect();
    let Some(interval) = judge::series_interval(&values, CONFIDENCE) else {
        return (None, RequirementOutcome::CantTell);
    };
    let ends = [interval.low, interval.high].map(|end| requirement.holds(end));
    let outcome = match ends {
        _ if values.len() < judge::LEAST_ROUNDS => RequirementOutcome::CantTell,
        [low, high] if low == high => held(low),
        _ => RequirementOutcome::CantTell,
    };
    (Some(interval.mean), outcome)
}
