//! The search for the highest load that meets every requirement: one run whose points are loads,
//! each chosen from the results before it, and measured until its outcome is clear.

use std::cell::OnceCell;
use std::ops::ControlFlow;
use std::time::Duration;

use judge::{Held, Search, Try};
use ledger::{RequirementOutcome, RunId, SearchRow, Validity};

use super::options::{Ending, RunError, RunOptions};
use super::persist::RunWriter;
use super::require::{self, Terms};
use super::runner::{Runner, begin, end};
use super::trial::Trial;
use crate::plan::{Plan, Point, SuiteError};

/// The numbers of rounds after which a load is judged; the last is the most that are measured.
const LOOKS: [u32; 4] = [3, 5, 8, 12];

/// The probability of a wrong outcome for one load, over all of its looks.
const ERROR: f64 = 0.02;

/// A load is broken when the backlog grew in more than half of the rounds; when it did in more than
/// a quarter, the outcome is unclear. An occasional stall of the host grows a backlog, too.
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
    pub budget: Duration,
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
    writer.search(&SearchRow {
        run_id: writer.run(),
        key: search.key.clone(),
        precision: search.search.precision,
        error: ERROR,
        rounds_most: LOOKS[LOOKS.len() - 1],
    })?;
    let outcome = try_loads(&mut writer, &mut runner, search, &plans);
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
        let over = runner.started.elapsed() > search.budget;
        if over && !tries.is_empty() {
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
        tries.push(Try { load, held });
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
            if let Some(Ending::Hopeless(why)) = ending {
                // Another load may be too high for the target to start under.
                if is_first {
                    return Ok(ControlFlow::Break(Ending::Hopeless(why)));
                }
                answer = (Held::Unclear, Some(why));
                break;
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
    let overloaded = || trials.iter().filter(|trial| trial.is_overloaded());
    let (overloaded, clean) =
        (overloaded().count(), overloaded().filter(|trial| trial.is_valid()).count());
    let rounds = trials.len();
    let doubt = format!("overloaded in {overloaded} of {rounds} rounds");
    if overloaded * 2 > rounds {
        let held = if clean * 2 > overloaded { Held::No } else { Held::Unclear };
        return (held, Some(doubt));
    }
    let mut unclear = (overloaded * OVERLOADED_DOUBT > rounds).then_some(doubt);
    for requirement in &point.requirements {
        let terms = terms_at(point, confidence);
        let judged = require::judge_requirement(requirement, trials, &terms);
        match judged.outcome {
            RequirementOutcome::Broken => return (Held::No, Some(requirement.text.clone())),
            RequirementOutcome::CantTell => {
                unclear.get_or_insert_with(|| requirement.text.clone());
            }
            RequirementOutcome::Held => {}
        }
    }
    let with = |validity| trials.iter().filter(|trial| trial.validity == validity).count();
    if rounds - with(Validity::Invalid) < LOOKS[0] as usize {
        let first = trials.iter().find_map(|trial| trial.reason.clone());
        return (Held::Unclear, Some(first.unwrap_or_else(|| "too few valid rounds".to_owned())));
    }
    let disturbed = with(Validity::Disturbed);
    match unclear {
        Some(text) => (Held::Unclear, Some(text)),
        None if disturbed == 0 => (Held::Yes, None),
        None => (Held::Yes, Some(format!("disturbed in {disturbed} of {rounds} rounds"))),
    }
}
