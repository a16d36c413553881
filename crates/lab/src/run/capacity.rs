//! The search for the highest load that meets every requirement: one run whose points are loads,
//! each chosen from the results before it, and measured until its outcome is clear.

use std::cell::OnceCell;
use std::ops::ControlFlow;

use base::units::Span;
use judge::{Held, Search, Try};
use ledger::{RequirementOutcome, RunId, SearchRow, Validity};

use super::options::{Ending, RunError, RunOptions};
use super::persist::RunWriter;
use super::require::{self, Terms};
use super::runner::{Runner, begin, end};
use super::trial::Trial;
use crate::plan::{Plan, Point, Requirement, SuiteError};

/// The numbers of rounds after which a load is judged; the last is the most that are measured.
const LOOKS: [u32; 4] = [3, 5, 8, 12];

/// As many requests become due in a slice for an excess of a few hundredths to be more than chance.
pub const LEAST_DUE: u64 = 1_000;

/// With fewer a load is unclear where less than this part of what was due was answered meanwhile,
/// and no overload was seen.
const NEARLY_ALL: f64 = 0.95;

/// The probability of a wrong outcome of a requirement at one load, over all of its looks.
const ERROR: f64 = 0.02;

/// When the backlog grew in more than a quarter of the rounds, the outcome is unclear. An
/// occasional stall of the host grows a backlog, too.
const OVERLOADED_DOUBT: usize = 4;

/// Loads tried at most, as `judge` does.
const MAX_LOADS: usize = 64;

/// The parameters of a search.
pub struct CapacitySearch<'a> {
    /// The suite's key whose value is the load: `clients.arrivals.rate`.
    pub key: String,
    /// The range and precision of the loads.
    pub search: Search,
    /// The suite at a load: a plan with one point.
    pub plan_at: &'a dyn Fn(f64) -> Result<Plan, Box<SuiteError>>,
    /// Time after which no further load is tried.
    pub budget: Span,
}

/// Searches, with every load that was tried as a point of one run. The plan in `options` is that of
/// the first load.
///
/// # Errors
/// As [`super::run`]. A load that the suite refuses ends the search.
pub fn capacity(
    options: RunOptions<'_>,
    search: &CapacitySearch<'_>,
) -> Result<(RunId, Ending), RunError> {
    // Plans have to outlive the runner that goes from one to the next.
    let plans: Vec<OnceCell<Plan>> = (0..MAX_LOADS).map(|_| OnceCell::new()).collect();
    let RunOptions { plan, exe, ledger, build, logs, command, seed, extras, stop, progress } =
        options;
    let progress = &mut *progress;
    let options =
        RunOptions { plan, exe, ledger, build, logs, command, seed, extras, stop, progress };
    let (mut writer, mut runner) = begin(options)?;
    let begun = writer.search(&SearchRow {
        run_id: writer.run(),
        key: search.key.clone(),
        precision: search.search.precision,
        error: ERROR,
        rounds_most: LOOKS[LOOKS.len() - 1],
    });
    let outcome = match begun {
        Ok(()) => try_loads(&mut writer, &mut runner, search, &plans),
        Err(error) => Err(error.into()),
    };
    runner.stop_kept();
    end(writer, outcome)
}

fn try_loads<'a>(
    writer: &mut RunWriter<'_>,
    runner: &mut Runner<'a>,
    search: &CapacitySearch<'_>,
    plans: &'a [OnceCell<Plan>],
) -> Result<Ending, RunError> {
    runner.is_search = true;
    runner.build_targets(writer)?;
    let mut tries: Vec<Try> = Vec::new();
    for (ordinal, plan) in (0..).zip(plans) {
        let Some(load) = search.search.next(&tries) else { break };
        let over = runner.started.elapsed() > search.budget.duration();
        if over && !tries.is_empty() {
            let budget = search.budget;
            runner.note(&format!("the budget of {budget} is spent: no further load is tried"));
            break;
        }
        if ordinal > 0 {
            let Ok(next) = (search.plan_at)(load) else { break };
            runner.stop_kept();
            runner.go_on_with(plan.get_or_init(|| next));
            writer.next_point(&runner.plan.points[0], ordinal)?;
        }
        let held = match runner.probe(writer, load, tries.is_empty())? {
            ControlFlow::Continue(held) => held,
            ControlFlow::Break(ending) => return Ok(ending),
        };
        let is_rate = search.key.ends_with("rate");
        let answered = is_rate.then(|| answered_per_s(&runner.trials[0])).flatten();
        tries.push(Try { load, held, answered });
    }
    Ok(Ending::Finished)
}

