//! `loadline run`: measures a suite, keeps it in the ledger, and reports it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use findings::Summary;
use lab::deploy::Orphans;
use lab::plan::{Plan, Point, Target};
use lab::run::{Ending, Extras, RunError, RunOptions};
use ledger::{Ledger, RunId};

use crate::exit::Failure;
use crate::live::{self, Live};
use crate::out::note;
use crate::plan::SuiteArgs;
use crate::report::Form;
use crate::run_lock::{RunLock, command_line};
use crate::storage::Storage;

/// Arguments of `loadline run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loadline run suites/tour.toml
  loadline run suites/tour.toml --set clients.connections=64 --set rounds.measure=2s
  loadline run suites/tour.toml --cost          and what an operation costs, call by call
  loadline run suites/tour.toml --json > result.json

On a terminal it shows how it goes while it goes, else in a line a round (--plain, TERM=dumb, a
pipe). What was found is printed at the end. NO_COLOR is heeded.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    suite: SuiteArgs,
    #[command(flatten)]
    how: HowArgs,
}

/// How a run is done and shown, whatever its suite comes from.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct HowArgs {
    /// Print the result as JSON on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Show the slowest requests of each target as well
    #[arg(long, short)]
    verbose: bool,
    /// The ledger's file; otherwise the nearest .loadline/ledger.sqlite upward, or a new one here
    #[arg(long, value_name = "FILE")]
    pub(crate) ledger: Option<PathBuf>,
    /// Say how it goes in plain lines, even on a terminal
    #[arg(long)]
    plain: bool,
    /// Wait when this host is measuring already, instead of giving up
    #[arg(long)]
    wait: bool,
    /// Chooses the order of everything and the operations; drawn anew unless given
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Count the system calls of an operation as well, in short trials of their own at the end
    #[arg(long)]
    cost: bool,
    /// Say what the words of the report mean as well
    #[arg(long)]
    pub(crate) explain: bool,
    /// Profile every target so often at the first point, in short trials at the end (needs perf)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=20))]
    pub(crate) profiles: Option<u32>,
    /// Exit with 3 when the first target is worse than another one
    #[arg(long, value_name = "VERDICT", value_parser = ["worse"])]
    fail_on: Option<String>,
    /// Take a verdict of this rank for one, in the exit code: from disturbed rounds
    #[arg(long, value_name = "RANK", value_parser = ["likely"])]
    pub(crate) accept: Option<String>,
    /// Why figures that hold all that is required can't be relied on, where they can't.
    #[arg(skip)]
    pub(crate) doubt: Option<fn(&Summary) -> Option<String>>,
}

impl HowArgs {
    /// A run whose progress is shown by the caller, as after `--plain`.
    pub(crate) fn shown_by_caller(json: bool, ledger: Option<PathBuf>, wait: bool) -> Self {
        Self { json, ledger, wait, plain: true, ..Self::default() }
    }

    /// The exit code of a run that has been printed; a doubt is its last line.
    fn exit_code_of(&self, summary: &Summary) -> u8 {
        let code = self.exit_code(findings::outcome(summary));
        let Some(doubt) = self.doubt.and_then(|doubt| doubt(summary)) else { return code };
        match self.json {
            true => note(doubt),
            // The exit code says the same where it can't be printed.
            false => _ = crate::out::print(doubt + "\n"),
        }
        if code == 0 { CANT_TELL } else { code }
    }

    /// The exit code of an outcome.
    pub(crate) fn exit_code(&self, outcome: findings::Outcome) -> u8 {
        let outcome = match self.accept {
            Some(_) => outcome.accepting_likely(),
            None => outcome,
        };
        outcome.exit_code(self.fail_on.is_some())
    }
}

pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let plan = args.suite.read()?;
    crate::builds::refuse_worktrees(&plan)?;
    measure(&plan, &args.how)
}

/// Measures a plan, keeps it in the ledger, and reports it.
pub(crate) fn measure(plan: &Plan, how: &HowArgs) -> Result<ExitCode, Failure> {
    let unbuilt = |target: &&Target| {
        let wanted = target.rung.as_ref().is_some_and(|rung| rung.commit.is_some());
        wanted && !target.facts.iter().any(|(name, _)| name == "commit")
    };
    if let Some(target) = plan.targets().iter().find(unbuilt) {
        let message = "is a commit that is yet to be built: loadline ladder SUITE --build COMMAND";
        return Err(Failure::Usage(format!("{} {message}", target.name)));
    }
    measure_with(plan, how, lab::run::run)
}

