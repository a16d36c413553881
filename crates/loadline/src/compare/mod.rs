//! `loadline compare`: is A better than B, worse, the same, or can't it be told?

mod commits;
mod runs;
mod samples;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use judge::{Direction, Rule};
use lab::plan::{Contest, Plan};
use load::units::{Share, Span};

use crate::exit::Failure;
use crate::expected::Expected;
use crate::home::Home;
use crate::out::{self, note};
use crate::run::HowArgs;

/// Arguments of `loadline compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loadline compare suites/tour.toml --a loadline --b memcached
  loadline compare suites/tour.toml --a loadline --b loadline     A/A: does this host see ghosts?
  loadline compare suites/tour.toml --commits main..HEAD --build 'cargo build --release'
  loadline compare --runs 12 9 --factor compiler                  two runs of the ledger
  loadline compare --samples after.txt before.txt                 figures from elsewhere
  loadline compare --samples new.json#results.0.times old.json#results.0.times --json

Rounds are measured until the verdict is clear, the interval is as tight as --until asks, or the
budget is spent. How often it is looked at, and how strict each look is, is fixed beforehand, so that
stopping early costs no honesty. docs/verdicts.md says what each word means.")]
pub(crate) struct CompareArgs {
    /// The suite's TOML file
    #[arg(required_unless_present_any = ["samples", "runs"])]
    suite: Option<PathBuf>,
    /// Set one of the suite's keys, e.g. clients.connections=64; a swept key is no longer swept
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = lab::plan::parse_setting)]
    settings: Vec<(String, toml::Value)>,
    /// The target that the verdict is about
    #[arg(long, value_name = "TARGET", requires = "b")]
    a: Option<String>,
    /// The target that it is compared with; the same again measures two instances of it
    #[arg(long, value_name = "TARGET", requires = "a")]
    b: Option<String>,
    /// Two commits, A..B or A,B: the verdict is about B. Each is built once, in a git worktree
    #[arg(long, value_name = "A..B", conflicts_with = "a", requires = "build")]
    commits: Option<String>,
    /// The shell command that builds a commit, run in its worktree
    #[arg(long, value_name = "COMMAND", requires = "commits")]
    build: Option<String>,
    /// The program in the worktree that serves a service; other targets say {worktree} in the suite
    #[arg(long, value_name = "PATH", default_value = "target/release/loadline")]
    binary: String,
    /// The target whose commits are compared; the first one unless given
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Measured time that may be spent, over all points and both targets
    #[arg(long, value_name = "TIME", default_value = "60s")]
    budget: Span,
    /// Measured time of each target in a round; chosen to fit at least 24 rounds unless given
    #[arg(long, value_name = "TIME", value_parser = crate::plan::measured_time)]
    measure: Option<Span>,
    /// Go on until the interval is this tight, even when the verdict is clear
    #[arg(long, value_name = "SHARE")]
    until: Option<Share>,
    /// Call differences up to this the same; otherwise as the suite says (2 %)
    #[arg(long, value_name = "SHARE")]
    same_within: Option<Share>,
    /// How often a difference may be called where there is none
    #[arg(long, value_name = "SHARE", default_value = "2.5%")]
    error: Share,
    /// What differs between the two on purpose, e.g. compiler; the verdict names it
    #[arg(long, value_name = "NAME")]
    factor: Option<String>,
    /// Judge a run of the ledger against an earlier one of the same suite
    #[arg(long, num_args = 2, value_name = "RUN", conflicts_with_all = ["suite", "a", "samples"])]
    runs: Option<Vec<String>>,
    /// Judge the figures in two files: numbers as text, FILE#COLUMN of CSV, FILE#PATH of JSON
    #[arg(long, num_args = 2, value_name = "FILE", conflicts_with_all = ["suite", "a"])]
    samples: Option<Vec<String>>,
    /// Which figures of --samples are better: lower ones such as times, or higher ones
    #[arg(long, value_name = "WHICH", default_value = "lower", value_parser = ["lower", "higher"])]
    better: String,
    #[command(flatten)]
    how: HowArgs,
}

pub(crate) fn run(args: &CompareArgs) -> Result<ExitCode, Failure> {
    if !(args.error.fraction > 0.0 && args.error.fraction < 0.5) {
        return Err(Failure::Usage("--error lies between 0 and 50 %".to_owned()));
    }
    if let Some(files) = &args.samples {
        return judge_samples(args, files);
    }
    if let Some(runs) = &args.runs {
        return runs::judge(args, runs);
    }
    let suite = args.suite.as_deref().unwrap_or(Path::new(""));
    let mut plan =
        Plan::read(suite, &args.settings, crate::registry::registry()).map_err(Failure::Suite)?;
    match (&args.commits, &args.a, &args.b) {
        (Some(commits), ..) => commits::vary(args, commits, &mut plan)?,
        (None, Some(a), Some(b)) => plan.keep_targets(a, b).map_err(Failure::Usage)?,
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
    let judged = report::Samples::judge(a, b, direction, rule, args.factor.clone());
    match args.how.json {
        true => out::print(format!("{:#}\n", judged.json()))?,
        false => out::print(judged.text())?,
    }
    Ok(ExitCode::from(judged.outcome().exit_code(args.how.fails_on_worse())))
}

/// Measures a plan that holds the two targets.
fn measure(args: &CompareArgs, plan: &mut Plan) -> Result<ExitCode, Failure> {
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
fn say_expected(plan: &mut Plan, how: &HowArgs) -> anyhow::Result<()> {
    let (most, measure) = (plan.rounds.at_most, plan.rounds.measure);
    let Some(sequence) = &plan.rounds.sequence else { return Ok(()) };
    let error = sequence.error / plan.points.len() as f64;
    let last = judge::nominal_errors(&judge::looks(most), most, error);
    let Some(last) = last.and_then(|errors| errors.last().copied()) else { return Ok(()) };
    let home = Home::find(how.ledger.as_deref())?;
    let Some(expected) = Expected::of(plan, &home, most, last)? else { return Ok(()) };
    note(format!("at most {most} rounds of 2 × {measure} a point: {}", expected.words()));
    if let Some(sequence) = &mut plan.rounds.sequence {
        let from = expected.from.map(|run| format!("run {run}"));
        sequence.least_shown = from.map(|from| (expected.least, from));
    }
    Ok(())
}