impl<'a> Runner<'a> {
    /// Continues with the only point of another plan.
    fn go_on_with(&mut self, plan: &'a Plan) {
        self.plan = plan;
        self.trials = vec![Vec::new()];
        self.kept = vec![Vec::new()];
        self.finished_rounds = 0;
    }

    /// Measures rounds of the only point until it is clear whether its load holds.
    fn probe(
        &mut self,
        writer: &mut RunWriter<'_>,
        load: f64,
        is_first: bool,
    ) -> Result<ControlFlow<Ending, Held>, RunError> {
        let (mut answer, mut looked) = ((Held::Unclear, None), 0);
        for ordinal in 1..=LOOKS[LOOKS.len() - 1] {
            let ending = self.one_round(writer, 0, ordinal)?;
            if self.stopped() {
                return Ok(ControlFlow::Break(Ending::Interrupted));
            }
            match ending {
                None => {}
                // Another load may be too high for the target to start under.
                Some(Ending::Hopeless(why)) if !is_first => {
                    answer = (Held::Unclear, Some(why));
                    break;
                }
                Some(ending) => return Ok(ControlFlow::Break(ending)),
            }
            let Some(confidence) = confidence_after(ordinal) else { continue };
            looked = ordinal;
            answer = judge_load(&self.plan.points[0], &self.trials[0], confidence);
            if answer.0 != Held::Unclear {
                break;
            }
        }
        let (held, reason) = answer;
        let outcome = match held {
            Held::Yes => RequirementOutcome::Held,
            Held::No => RequirementOutcome::Broken,
            Held::Unclear => RequirementOutcome::CantTell,
        };
        let because = reason.as_ref().map_or(String::new(), |reason| format!(" ({reason})"));
        let label = self.plan.points[0].label.clone();
        let word = outcome.word().replace('_', " ").replace("cant", "can't");
        let text = format!("{label}: {word}{because}");
        self.note(&text);
        let last = confidence_after(looked).unwrap_or(1.0 - ERROR);
        let point = &self.plan.points[0];
        writer.requirements(0, point, &self.trials[0], terms_at(point, last))?;
        writer.probe(load, outcome, reason)?;
        Ok(ControlFlow::Continue(held))
    }
}

/// What was answered per second of these rounds together.
fn answered_per_s(trials: &[Trial]) -> Option<f64> {
    let sum = |of: fn(&Trial) -> u64| trials.iter().map(of).sum::<u64>();
    let (operations, ns) = (sum(|trial| trial.counts.operations), sum(|trial| trial.rate_ns));
    (ns > 0).then(|| operations as f64 * 1e9 / ns as f64)
}

/// The confidence of the look after `rounds` rounds; `None` when there is none.
fn confidence_after(rounds: u32) -> Option<f64> {
    let place = LOOKS.iter().position(|look| *look == rounds)?;
    judge::confidence_at(&LOOKS[..=place], LOOKS[LOOKS.len() - 1], ERROR)
}

/// A load is judged from the first look on, by what decides and by what is written down alike.
fn terms_at(point: &Point, confidence: f64) -> Terms<'_> {
    Terms::at(point, confidence, LOOKS[0] as usize)
}

/// Whether a load holds by its rounds, with what broke or why the outcome is unclear, or that it
/// holds though rounds were disturbed. A disturbance only makes a target look worse: what holds
/// beside it holds, and what it can have done itself breaks nothing.
fn judge_load(point: &Point, trials: &[Trial], confidence: f64) -> (Held, Option<String>) {
    let requirement = |requirement: &Requirement| {
        let terms = terms_at(point, confidence);
        let held = match require::judge_requirement(requirement, trials, &terms).outcome {
            RequirementOutcome::Broken => Held::No,
            RequirementOutcome::CantTell => Held::Unclear,
            RequirementOutcome::Held => return None,
        };
        Some((held, requirement.text.clone()))
    };
    let requirements = point.requirements.iter().filter_map(requirement);
    let found = backlog(trials).into_iter().chain(spoilt(trials)).chain(too_few(trials));
    let found = found.chain(too_little(trials));
    concluded(found.chain(requirements).collect(), trials)
}

/// What follows from all that speaks against a load: what breaks it, else what makes it unclear.
fn concluded(found: Vec<(Held, String)>, trials: &[Trial]) -> (Held, Option<String>) {
    let breaks = found.iter().find(|(held, _)| *held == Held::No);
    if let Some((held, why)) = breaks.or(found.first()) {
        return (*held, Some(why.clone()));
    }
    let disturbed = trials.iter().filter(|one| one.validity == Validity::Disturbed).count();
    let why = format!("disturbed in {disturbed} of {} rounds", trials.len());
    (Held::Yes, (disturbed > 0).then_some(why))
}

