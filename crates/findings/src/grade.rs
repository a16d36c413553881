//! The grade of a target's figures at a point: what they are worth, and why not more.
//!
//! Figures are those of the valid trials; without one those of the disturbed trials, and without
//! one of these those of the invalid ones. They are always there, and the grade stands beside them.

use ledger::Validity;

use crate::causes::{Cause, causes};
use crate::trial_summary::TrialSummary;

/// What the lab writes before the reason of a valid trial whose suite compares disturbed ones too.
const IGNORED: &str = "disturbances ignored: ";

/// A grade, with its causes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grade {
    /// Of which trials the figures are.
    pub validity: Validity,
    /// Whether the suite compares them although they were disturbed.
    pub ignored: bool,
    /// What disturbed or invalidated them, that of most rounds first; empty when they are clean.
    pub causes: Vec<Cause>,
    /// The rounds of these causes.
    pub rounds: usize,
}

impl Grade {
    /// Of a target's trials at one point, or of what of them the figures are.
    pub(crate) fn of(trials: &[&TrialSummary]) -> Grade {
        let counted = counted(trials);
        let validity = counted.first().map_or(Validity::Invalid, |trial| trial.row.validity);
        if validity == Validity::Invalid {
            let causes = invalid(trials.iter().copied());
            return Grade { validity, ignored: false, rounds: trials.len(), causes };
        }
        let (rounds, causes) = disturbances(counted.iter().map(|trial| (trial.round, *trial)));
        Grade { validity, ignored: validity == Validity::Valid && rounds > 0, causes, rounds }
    }

    /// In one word: `clean`, `disturbed` or `invalid`.
    pub fn word(&self) -> &'static str {
        match self.validity {
            Validity::Valid if !self.ignored => "clean",
            Validity::Valid | Validity::Disturbed => "disturbed",
            Validity::Invalid => "invalid",
        }
    }

    /// Whether nothing disturbed or invalidated the figures.
    pub fn is_clean(&self) -> bool {
        self.validity == Validity::Valid && !self.ignored
    }
}

/// The trials that figures are of.
pub(crate) fn counted<'a>(trials: &[&'a TrialSummary]) -> Vec<&'a TrialSummary> {
    let with = |validity: Validity| -> Vec<&'a TrialSummary> {
        trials.iter().copied().filter(|trial| trial.row.validity == validity).collect()
    };
    let order = [Validity::Valid, Validity::Disturbed, Validity::Invalid];
    order.into_iter().map(with).find(|found| !found.is_empty()).unwrap_or_default()
}

/// The number of rounds in which one of these trials, each with its round, is disturbed, or was and
/// that was ignored; and by what.
pub fn disturbances<'a, Round: Ord + Copy>(
    trials: impl IntoIterator<Item = (Round, &'a TrialSummary)>,
) -> (usize, Vec<Cause>) {
    let reason = |trial: &'a TrialSummary| {
        let reason = trial.row.reason.as_deref();
        match trial.row.validity {
            Validity::Valid => reason.and_then(|reason| reason.strip_prefix(IGNORED)),
            Validity::Disturbed => Some(reason.unwrap_or("no reason was given")),
            Validity::Invalid => None,
        }
    };
    let found = trials.into_iter().filter_map(|(round, trial)| Some((round, reason(trial)?)));
    let found: Vec<(Round, &str)> = found.collect();
    let mut rounds: Vec<Round> = found.iter().map(|(round, _)| *round).collect();
    rounds.sort_unstable();
    rounds.dedup();
    (rounds.len(), causes(found))
}

/// Why trials are invalid, each reason once, that of most rounds first. Reasons that differ in
/// their numbers alone, such as ports, are one: the first of them stands for all.
pub fn invalid<'a>(trials: impl IntoIterator<Item = &'a TrialSummary>) -> Vec<Cause> {
    let mut found: Vec<Cause> = Vec::new();
    for trial in trials.into_iter().filter(|trial| trial.row.validity == Validity::Invalid) {
        let text = trial.row.reason.as_deref().unwrap_or("no reason was given");
        match found.iter_mut().find(|cause| kind(&cause.text).eq(kind(text))) {
            Some(cause) => cause.rounds += 1,
            None => found.push(Cause { text: text.to_owned(), rounds: 1 }),
        }
    }
    found.sort_by_key(|cause| std::cmp::Reverse(cause.rounds));
    found
}

/// A reason without its numbers.
fn kind(reason: &str) -> impl Iterator<Item = char> {
    reason.chars().filter(|letter| !letter.is_ascii_digit())
}
