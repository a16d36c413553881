//! What the answers of a trial make of it: errors that no requirement allows make it invalid.

use findings::{CONNECTIONS_BROKEN, OPERATION_REFUSED, OPERATIONS_REFUSED};
use ledger::Validity;

use super::trial::Trial;
use crate::drive::{Counts, WrongAnswer};
use crate::plan::{Comparison, ERRORS, Expression, OF_THOSE_ASKED, Requirement};

/// At most this many wrong answers are kept with their bytes in one trial, and refusals.
const MAX_WRONG_ANSWERS: usize = 64;
const MAX_REFUSALS: usize = 8;

impl Trial {
    /// Keeps the first of both kinds, wrong answers before refusals: no number of these may leave
    /// no room for what shows that an answer was wrong.
    pub(super) fn keep(&mut self, found: Vec<WrongAnswer>) {
        for one in found {
            let most = if one.is_refusal { MAX_REFUSALS } else { MAX_WRONG_ANSWERS };
            let alike = self.wrong_answers.iter().filter(|kept| kept.is_refusal == one.is_refusal);
            if alike.count() < most {
                self.wrong_answers.push(one);
            }
        }
        self.wrong_answers.sort_by_key(|one| one.is_refusal);
    }

    /// In what way the first wrong answer is wrong, or how the first refusal refuses.
    fn how(&self, is_refusal: bool) -> &str {
        let mut alike = self.wrong_answers.iter().filter(|one| one.is_refusal == is_refusal);
        alike.next().map_or("no bytes are kept", |one| &one.finding.note)
    }

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
        let (wrong, refusal) = (self.how(false), self.how(true));
        let some = "\"refused\" in [require] may allow some";
        let found = match self.wrong_answers_in_all() {
            1.. if !allows_wrong && refused + outside > 0 => {
                Some(format!("wrong answers, and refusals: {wrong}"))
            }
            1.. if !allows_wrong => Some(format!("wrong answers: {wrong}")),
            _ if allows_refused => None,
            _ if refused > 0 => Some(format!("{OPERATIONS_REFUSED}: {refusal}; {some}")),
            _ if outside > 0 => Some(format!("{}: {refusal}; {some}", refused_before(outside))),
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
    let what = if refused == 1 { OPERATION_REFUSED } else { OPERATIONS_REFUSED };
    format!("{refused} {what} before the measured time or in slices that were measured again")
}

#[cfg(test)]
mod tests {
    use findings::WRITES_REFUSED;
    use load::Finding;

    use super::*;

    #[test]
    fn refusals_leave_room_for_wrong_answers_and_each_reason_is_that_of_its_kind() {
        let found = |is_refusal: bool, note: &str| WrongAnswer {
            at: 0,
            is_refusal,
            finding: Finding {
                operation: "get".into(),
                key: Vec::new(),
                expected: Vec::new(),
                received: Vec::new(),
                note: note.to_owned(),
            },
        };
        let mut refused = Trial::begin(0, 1, 0);
        refused.counts.refused = 64;
        for _ in 0..4 {
            refused.keep(vec![found(true, "503"); 16]);
        }
        let mut wrong = refused.clone();
        wrong.counts.wrong = 1;
        wrong.keep(vec![found(false, "stale")]);
        assert_eq!(wrong.wrong_answers.len(), MAX_REFUSALS + 1);
        assert_eq!(wrong.wrong_answers[0].finding.note, "stale");
        let reason = |mut trial: Trial| {
            trial.judge_answers(&[]);
            trial.reason.unwrap()
        };
        assert_eq!(reason(wrong), "wrong answers, and refusals: stale");
        assert!(reason(refused).starts_with("operations were refused: 503; "));
    }

    #[test]
    fn each_reason_of_refusals_is_known_as_one() {
        for reason in [refused_before(1), refused_before(5), format!("3 {WRITES_REFUSED}: busy")] {
            assert!(findings::is_of_refusals(&reason), "{reason}");
        }
        assert!(!findings::is_of_refusals("the connection was refused"));
    }
}