/// What a backlog that grew says of a load: it is broken where more than half of all rounds were
/// overloaded and none of these disturbed, as disturbed ones might not have been otherwise. Of
/// invalid rounds only those count that the target's answers made invalid: any other may have
/// measured something else. That is a count: [`ERROR`] is of requirements alone.
fn backlog(trials: &[Trial]) -> Option<(Held, String)> {
    let counts = |one: &&Trial| match one.validity {
        Validity::Valid => true,
        Validity::Disturbed => false,
        Validity::Invalid => one.is_spoilt_by_answers && !one.was_disturbed,
    };
    let overloaded = || trials.iter().filter(|trial| trial.is_overloaded());
    let (rounds, all) = (trials.len(), overloaded().count());
    let why = format!("overloaded in {all} of {rounds} rounds");
    match overloaded().filter(counts).count() {
        own if own * 2 > rounds => Some((Held::No, why)),
        _ => (all * OVERLOADED_DOUBT > rounds).then_some((Held::Unclear, why)),
    }
}

/// What rounds say of a load that the target's own answers made invalid: it is unclear where there
/// is one, however well the others held, and broken where they are more than half of all and none
/// of these was disturbed, as disturbed ones might not have been otherwise. That is a count, as a
/// backlog's.
fn spoilt(trials: &[Trial]) -> Option<(Held, String)> {
    let is_spoilt = |one: &&Trial| one.validity == Validity::Invalid && one.is_spoilt_by_answers;
    let spoilt: Vec<&Trial> = trials.iter().filter(is_spoilt).collect();
    let reason = spoilt.first()?.reason.clone().unwrap_or_default();
    let why = format!("{reason} ({} of {} rounds)", spoilt.len(), trials.len());
    let own = spoilt.iter().filter(|one| !one.was_disturbed).count();
    let held = if own * 2 > trials.len() { Held::No } else { Held::Unclear };
    Some((held, why))
}

/// Whether less was answered than was due, while stretches of a schedule with few requests lasted.
/// Of many requests those under way at the end say only how long answers take.
fn too_little(trials: &[Trial]) -> Option<(Held, String)> {
    let counts = trials.iter().filter(|one| one.validity != Validity::Invalid);
    let stretches = counts.flat_map(|trial| &trial.stretches);
    let stretches = stretches.filter(|one| one.waited.offered < LEAST_DUE * u64::from(one.slices));
    let (due, answered) = stretches.fold((0, 0), |(due, answered), one| {
        (due + one.waited.offered, answered + one.answered.min(one.waited.offered))
    });
    let share = answered as f64 / due.max(1) as f64;
    (due > 0 && share < NEARLY_ALL).then(|| {
        let why = format!(
            "only {:.0} % of what was due was answered before each slice ended: too few requests, \
             or too slow answers, to tell; --measure a longer time",
            share * 100.0
        );
        (Held::Unclear, why)
    })
}

/// Whether too few rounds count, with the first reason.
fn too_few(trials: &[Trial]) -> Option<(Held, String)> {
    let count = trials.iter().filter(|one| one.validity != Validity::Invalid).count();
    let reason = || trials.iter().find_map(|trial| trial.reason.clone());
    let why = || reason().unwrap_or_else(|| "too few valid rounds".to_owned());
    (count < LOOKS[0] as usize).then(|| (Held::Unclear, why()))
}

#[cfg(test)]
mod tests {
    use ledger::{Cause, CauseKind};

    use super::*;
    use crate::drive::{self, LoadResult, StretchSum, Waited};
    use crate::observe::Cpu;
    use crate::run::slice::Slice;

    fn rounds(of: &[(bool, Validity)]) -> Vec<Trial> {
        let round = |(ordinal, (is_overloaded, validity)): (u32, &(bool, Validity))| {
            let mut trial = Trial::begin(0, ordinal, 0);
            if *validity == Validity::Disturbed {
                trial.disturb(&[Cause::new(CauseKind::Steal, 0.3)]);
            }
            if *validity == Validity::Invalid {
                trial.counts.broken = 1;
                trial.judge_answers(&[]);
            }
            let fewest = if *is_overloaded { 500 } else { 0 };
            let waited = Waited { offered: 1_000, fewest, ..Waited::default() };
            let of_slice = StretchSum { waited, ..StretchSum::default() };
            drive::add_slice(&mut trial.stretches, vec![of_slice]);
            trial
        };
        (1..).zip(of).map(round).collect()
    }

    fn held(of: &[(bool, Validity)]) -> Option<Held> {
        backlog(&rounds(of)).map(|(held, _)| held)
    }

