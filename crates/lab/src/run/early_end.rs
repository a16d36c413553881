//! Early ends: a target that fails at each start in the same way is not started for ever, and a run
//! whose rounds are all disturbed says once what disturbs them, and what helps.

use std::collections::BTreeMap;

use ledger::{Cause, Validity};

use super::trial::Trial;

/// Disturbed rounds in a row after which the run says so.
pub(super) const DISTURBED_ROUNDS: usize = 3;

/// Why a trial shows nothing of its target: it failed before its first answer, or each run of a
/// batch did, or no answer was right.
fn failure(trial: &Trial) -> Option<&str> {
    if trial.counts.operations > 0 && trial.counts.wrong == trial.counts.operations {
        return Some("every answer was wrong");
    }
    let answered = trial.answered_outside || trial.counts.operations + trial.counts.updates > 0;
    let reason = trial.reason.as_deref().filter(|_| trial.has_failed() && !answered);
    trial.runs_failed.as_deref().or(reason)
}

/// A reason without the numbers that differ from start to start: ports, addresses, times and the
/// longer process ids. An exit status, a signal and an error number have three digits at most, and
/// are what tells two failures apart.
fn kind(reason: &str) -> String {
    reason.split_inclusive(char::is_whitespace).map(without_passing_numbers).collect()
}

/// A word without its digits where four of them follow one another or something stands between
/// two: `4501`, `12:03:44`, `1.25`.
fn without_passing_numbers(word: &str) -> String {
    let digits = |c: char| c.is_ascii_digit();
    let runs = word.split(|c: char| !digits(c)).filter(|run| !run.is_empty());
    let is_long = runs.clone().any(|run| run.len() > 3);
    match is_long || runs.count() > 1 {
        true => word.replace(digits, ""),
        false => word.to_owned(),
    }
}

/// The failure that the last two of a target's trials share.
fn repeated<'a>(trials: &[&'a Trial]) -> Option<&'a str> {
    let [.., before, last] = trials else { return None };
    let (before, last) = (failure(before)?, failure(last)?);
    (kind(before) == kind(last)).then_some(last)
}

/// The trials of a target, from the first to the last one.
fn of_target<'a>(trials: impl Iterator<Item = &'a Trial>, target: usize) -> Vec<&'a Trial> {
    let mut own: Vec<&Trial> = trials.filter(|trial| trial.target == target).collect();
    own.sort_by_key(|trial| trial.started);
    own
}

/// Whether further rounds of a point would show nothing: one of its targets failed in the same way
/// in the last two.
pub(super) fn is_hopeless(trials: &[Trial], targets: usize) -> bool {
    (0..targets).any(|target| repeated(&of_target(trials.iter(), target)).is_some())
}

/// The target that has only failed in this run, and twice in the same way, at whatever points, with
/// the failure.
pub(super) fn never_answers(points: &[Vec<Trial>], targets: &[&str]) -> Option<String> {
    let (name, why) = targets.iter().enumerate().find_map(|(index, name)| {
        let own = of_target(points.iter().flatten(), index);
        let why = repeated(&own)?;
        own.iter().all(|trial| failure(trial).is_some()).then_some((name, why))
    })?;
    Some(format!("{name} failed twice in the same way, and has done nothing else yet: {why}"))
}

/// The rounds in a row that were disturbed.
#[derive(Debug, Default)]
pub(super) struct DisturbedRounds {
    in_a_row: usize,
    /// What disturbed each target in these rounds.
    causes: BTreeMap<usize, Vec<Cause>>,
    is_reported: bool,
}

impl DisturbedRounds {
    /// Adds a round of any point. Returns what disturbed each target in the last
    /// [`DISTURBED_ROUNDS`], once in a run.
    pub(super) fn add(&mut self, trials: &[Trial]) -> Option<BTreeMap<usize, Vec<Cause>>> {
        let disturbed = || trials.iter().filter(|one| one.validity == Validity::Disturbed);
        if self.is_reported || disturbed().next().is_none() {
            (self.in_a_row, self.causes) = (0, BTreeMap::new());
            return None;
        }
        self.in_a_row += 1;
        for trial in disturbed() {
            self.causes.entry(trial.target).or_default().extend(trial.causes());
        }
        self.is_reported = self.in_a_row >= DISTURBED_ROUNDS;
        let merged = |(target, causes): (&usize, &Vec<Cause>)| (*target, findings::merged(causes));
        self.is_reported.then(|| self.causes.iter().map(merged).collect())
    }
}

#[cfg(test)]
mod tests {
    use ledger::{CauseKind, FailedAt};

    use super::*;

