//! `loadline ladder`: one change on top of another, each judged against the rung before it.

use std::path::PathBuf;
use std::process::ExitCode;

use lab::plan::{Plan, Target};
use ledger::{Decision, Ledger, RunKind};

use crate::builds::{self, Commit};
use crate::exit::Failure;
use crate::run::HowArgs;
use crate::storage::Storage;

/// Arguments of `loadline ladder`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loadline ladder suites/cache-ladder.toml
  loadline ladder mine.toml --build 'cargo build --release'       rungs that are commits
  loadline ladder --keep s3fifo --because 'more hits at the same CPU time'
  loadline ladder --back-out clock --because 'no difference, and more code' --run 12

A suite's [[rung]] tables are its ladder: docs/ladder.md.")]
pub(crate) struct LadderArgs {
    /// The suite's TOML file
    #[arg(required_unless_present_any = ["keep", "back_out"])]
    suite: Option<PathBuf>,
    /// Set one of the suite's keys, e.g. clients.connections=64; a swept key is no longer swept
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = lab::plan::parse_setting)]
    settings: Vec<(String, toml::Value)>,
    /// The shell command that builds a rung's commit, run in a git worktree of it
    #[arg(long, value_name = "COMMAND")]
    build: Option<String>,
    /// The program in the worktree that serves a service; other targets say {worktree} in the suite
    #[arg(long, value_name = "PATH", default_value = "target/release/loadline")]
    binary: String,
    /// Note that this rung stays, and why (--because)
    #[arg(long, value_name = "RUNG", requires = "because",
        conflicts_with_all = ["suite", "back_out"])]
    keep: Option<String>,
    /// Note that this rung was taken back, and why (--because)
    #[arg(long, value_name = "RUNG", requires = "because", conflicts_with = "suite")]
    back_out: Option<String>,
    /// The reason of the decision
    #[arg(long, value_name = "TEXT")]
    because: Option<String>,
    /// The run whose rung was decided about: a number, or `last`
    #[arg(long, value_name = "RUN", default_value = "last")]
    run: String,
    #[command(flatten)]
    how: HowArgs,
}

/// Profiles of each rung by default.
const PROFILES: u32 = 3;

pub(crate) fn run(args: LadderArgs) -> Result<ExitCode, Failure> {
    let because = args.because.as_deref().unwrap_or_default();
    match (&args.keep, &args.back_out, &args.suite) {
        (Some(rung), ..) => decide(&args, rung, Decision::Kept, because),
        (_, Some(rung), _) => decide(&args, rung, Decision::BackedOut, because),
        (None, None, Some(suite)) => {
            let mut plan = Plan::read(suite, &args.settings, crate::registry::registry())
                .map_err(crate::exit::suite)?;
            if !plan.targets().iter().any(|target| target.rung.is_some()) {
                let message = "has no [[rung]]: see docs/ladder.md";
                return Err(Failure::Usage(format!("{} {message}", suite.display())));
            }
            build(&args, &mut plan)?;
            let mut how = args.how;
            how.profiles.get_or_insert(PROFILES);
            crate::run::measure(&plan, &how)
        }
        (None, None, None) => Err(Failure::Usage("say which suite".to_owned())),
    }
}

/// Writes a decision down and shows the ladder with it.
fn decide(
    args: &LadderArgs,
    rung: &str,
    decision: Decision,
    because: &str,
) -> Result<ExitCode, Failure> {
    if because.trim().is_empty() {
        return Err(Failure::Usage("a decision needs a reason: --because TEXT".to_owned()));
    }
    let storage = Storage::find(args.how.ledger.as_deref())?;
    let mut ledger = Ledger::open(&storage.ledger).map_err(|error| storage.failure(error))?;
    let run = crate::report::run_named(&ledger, &args.run)?;
    if !ledger.decide(run, rung, decision, because)? {
        let view = ledger.run_view(run)?;
        let is_rung = |id| view.rungs.iter().any(|row| row.target_id == id);
        let names = view.targets.iter().filter(|(id, _)| is_rung(*id));
        let names: Vec<&str> = names.map(|(_, row)| &row.name[..]).collect();
        let said = match names.is_empty() {
            true => format!("run {run} is none of a ladder: {}", ladders(&ledger)?),
            false => format!("run {run} has no rung \"{rung}\"; it has: {}", names.join(", ")),
        };
        return Err(Failure::Usage(said));
    }
    let (json, explain) = (args.how.json, args.how.explain);
    let shown = crate::report::Form { json, verbose: false, cost: false, explain };
    crate::report::print(&ledger, run, shown, |_| 0)?;
    Ok(ExitCode::SUCCESS)
}

/// Which run of the ledger is a ladder's, and how it is named.
fn ladders(ledger: &Ledger) -> Result<String, Failure> {
    let runs = ledger.runs()?;
    let last = runs.iter().rev().find(|run| run.kind == RunKind::Ladder);
    Ok(match last {
        Some(last) => format!("the last one that is, is {0}: --run {0}", last.id),
        None => "the ledger has no ladder yet".to_owned(),
    })
}

/// Builds the commits of rungs and puts their programs in place.
fn build(args: &LadderArgs, plan: &mut Plan) -> Result<(), Failure> {
    let commit = |target: &Target| target.rung.as_ref()?.commit.clone();
    if !plan.targets().iter().any(|target| commit(target).is_some()) {
        return Ok(());
    }
    let Some(command) = args.build.as_deref() else {
        return Err(Failure::Usage("rungs with commits need --build \"COMMAND\"".to_owned()));
    };
    // A build may take long: what is mistyped is found before the first one.
    let found =
        |target: &Target| commit(target).map(|revision| Commit::find(&revision)).transpose();
    let found: Vec<Option<Commit>> = plan.targets().iter().map(found).collect::<Result<_, _>>()?;
    let folder = Storage::find(args.how.ledger.as_deref())?.builds()?;
    for (index, commit) in found.iter().enumerate() {
        let Some(commit) = commit else { continue };
        let built = builds::build(&folder, commit, command)?;
        for point in &mut plan.points {
            let target = &point.targets[index];
            let variant = built.variant(target, &args.binary);
            if let Some(program) = builds::program(&variant).filter(|path| !path.is_file()) {
                let what = "the build makes no such program; --binary or {worktree} names it";
                return Err(Failure::Usage(format!("{}: {what}", program.display())));
            }
            point.targets[index] = Target { name: target.name.clone(), ..variant };
        }
    }
    Ok(())
}