/// The same, by another way of measuring.
pub(crate) fn measure_with(
    plan: &Plan,
    how: &HowArgs,
    run: impl FnOnce(RunOptions<'_>) -> Result<(RunId, Ending), RunError>,
) -> Result<ExitCode, Failure> {
    plan.notes.iter().for_each(note);
    for target in plan.targets() {
        if let Some(why) = &target.skipped {
            note(format!("{} is left out: {why}", target.name));
        }
    }
    raise_file_limit(plan)?;
    let stop = live::stop_flag().context("signals can't be caught")?;
    let Some(lock) = RunLock::take(how.wait, &stop)? else {
        note("interrupted; nothing was measured");
        return Ok(ExitCode::from(130));
    };
    let storage = Storage::find(how.ledger.as_deref())?;
    let mut ledger = Ledger::open(&storage.ledger).map_err(|error| storage.failure(error))?;
    let before = ledger.last_run().map_err(|error| storage.failure(error))?;
    let exe = std::env::current_exe().context("this program can't find itself")?;
    let mut live = Live::begin(plan, how.plain, &storage);
    let orphans = Orphans::adopt();
    let measured = run(RunOptions {
        plan,
        exe: &exe,
        ledger: &mut ledger,
        build: &crate::registry::build(),
        logs: &storage.logs,
        command: command_line(),
        seed: how.seed.unwrap_or_else(drawn_seed),
        extras: Extras { trace: how.cost, profiles: how.profiles.unwrap_or(0) },
        stop,
        progress: &mut |progress| live.show(progress),
    });
    drop(live);
    orphans.end();
    drop(lock);
    let &HowArgs { json, verbose, cost, explain, .. } = how;
    let shown = Form { json, verbose, cost, explain };
    let (run, ending) = match measured {
        Ok(ended) => ended,
        Err(RunError::Ledger(error)) => {
            print_unfinished(&ledger, before, shown);
            return Err(storage.failure(error));
        }
        Err(error) => return Err(error.into()),
    };
    let mut conclusion = None;
    let printed = crate::report::print(&ledger, run, shown, |summary| {
        conclusion = Some(report::concluded(summary));
        how.exit_code_of(summary)
    });
    // Lists of runs make it themselves where it isn't kept.
    let _ = conclusion.map(|conclusion| ledger.conclude(run, &conclusion));
    let page = storage.logs.join(run.to_string()).join("report.html");
    // The run is in the ledger and on the screen: a full disk here must not make it a failure.
    if let Err(error) = crate::report::save_page(&ledger, run, &page) {
        note(format!("its page can't be written: {error:#}"));
    }
    // The page is there where the terminal has gone.
    let code = printed?;
    Ok(ended(ending, run, code))
}

/// Says how a run ended that didn't end by itself, and gives its exit code.
fn ended(ending: Ending, run: RunId, code: ExitCode) -> ExitCode {
    match ending {
        Ending::Finished => code,
        Ending::Aborted(condition) => {
            let said =
                format!("aborted, because {condition}; what was measured is kept as run {run}");
            note(report::wrapped(&said));
            ExitCode::from(3)
        }
        Ending::Hopeless(why) => {
            let why = why.lines().map(report::one_line).collect::<Vec<_>>().join("\n  ");
            let said = format!("ended early: {why}\nwhat was measured is kept as run {run}");
            note(report::wrapped(&said));
            code
        }
        Ending::Interrupted => {
            note(format!("interrupted; what was measured is kept as run {run}"));
            ExitCode::from(130)
        }
    }
}

/// Prints what the ledger took before it failed, as of a full disk: the run began after `before`.
fn print_unfinished(ledger: &Ledger, before: Option<RunId>, shown: Form) {
    let Ok(Some(run)) = ledger.last_run() else { return };
    let runs = ledger.runs().unwrap_or_default();
    let has_trials = runs.iter().any(|one| one.id == run && one.trials > 0);
    if Some(run) != before && has_trials && crate::report::print(ledger, run, shown, |_| 1).is_ok()
    {
        note(format!("the ledger failed: these are the rounds of run {run} that it took before"));
    }
}

/// Raises the limit of open files for the connections of the load, before anything starts.
fn raise_file_limit(plan: &Plan) -> Result<(), Failure> {
    let of_point = |point: &Point| {
        let targets = point.targets.iter().filter(|target| target.is_measured()).count();
        let connections: usize = point.clients.iter().map(|group| group.connections).sum();
        connections * targets
    };
    let connections = plan.points.iter().map(of_point).max().unwrap_or(0) as u64;
    let wanted = connections + OWN_DESCRIPTORS;
    let allowed = wire::allow_descriptors(wanted);
    if allowed >= wanted {
        return Ok(());
    }
    Err(Failure::Other(anyhow::anyhow!(
        "{connections} connections to all targets take {wanted} descriptors, and this process may \
         have {allowed}: raise its hard limit (ulimit -Hn {wanted}), or take fewer \
         clients.connections"
    )))
}

/// The exit code of figures that say nothing for sure.
const CANT_TELL: u8 = 4;

/// What a run has open beside the connections of the load: files, pipes, sensors.
const OWN_DESCRIPTORS: u64 = 256;

/// A seed from the clock: it only has to differ from run to run, and is kept in the ledger.
fn drawn_seed() -> u64 {
    jiff::Timestamp::now().as_nanosecond() as u64
}