    /// A trial of a target in a round, which failed for this reason.
    fn failed(target: usize, round: u32, reason: Option<&str>) -> Trial {
        let mut trial = Trial::begin(target, round, u64::from(round));
        match reason {
            Some(reason) => trial.fail(FailedAt::Start, reason),
            None => trial.counts.operations = 1,
        }
        trial
    }

    #[test]
    fn the_same_failure_in_two_rounds_is_enough_and_another_or_an_answer_is_not() {
        let first = failed(1, 1, Some("port 4501: not ready within 10 s"));
        let again = failed(1, 2, Some("port 4502: not ready within 10 s"));
        let fine = [failed(0, 1, None), failed(0, 2, None)];
        let both = [&fine[..], &[first.clone(), again.clone()]].concat();
        assert!(is_hopeless(&both, 2) && !is_hopeless(&both[..3], 2));
        let other = failed(1, 2, Some("ended with code 1"));
        assert!(!is_hopeless(&[first.clone(), other], 2));
        let between = [first.clone(), failed(1, 2, None), failed(1, 3, Some("x"))];
        assert!(!is_hopeless(&between, 2));
        let wrong = |round, wrong| {
            let mut trial = failed(1, round, None);
            (trial.counts.operations, trial.counts.wrong) = (40, wrong);
            trial
        };
        assert!(is_hopeless(&[wrong(1, 40), wrong(2, 40)], 2));
        assert!(!is_hopeless(&[wrong(1, 40), wrong(2, 39)], 2), "one was right");
        let mut late = [first, again];
        late[1].counts.operations = 1;
        assert!(!is_hopeless(&late, 2), "it failed after an answer");
    }

    #[test]
    fn failures_differ_by_their_status_and_not_by_ports_and_times() {
        let repeats = |one: &str, other: &str| {
            is_hopeless(&[failed(0, 1, Some(one)), failed(0, 2, Some(other))], 1)
        };
        assert!(repeats("exit status: 1", "exit status: 1"));
        assert!(!repeats("exit status: 1", "exit status: 2"));
        assert!(!repeats("bind (os error 98)", "bind (os error 111)"));
        assert!(!repeats("answered 404", "answered 503"));
        let line =
            |port, pid, time| format!("{time} [{pid}] can't bind 127.0.0.1:{port}: status 1");
        assert!(repeats(&line(4501, 31_002, "12:03:44.1"), &line(4502, 31_077, "12:04:59.88")));
    }

    #[test]
    fn a_target_that_answered_in_its_warm_up_is_started_again() {
        let mut both = [1, 2].map(|round| failed(0, round, Some("it died")));
        assert!(is_hopeless(&both, 1));
        let counts = crate::drive::Counts { operations: 1, ..crate::drive::Counts::default() };
        both[1].add_outside(&crate::drive::LoadResult { counts, ..Default::default() });
        assert!(!is_hopeless(&both, 1));
    }

    #[test]
    fn a_run_ends_only_when_a_target_has_never_answered_at_any_point() {
        let targets = ["one"];
        let (first, again) = (failed(0, 1, Some("refused")), failed(0, 2, Some("refused")));
        let said = never_answers(&[vec![first.clone()], vec![again.clone()]], &targets).unwrap();
        assert_eq!(
            said,
            "one failed twice in the same way, and has done nothing else yet: refused"
        );
        assert_eq!(never_answers(&[vec![first.clone()], Vec::new()], &targets), None);
        let answered = vec![failed(0, 3, None)];
        assert_eq!(never_answers(&[vec![first, again], answered], &targets), None);
    }

    #[test]
    fn three_disturbed_rounds_in_a_row_are_reported_once_with_each_cause_once() {
        let pages = |least, most| Cause { least, most, ..Cause::new(CauseKind::Swap, 0.0) };
        let disturbed = |round: u32| {
            let mut trial = Trial::begin(0, round, 0);
            let swapped = f64::from(round) * 100.0;
            trial.disturb(&[pages(swapped, swapped)]);
            trial
        };
        let mut rounds = DisturbedRounds::default();
        let mut add = |trial: Trial| rounds.add(&[trial]);
        assert!(add(disturbed(1)).is_none() && add(disturbed(2)).is_none());
        assert_eq!(add(failed(0, 3, None)), None, "a round that isn't disturbed begins anew");
        assert!(add(disturbed(4)).is_none() && add(disturbed(5)).is_none());
        assert_eq!(add(disturbed(6)), Some([(0, vec![pages(400.0, 600.0)])].into()));
        assert!(add(disturbed(7)).is_none(), "once");
    }
}