    #[test]
    fn a_backlog_breaks_a_load_only_by_rounds_that_nothing_disturbed() {
        use Validity::{Disturbed, Invalid, Valid};
        assert_eq!(held(&[(true, Valid), (true, Valid), (false, Valid)]), Some(Held::No));
        assert_eq!(held(&[(true, Invalid); 3]), Some(Held::No), "far above what it carries");
        assert_eq!(held(&[(true, Disturbed); 3]), Some(Held::Unclear));
        // Without the disturbance it may be two of four.
        let some = [(true, Valid), (true, Valid), (true, Disturbed), (false, Valid)];
        assert_eq!(held(&[&some[..], &[(false, Valid)]].concat()), Some(Held::Unclear));
        assert_eq!(held(&[(false, Valid); 5]), None);
        assert_eq!(held(&[&[(true, Valid)], &[(false, Valid); 4][..]].concat()), None);
    }

    #[test]
    fn a_load_of_which_a_part_was_not_answered_is_unclear_though_no_overload_was_seen() {
        let answered = |answered, slices| {
            let mut trials = rounds(&[(false, Validity::Valid); 3]);
            for trial in &mut trials {
                (trial.stretches[0].slices, trial.stretches[0].answered) = (slices, answered);
            }
            too_little(&trials).map(|(held, _)| held)
        };
        assert_eq!(answered(900, 2), Some(Held::Unclear));
        assert_eq!([answered(960, 2), answered(1_100, 2), answered(900, 1)], [None; 3]);
    }

    #[test]
    fn a_backlog_of_invalid_rounds_breaks_a_load_where_answers_and_no_disturbance_spoilt_them() {
        let held = |change: fn(&mut Trial)| {
            let mut trials = rounds(&[(true, Validity::Valid); 3]);
            trials.iter_mut().for_each(change);
            backlog(&trials).map(|(held, _)| held)
        };
        let breaks = |trial: &mut Trial| {
            trial.counts.broken = 1;
            trial.judge_answers(&[]);
        };
        let slice = |is_disturbed: bool| Slice {
            start: 0,
            duration_ns: 1,
            operations: 0,
            server: None,
            generator: Cpu::default(),
            counters: Default::default(),
            causes: vec![Cause::new(CauseKind::Steal, 0.3)],
            is_disturbed,
            taken: None,
        };
        let of = |is_disturbed: bool| {
            let mut trials = rounds(&[(true, Validity::Valid); 3]);
            for trial in &mut trials {
                let stretches = trial.stretches.clone();
                let result = LoadResult { stretches, ..LoadResult::default() };
                trial.add(slice(is_disturbed), result);
                breaks(trial);
            }
            backlog(&trials).map(|(held, _)| held)
        };
        assert_eq!(of(false), Some(Held::No), "what disturbed them is ignored");
        assert_eq!(of(true), Some(Held::Unclear));
        assert_eq!(held(|trial| trial.invalidate("an event failed")), Some(Held::Unclear));
        let both = |trial: &mut Trial| {
            trial.invalidate("an event failed");
            trial.counts.broken = 1;
            trial.judge_answers(&[]);
        };
        assert_eq!(held(both), Some(Held::Unclear), "it measured something else");
    }

    #[test]
    fn a_load_holds_only_where_no_round_was_spoilt_by_what_the_target_answered() {
        use Validity::{Disturbed, Invalid, Valid};
        let held = |of: &[Validity]| {
            let of: Vec<_> = of.iter().map(|validity| (false, *validity)).collect();
            spoilt(&rounds(&of)).map(|(held, why)| (held, why.ends_with("rounds)")))
        };
        assert_eq!(held(&[Valid, Disturbed, Valid]), None);
        assert_eq!(held(&[Valid, Valid, Valid, Valid, Invalid]), Some((Held::Unclear, true)));
        assert_eq!(held(&[Valid, Invalid, Invalid]), Some((Held::No, true)));
        let mut disturbed = rounds(&[(false, Invalid); 9]);
        disturbed.iter_mut().for_each(|trial| trial.was_disturbed = true);
        assert_eq!(spoilt(&disturbed).map(|(held, _)| held), Some(Held::Unclear));
    }

    #[test]
    fn what_is_broken_is_told_though_rounds_are_invalid_or_unclear() {
        let far = rounds(&[(true, Validity::Invalid); 3]);
        let unclear = vec![too_few(&far).expect("none counts"), (Held::No, "errors < 1%".into())];
        assert_eq!(concluded(unclear, &far), (Held::No, Some("errors < 1%".to_owned())));
        let well = rounds(&[(false, Validity::Disturbed); 3]);
        let said = "disturbed in 3 of 3 rounds".to_owned();
        assert_eq!(concluded(Vec::new(), &well), (Held::Yes, Some(said)));
        assert_eq!(concluded(Vec::new(), &rounds(&[])), (Held::Yes, None));
        assert_eq!(too_few(&well), None);
    }
}
