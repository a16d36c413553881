//! What the answers of a trial make of it: errors that no requirement allows make it invalid.

use findings::{CONNECTIONS_BROKEN, OPERATIONS_REFUSED};
use ledger::Validity;

use super::trial::Trial;
use crate::drive::Counts;
use crate::plan::{Comparison, ERRORS, Expression, OF_THOSE_ASKED, Requirement};

impl Trial {
    /// Wrong answers and refusals make a trial invalid, for the speed of either means nothing, and
    /// so do connections that broke; unless a requirement allows as many.
    pub(super) fn judge_answers(&mut self, requirements: &[Requirement]) {
        let was_invalid = self.validity == Validity::Invalid;
        self.hold_answers(requirements);
        self.is_spoilt_by_answers = !was_invalid && self.validity == Validity::Invalid;
    }

    fn hold_answers(&mut self, requirements: &[Requirement]) {
        let allows = |outcome| requirements.iter().any(|one| self.is_within(one, outcome));
        let Counts { refused, broken, .. } = self.counts;
        let outside = self.refused_outside;
        let [allows_wrong, allows_refused, allows_broken] =
            ["wrong", "refused", "missing"].map(allows);
        let how = self.wrong_answers.first().map_or("no bytes are kept", |one| &one.finding.note);
        let some = "\"refused\" in [require] may allow some";
        let found = match self.wrong_answers_in_all() {
            1.. if !allows_wrong && refused + outside > 0 => {
                Some(format!("wrong answers, and refusals: {how}"))
            }
            1.. if !allows_wrong => Some(format!("wrong answers: {how}")),
            _ if allows_refused => None,
            _ if refused > 0 => Some(format!("{OPERATIONS_REFUSED}: {how}; {some}")),
            _ if outside > 0 => Some(format!("{}: {how}; {some}", refused_before(outside))),
            _ => None,
        };
        found.into_iter().for_each(|reason| self.invalidate(reason));
        if broken == 0 {
            return;
        }
        self.figures.push((CONNECTIONS_BROKEN.to_owned(), broken as f64));
        if !allows_broken {
            let broken =
                if broken == 1 { "a connection".into() } else { format!("{broken} connections") };
            let by = self.broken_by.clone().unwrap_or_default();
            self.invalidate(format!(
                "{broken} broke: {by}; \"errors\" in [require] may allow some"
            ));
        }
    }

    /// Whether this is an upper limit of answers of this outcome, such as `wrong`, or of all
    /// errors, that it keeps.
    fn is_within(&self, requirement: &Requirement, outcome: &str) -> bool {
        let Expression::Name(name) = &requirement.figure else { return false };
        let limited = name.strip_suffix(OF_THOSE_ASKED).unwrap_or(name);
        let limits = matches!(requirement.comparison, Comparison::Less | Comparison::LessOrEqual);
        let refused_outside = self.refused_outside as f64;
        let value = match limited {
            _ if limited != ERRORS && limited != outcome => None,
            _ if limited != name => self.computed(name),
            ERRORS => self.computed(name).map(|errors| errors + refused_outside),
            "wrong" => Some(self.wrong_answers_in_all() as f64),
            "refused" => Some(self.counts.refused as f64 + refused_outside),
            _ => Some(self.counts.missing as f64),
        };
        limits && value.is_some_and(|value| requirement.holds(value))
    }
}

/// `5 operations were refused before the measured time or in slices that were measured again`.
pub(super) fn refused_before(refused: u64) -> String {
    let some =
        if refused == 1 { "1 operation was".into() } else { format!("{refused} operations were") };
    format!("{some} refused before the measured time or in slices that were measured again")
}
