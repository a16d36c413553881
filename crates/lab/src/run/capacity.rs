//! Finding the highest load that meets every requirement: one run whose points are loads, each
//! chosen by what the ones before showed, and measured until its answer is clear.

use std::cell::OnceCell;
use std::time::Duration;

use judge::{Held, Search, Try};
use ledger::{RequirementOutcome, RunId, SearchRow};

use super::keep::Keeper;
use super::trial::Trial;
use super::{Conductor, Ending, News, RunError, Setting, require};
use crate::plan::{Plan, Point, SuiteError};

/// Rounds at which a load's answer is looked at; the last is the most that are measured.
const LOOKS: [u32; 4] = [3, 5, 8, 12];

/// How often a load may be called wrongly, over all of its looks.
const ERROR: f64 = 0.02;

/// A load is broken when the backlog grew in more than half of the rounds; when it did in more than
/// a quarter, nothing can be told. Once in a while a stall of the host does it, too.
const OVERLOADED_DOUBT: usize = 4;

/// Loads tried at most, as `judge` does.
const LOADS_MOST: usize = 64;

/// What is searched.
pub struct Quest<'a> {
    /// The suite's key whose value is the load: `clients.arrivals.rate`.
    pub key: String,
    /// Which loads may be tried.
    pub search: Search,
    /// The suite at a load: a plan with one point.
    pub plan_at: &'a dyn Fn(f64) -> Result<Plan, Box<SuiteError>>,
    /// Time after which no further load is tried.
    pub budget: Duration,
}

/// Searches, and keeps every load that was tried as a point of one run. The setting's plan is that
/// of the first load.
///
/// # Errors
/// As [`super::run`]. A load that the suite refuses ends the search.
pub fn capacity(setting: Setting<'_>, quest: &Quest<'_>) -> Result<(RunId, Ending), RunError> {
    // Plans have to outlive the conductor that goes from one to the next.
    let plans: Vec<OnceCell<Plan>> = (0..LOADS_MOST).map(|_| OnceCell::new()).collect();
    let Setting { plan, exe, ledger, build, logs, command, seed, after, stop, progress } = setting;
    let progress = &mut *progress;
    let setting = Setting { plan, exe, ledger, build, logs, command, seed, after, stop, progress };
    let (mut keeper, mut conductor) = super::begin(setting)?;
    keeper.search(&SearchRow {
        run_id: keeper.run(),
        key: quest.key.clone(),
        precision: quest.search.precision,
        error: ERROR,
        rounds_most: LOOKS[LOOKS.len() - 1],
    })?;
    let outcome = search(&mut keeper, &mut conductor, quest, &plans);
    conductor.stop_kept();
    super::end(keeper, outcome)
}

fn search<'a>(
    keeper: &mut Keeper<'_>,
    conductor: &mut Conductor<'a>,
    quest: &Quest<'_>,
    plans: &'a [OnceCell<Plan>],
) -> Result<Ending, RunError> {
    conductor.is_search = true;
    conductor.build_targets(keeper)?;
    let mut tries: Vec<Try> = Vec::new();
    for (ordinal, plan) in (0..).zip(plans) {
        let Some(load) = quest.search.next(&tries) else { break };
        let over = conductor.started.elapsed() > quest.budget;
        if over && !tries.is_empty() {
            break;
        }
        if ordinal > 0 {
            let Ok(next) = (quest.plan_at)(load) else { break };
            conductor.stop_kept();
            conductor.go_on_with(plan.get_or_init(|| next));
            keeper.next_point(&conductor.plan.points[0], ordinal)?;
        }
        let held = conductor.probe(keeper, load)?;
        if conductor.stopped() {
            return Ok(Ending::Interrupted);
        }
        tries.push(Try { load, held });
    }
    Ok(Ending::Finished)
}

impl<'a> Conductor<'a> {
    /// Goes on with the only point of another plan.
    fn go_on_with(&mut self, plan: &'a Plan) {
        self.plan = plan;
        self.trials = vec![Vec::new()];
        self.kept = vec![Vec::new()];
        self.finished_rounds = 0;
    }

    /// Measures rounds of the only point until it is clear whether its load holds.
    fn probe(&mut self, keeper: &mut Keeper<'_>, load: f64) -> Result<Held, RunError> {
        let (mut answer, mut looked) = ((Held::Unclear, None), 0);
        for ordinal in 1..=LOOKS[LOOKS.len() - 1] {
            self.one_round(keeper, 0, ordinal)?;
            if self.stopped() {
                return Ok(Held::Unclear);
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
        let said = format!("{label}: {word}{because}");
        self.say(0, looked, "looking", Some(News::Said(&said)));
        let last = confidence_after(looked).unwrap_or(1.0 - ERROR);
        keeper.requirements(0, &self.plan.points[0], &self.trials[0], last)?;
        keeper.probe(load, outcome, reason)?;
        Ok(held)
    }
}

/// The confidence of the look after so many rounds; `None` when there is none.
fn confidence_after(rounds: u32) -> Option<f64> {
    let place = LOOKS.iter().position(|look| *look == rounds)?;
    judge::confidence_at(&LOOKS[..=place], LOOKS[LOOKS.len() - 1], ERROR)
}

/// Whether a load holds, by what its rounds have shown, with what broke or why it can't be told.
fn judge_load(point: &Point, trials: &[Trial], confidence: f64) -> (Held, Option<String>) {
    let overloaded = trials.iter().filter(|trial| trial.is_overloaded()).count();
    let rounds = trials.len();
    let doubt = format!("overloaded in {overloaded} of {rounds} rounds");
    if overloaded * 2 > rounds {
        return (Held::No, Some(doubt));
    }
    let mut unclear = (overloaded * OVERLOADED_DOUBT > rounds).then_some(doubt);
    for requirement in &point.requirements {
        let (_, outcome) = require::outcome(requirement, trials, confidence, LOOKS[0] as usize);
        match outcome {
            RequirementOutcome::Broken => return (Held::No, Some(requirement.text.clone())),
            RequirementOutcome::CantTell => {
                unclear.get_or_insert_with(|| requirement.text.clone());
            }
            RequirementOutcome::Held => {}
        }
    }
    let valid = trials.iter().filter(|trial| trial.is_valid()).count();
    if valid < LOOKS[0] as usize {
        let first = trials.iter().find_map(|trial| trial.reason.clone());
        return (Held::Unclear, first.or(unclear));
    }
    match unclear {
        Some(text) => (Held::Unclear, Some(text)),
        None => (Held::Yes, None),
    }
}
