//! The grade of a target's figures at a point: what they are worth, and why not more.
//!
//! Figures are those of the valid trials; without one those of the disturbed trials, and without
//! one of these those of the invalid ones. They are always there, and the grade stands beside them.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use ledger::Validity;

use crate::causes::{CauseSummary, Why, grouped};
use crate::trial_summary::TrialSummary;

/// A grade, with its causes.
#[derive(Debug, Clone, PartialEq)]
pub struct Grade {
    /// Of which trials the figures are.
    pub validity: Validity,
    /// Whether the suite compares them although they were disturbed.
    pub ignored: bool,
    /// What disturbed or invalidated them, that of most rounds first; empty when they are clean.
    pub causes: Vec<CauseSummary>,
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
        let (rounds, causes) = disturbances(counted);
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

/// The number of rounds in which one of these trials is disturbed, or was and that was ignored; and
/// by what, that of most rounds first.
pub fn disturbances<'a>(
    trials: impl IntoIterator<Item = &'a TrialSummary>,
) -> (usize, Vec<CauseSummary>) {
    let is_disturbed = |trial: &&TrialSummary| match trial.row.validity {
        Validity::Valid => !trial.row.causes.is_empty(),
        Validity::Disturbed => true,
        Validity::Invalid => false,
    };
    let found: Vec<&TrialSummary> = trials.into_iter().filter(is_disturbed).collect();
    let rounds: BTreeSet<_> = found.iter().map(|trial| trial.point_and_round()).collect();
    let causes = found
        .iter()
        .flat_map(|trial| trial.row.causes.iter().map(|cause| (trial.point_and_round(), cause)));
    let causes = grouped(causes).into_iter();
    let summary = |(cause, rounds)| CauseSummary { why: Why::Disturbed(cause), rounds };
    (rounds.len(), causes.map(summary).collect())
}

/// Why a target's trials are invalid, each reason once, that of most rounds first. Reasons that
/// differ in their numbers alone, such as ports, are one: the first of them stands for all.
pub fn invalid<'a>(trials: impl IntoIterator<Item = &'a TrialSummary>) -> Vec<CauseSummary> {
    let mut found: Vec<(&str, BTreeSet<_>)> = Vec::new();
    for trial in trials.into_iter().filter(|trial| trial.row.validity == Validity::Invalid) {
        let text = trial.row.reason.as_deref().unwrap_or("no reason was given");
        match found.iter_mut().find(|(known, _)| kind(known).eq(kind(text))) {
            Some((_, rounds)) => _ = rounds.insert(trial.point_and_round()),
            None => found.push((text, [trial.point_and_round()].into())),
        }
    }
    found.sort_by_key(|(_, rounds)| Reverse(rounds.len()));
    let summary =
        |(text, rounds): (&str, _)| CauseSummary { why: Why::Invalid(text.to_owned()), rounds };
    found.into_iter().map(summary).collect()
}

/// A reason without its numbers.
fn kind(reason: &str) -> impl Iterator<Item = char> {
    reason.chars().filter(|letter| !letter.is_ascii_digit())
}
