//! `loadline compare`: is A better than B, worse, the same, or is it inconclusive?

mod args;
mod commits;
mod runs;
mod samples;

use std::path::Path;
use std::process::ExitCode;

use judge::{Direction, Rule};
use lab::plan::{Contest, Plan};

use crate::detectable::Detectable;
use crate::exit::Failure;
use crate::out::{self, note};
use crate::run::HowArgs;
use crate::storage::Storage;
pub(crate) use args::CompareArgs;

pub(crate) fn run(args: &CompareArgs) -> Result<ExitCode, Failure> {
    if !(args.error.fraction > 0.0 && args.error.fraction < 0.5) {
        return Err(Failure::Usage("--error lies between 0 and 50 %".to_owned()));
    }
    if args.markdown && args.runs.is_none() {
        let message = "--markdown is of --runs: measure first, then `loadline report --markdown`";
        return Err(Failure::Usage(message.to_owned()));
    }
    if let Some(files) = &args.samples {
        return judge_samples(args, files);
    }
    if let Some(runs) = &args.runs {
        return runs::judge(args, runs);
    }
    let suite = args.suite.as_deref().unwrap_or(Path::new(""));
    let mut plan = Plan::read(suite, &args.settings, crate::registry::registry())
        .map_err(crate::exit::suite)?;
    match (&args.commits, &args.a, &args.b) {
        (Some(commits), ..) => commits::vary(args, commits, &mut plan)?,
        (None, Some(a), Some(b)) => {
            plan.keep_targets(a, b).map_err(Failure::Usage)?;
            crate::builds::refuse_worktrees(&plan)?;
        }
        _ => {
            let message = "say what to compare: --a TARGET --b TARGET, or --commits A..B";
            return Err(Failure::Usage(message.to_owned()));
        }
    }
    measure(args, &mut plan)
}

/// The verdict on two files of figures.
fn judge_samples(args: &CompareArgs, files: &[String]) -> Result<ExitCode, Failure> {
    let [a, b] = files else { return Err(Failure::Usage("--samples takes two files".to_owned())) };
    let (a, b) = (samples::read(a).map_err(Failure::Usage)?, samples::read(b));
    let direction = match args.better.as_str() {
        "higher" => Direction::HigherIsBetter,
        _ => Direction::LowerIsBetter,
    };
    let same_within = args.same_within.map_or(0.02, |share| share.fraction);
    let rule = Rule { same_within, confidence: 1.0 - args.error.fraction };
    let b = b.map_err(Failure::Usage)?;
    let judged = findings::Samples::judge(a, b, direction, rule, args.factor.clone());
    match args.how.json {
        true => out::print(format!("{:#}\n", report::samples_json(&judged)))?,
        false => {
            crate::report::print_text(report::samples_text(&judged), args.how.explain)?;
        }
    }
    Ok(ExitCode::from(args.how.exit_code(judged.outcome())))
}

/// Measures a plan that holds the two targets.
fn measure(args: &CompareArgs, plan: &mut Plan) -> Result<ExitCode, Failure> {
    const BUDGETED: [&str; 4] =
        ["rounds.at_least", "rounds.at_most", "rounds.until", "rounds.budget"];
    if let Some((key, _)) = args.settings.iter().find(|(key, _)| BUDGETED.contains(&&**key)) {
        return Err(Failure::Usage(format!(
            "--set {key} has no effect on a comparison: it ends when it is clear, and takes \
             --budget at most (--measure sets the length of a round, --until how tight the \
             interval has to be)"
        )));
    }
    if let Some(within) = args.same_within {
        plan.rounds.same_within = within;
    }
    plan.contest(&Contest {
        budget: args.budget,
        measure: args.measure,
        error: args.error.fraction,
        until: args.until.map(|until| until.fraction),
        factor: args.factor.clone(),
    })
    .map_err(Failure::Usage)?;
    say_expected(plan, &args.how)?;
    crate::run::measure(plan, &args.how)
}

/// Prints how many rounds are planned and the difference they can show, and keeps it in the plan if
/// it is derived from an earlier run; else the first look derives it again.
fn say_expected(plan: &mut Plan, how: &HowArgs) -> Result<(), Failure> {
    let (most, measure) = (plan.rounds.at_most, plan.rounds.measure);
    let Some(sequence) = &plan.rounds.sequence else { return Ok(()) };
    let error = sequence.error / plan.points.len() as f64;
    let last = judge::nominal_errors(&judge::looks(most), most, error);
    let Some(last) = last.and_then(|errors| errors.last().copied()) else { return Ok(()) };
    let storage = Storage::find(how.ledger.as_deref())?;
    let Some(detectable) = Detectable::of(plan, &storage, most, last)? else { return Ok(()) };
    let said = format!("at most {most} rounds of 2 × {measure} a point: {}", detectable.words());
    note(report::wrapped(&said));
    if let Some(sequence) = &mut plan.rounds.sequence {
        let from = detectable.from.map(|run| format!("run {run}"));
        sequence.least_shown = from.map(|from| (detectable.least, from));
    }
    Ok(())
}
