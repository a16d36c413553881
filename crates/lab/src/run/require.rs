//! Whether a requirement held: for the first target, over all its rounds at a point.

use ledger::RequirementOutcome;

use super::trial::Trial;
use crate::plan::{Expression, Requirement};

/// Metrics that are counted, not estimated: one wrong answer in any round is one too many.
const COUNTED: &[&str] = &["wrong", "missing", "misses", "missed", "merged"];

/// Whether a figure is as exact as those, and can't be added up over rounds.
fn is_exact(name: &str) -> bool {
    name == "least_updates" || name.starts_with("service.")
}

/// The figure's value and the requirement's outcome, from `least_rounds` rounds on.
pub(super) fn outcome(
    requirement: &Requirement,
    trials: &[Trial],
    confidence: f64,
    least_rounds: usize,
) -> (Option<f64>, RequirementOutcome) {
    let first: Vec<&Trial> = trials.iter().filter(|trial| trial.target == 0).collect();
    let held = |holds| {
        if holds { RequirementOutcome::Held } else { RequirementOutcome::Broken }
    };
    let of = |trial: &&&Trial| requirement.figure.value(&|name| trial.metric(name));
    if is_counted(&requirement.figure) {
        let counts: Vec<f64> = first.iter().filter_map(|trial| of(&trial)).collect();
        if counts.is_empty() {
            return (None, RequirementOutcome::CantTell);
        }
        let sum = counts.iter().sum();
        let holds = requirement.holds(sum);
        // One wrong answer while preparing breaks it; none while preparing proves nothing.
        if holds && first.iter().all(|trial| trial.measured_ns == 0) {
            return (None, RequirementOutcome::CantTell);
        }
        return (Some(sum), held(holds));
    }
    let valid = first.iter().filter(|trial| trial.is_valid());
    if requirement.figure.names().iter().any(|name| is_exact(name)) {
        return every_round(requirement, valid.map(|trial| of(&trial)));
    }
    let values: Vec<f64> = valid.filter_map(|trial| of(&trial)).collect();
    let Some(interval) = judge::series_interval(&values, confidence) else {
        return (None, RequirementOutcome::CantTell);
    };
    let ends = [interval.low, interval.high].map(|end| requirement.holds(end));
    let outcome = match ends {
        _ if values.len() < least_rounds => RequirementOutcome::CantTell,
        [low, high] if low == high => held(low),
        _ => RequirementOutcome::CantTell,
    };
    (Some(interval.mean), outcome)
}

/// What a service counts is exact, and often nothing: it has to hold in every round, and where it
/// was unseen in one nothing can be is_decided. The value is the mean.
fn every_round(
    requirement: &Requirement,
    values: impl Iterator<Item = Option<f64>>,
) -> (Option<f64>, RequirementOutcome) {
    let values: Vec<Option<f64>> = values.collect();
    let seen: Vec<f64> = values.iter().flatten().copied().collect();
    let mean = (!seen.is_empty()).then(|| seen.iter().sum::<f64>() / seen.len() as f64);
    let outcome = match (seen.iter().all(|value| requirement.holds(*value)), mean) {
        (false, _) => RequirementOutcome::Broken,
        (true, Some(_)) if seen.len() == values.len() => RequirementOutcome::Held,
        (true, _) => RequirementOutcome::CantTell,
    };
    (mean, outcome)
}

fn is_counted(figure: &Expression) -> bool {
    matches!(figure, Expression::Name(name) if COUNTED.contains(&&name[..]))
}

/// The first of the conditions under which a run is not worth going on with that a trial meets.
pub(super) fn reason_to_abort(conditions: &[Requirement], trials: &[Trial]) -> Option<String> {
    trials.iter().find_map(|trial| {
        let meets = |condition: &&Requirement| {
            let value = condition.figure.value(&|name| trial.metric(name));
            value.is_some_and(|value| condition.holds(value))
        };
        conditions.iter().find(meets).map(|condition| condition.text.clone())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Comparison;

    /// What becomes of a requirement when rounds show these values.
    fn outcome_of(
        name: &'static str,
        comparison: Comparison,
        bound: f64,
        values: &[Option<f64>],
    ) -> RequirementOutcome {
        let trials: Vec<Trial> = (1..)
            .zip(values)
            .map(|(round, value)| {
                let mut trial = Trial::begin(0, round, 0);
                trial.measured_ns = 1;
                trial.set_metrics(value.map(|value| (name.into(), value)).into_iter().collect());
                trial
            })
            .collect();
        let figure = Expression::Name(name.to_owned());
        let requirement = Requirement { text: name.to_owned(), figure, comparison, bound };
        outcome(&requirement, &trials, 0.95, judge::MIN_ROUNDS).1
    }

    #[test]
    fn counts_of_nothing_hold_unless_they_were_not_seen() {
        use RequirementOutcome::{Broken, CantTell, Held};
        let missed = |values: &[Option<f64>]| outcome_of("missed", Comparison::Equal, 0.0, values);
        assert_eq!(missed(&[Some(0.0); 5]), Held);
        assert_eq!(missed(&[Some(0.0), Some(1.0)]), Broken);
        assert_eq!(missed(&[None; 5]), CantTell);
        let least = |values: &[Option<f64>]| {
            outcome_of("least_updates", Comparison::GreaterOrEqual, 1.0, values)
        };
        assert_eq!(least(&[Some(3.0), Some(1.0)]), Held);
        assert_eq!(least(&[Some(3.0), Some(0.0)]), Broken);
        assert_eq!(least(&[Some(3.0), None]), CantTell);
    }
}
