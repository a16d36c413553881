//! Causes of disturbance in several slices or rounds: those of one kind are one.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use ledger::{Cause, MAX_PROGRAMS, Program, Validity};

/// Why figures are worth less, over several rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct CauseSummary {
    /// What it was.
    pub why: Why,
    /// The rounds in which it was seen, each with its point.
    pub rounds: BTreeSet<(usize, u32)>,
}

/// Why figures are worth less.
#[derive(Debug, Clone, PartialEq)]
pub enum Why {
    /// They were disturbed, by this and so much of it.
    Disturbed(Cause),
    /// Their trials are invalid, for this reason.
    Invalid(String),
}

impl Why {
    /// All that is to be said of a trial: why it is invalid, or else what disturbed it.
    pub fn of(validity: Validity, reason: Option<&str>, causes: &[Cause]) -> Vec<Why> {
        match validity {
            Validity::Invalid => {
                reason.map(|text| Why::Invalid(text.to_owned())).into_iter().collect()
            }
            Validity::Valid | Validity::Disturbed => {
                causes.iter().cloned().map(Why::Disturbed).collect()
            }
        }
    }
}

/// Causes of one kind, of one target's wait, as one: from the least to the most of it, and programs
/// with the mean over those causes that say how much they used.
pub fn merged(causes: &[Cause]) -> Vec<Cause> {
    grouped(causes.iter().map(|cause| ((), cause))).into_iter().map(|(cause, _)| cause).collect()
}

/// The same of causes in rounds, with the rounds of each; that of most rounds first.
pub(crate) fn grouped<'a, Round: Ord>(
    causes: impl IntoIterator<Item = (Round, &'a Cause)>,
) -> Vec<(Cause, BTreeSet<Round>)> {
    let mut groups: Vec<(Vec<&Cause>, BTreeSet<Round>)> = Vec::new();
    for (round, cause) in causes {
        let is_one = |group: &(Vec<&Cause>, _)| group.0.iter().all(|one| one.kind == cause.kind);
        let place = groups.iter().position(is_one).unwrap_or_else(|| {
            groups.push((Vec::new(), BTreeSet::new()));
            groups.len() - 1
        });
        groups[place].0.push(cause);
        groups[place].1.insert(round);
    }
    // Among equals the first seen stays first.
    groups.sort_by_key(|(_, rounds)| Reverse(rounds.len()));
    groups.into_iter().filter_map(|(group, rounds)| Some((one_of(&group)?, rounds))).collect()
}

fn one_of(group: &[&Cause]) -> Option<Cause> {
    let (first, rest) = group.split_first()?;
    let range = rest.iter().fold((first.least, first.most), |(least, most), one| {
        (least.min(one.least), most.max(one.most))
    });
    Some(Cause { least: range.0, most: range.1, programs: programs(group), ..(*first).clone() })
}

/// The programs that used most, with their mean over the causes that say how much.
fn programs(group: &[&Cause]) -> Vec<Program> {
    let measures = |cause: &&&Cause| cause.programs.iter().any(|one| one.cores.is_some());
    let measured = group.iter().filter(measures).count().max(1) as f64;
    let mut all: Vec<Program> = Vec::new();
    for Program { name, cores } in group.iter().flat_map(|cause| &cause.programs) {
        let share = cores.map(|cores| cores / measured);
        match all.iter_mut().find(|known| known.name == *name) {
            Some(known) => known.cores = known.cores.zip(share).map(|(sum, more)| sum + more),
            None => all.push(Program { name: name.clone(), cores: share }),
        }
    }
    let used = |one: &Program| one.cores.unwrap_or(0.0);
    all.sort_by(|a, b| used(b).total_cmp(&used(a)));
    all.truncate(MAX_PROGRAMS);
    all
}

#[cfg(test)]
mod tests {
    use ledger::CauseKind::{self, Foreign, Pause, Steal, Wait};

    use super::*;

    fn used(share: f64, programs: &[(&str, Option<f64>)]) -> Cause {
        let program = |(name, cores): &(&str, Option<f64>)| Program {
            name: Some((*name).into()),
            cores: *cores,
        };
        let programs = programs.iter().map(program).collect();
        Cause { programs, ..Cause::new(Foreign, share) }
    }

    fn range(kind: CauseKind, least: f64, most: f64) -> Cause {
        Cause { least, most, ..Cause::new(kind, 0.0) }
    }

    #[test]
    fn causes_of_one_kind_are_one_with_its_range_its_rounds_and_the_mean_of_its_programs() {
        let causes = [
            (1, used(0.14, &[("rustc", Some(1.25)), ("java", Some(0.5))])),
            (2, used(0.02, &[("java", Some(0.25)), ("rustc", Some(1.0))])),
            (2, used(0.095, &[])),
            (3, range(Steal, 0.03, 0.04)),
            (3, Cause::new(Pause, 12e6)),
            (4, range(Steal, 0.01, 0.02)),
            (5, Cause::new(Steal, 0.02)),
        ];
        let programs = used(0.0, &[("rustc", Some(1.125)), ("java", Some(0.375))]).programs;
        let expected = [
            (range(Steal, 0.01, 0.04), [3, 4, 5].into()),
            (Cause { programs, ..range(Foreign, 0.02, 0.14) }, [1, 2].into()),
            (Cause::new(Pause, 12e6), [3].into()),
        ];
        assert_eq!(grouped(causes.iter().map(|(round, cause)| (*round, cause))), expected);
    }

    #[test]
    fn each_target_waits_for_itself() {
        let waited = |target: Option<&str>, share| {
            Cause::new(Wait { target: target.map(str::to_owned) }, share)
        };
        let causes =
            [waited(Some("redis 1"), 0.09), waited(None, 0.06), waited(Some("redis 2"), 0.07)];
        assert_eq!(merged(&causes), causes, "and so does the generator");
    }

    #[test]
    fn a_program_that_may_have_run_elsewhere_once_is_no_more_than_probable() {
        let causes = [used(0.5, &[("cc1", Some(0.5))]), used(0.5, &[("cc1", None)])];
        assert_eq!(merged(&causes), [used(0.5, &[("cc1", None)])]);
        assert_eq!(merged(&[]), []);
        let many: Vec<Cause> =
            (0..20).map(|one| used(0.1, &[(&format!("p{one}"), Some(f64::from(one)))])).collect();
        let named = &merged(&many)[0].programs;
        assert_eq!((named.len(), &named[0].name), (MAX_PROGRAMS, &Some("p19".to_owned())));
    }
}
