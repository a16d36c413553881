//! `loadline workflow`: what users and scripts do with definitions, and with servers of ecFlow's
//! protocol. Control plane.

mod check;
mod generate;
mod history;
mod input;
mod jobs;
mod print;
mod record;
mod replay;
mod rung;
mod server;
mod simulate;
mod stats;
mod top;
mod transfer;
mod watch;
mod why;

use clap::Subcommand;
use service::{Outcome, Run};

const EXAMPLES: &str = "\
Examples:
  loadline workflow check x.def                  what ecFlow's parser refuses, each with its line
  loadline workflow lint x.def --home $ECF_HOME  what never runs, scripts that are missing
  loadline workflow simulate x.def --until 7d    what would run when
  loadline workflow print x.def --style migrate  as a checkpoint has it
  loadline workflow stats x.def                  how many of each, and what they cost in memory
  loadline workflow jobs x.def --generate-only   what each script becomes as a job
  loadline workflow load localhost:3141 x.def --begin
  loadline workflow why localhost:3141 /x/f/a    what a node waits for
  loadline workflow watch localhost:3141         what changes, as it comes
  loadline workflow top localhost:3141           the tree on the terminal, live
  loadline workflow history HOST.3141.ecf.log    the slowest tasks, by the server's log
  loadline workflow record localhost:3141 --to day.jsonl    what clients ask, as they do
  loadline workflow replay day.jsonl localhost:4141         the same again, answers compared
  loadline workflow get localhost:3141 /x        a definition, with states or without
  loadline workflow gen --scale 1 > 3199.def     320,830 nodes, 60 MB

Those with an address ask any server of ecFlow's protocol 5.9.2, this program's or ecFlow's own;
--ssl or ECF_SSL encrypts.";

/// Arguments of `loadline workflow`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WorkflowCommandArgs {
    #[command(subcommand)]
    command: WorkflowCommand,
}

#[derive(Debug, Subcommand)]
enum WorkflowCommand {
    /// Say what ecFlow refuses or warns of in a definition: lines, names, references
    Check(check::CheckArgs),
    /// Say what never runs, too: contradictions, circles, limits without room, missing scripts
    Lint(check::LintArgs),
    /// Say what would run when, and what never would and why
    Simulate(simulate::SimulateArgs),
    /// Print a definition as servers do, or read what is printed again and compare
    Print(print::PrintArgs),
    /// Count what a definition consists of, and what its nodes and attributes cost in memory
    Stats(stats::StatsArgs),
    /// Write the jobs of all tasks of a definition, without a server
    Jobs(jobs::JobsArgs),
    /// Say why a node of a server waits: what holds it, and what holds each node above it
    Why(why::WhyArgs),
    /// Print what changes in a server's tree, as it comes
    Watch(watch::WatchArgs),
    /// Show a server's tree on the terminal as it changes, and suspend, resume, run and requeue
    Top(top::TopArgs),
    /// Sum up the runs of tasks by a server's log, or keep every change of a state in SQLite
    History(history::HistoryArgs),
    /// Keep what clients ask a server, with times and answers, to ask it again
    Record(record::RecordArgs),
    /// Ask again what was recorded, at any server, and compare the answers
    Replay(replay::ReplayArgs),
    /// Print a server's definition, or that of a node
    Get(transfer::GetArgs),
    /// Check a definition, and load it into a server
    Load(transfer::LoadArgs),
    /// Write a definition with the counts of ECMWF's performance tests, in which every task waits
    Gen(generate::GenArgs),
    /// Measure one way to print, to write a checkpoint, to snapshot, or to write shared texts
    Rung(rung::RungArgs),
}

impl Run for WorkflowCommandArgs {
    fn run(self) -> Outcome {
        match self.command {
            WorkflowCommand::Check(args) => check::check(&args),
            WorkflowCommand::Lint(args) => check::lint(&args),
            WorkflowCommand::Simulate(args) => simulate::run(&args),
            WorkflowCommand::Print(args) => print::run(&args),
            WorkflowCommand::Stats(args) => stats::run(&args),
            WorkflowCommand::Jobs(args) => jobs::run(&args),
            WorkflowCommand::Why(args) => why::run(&args),
            WorkflowCommand::Watch(args) => watch::run(&args),
            WorkflowCommand::Top(args) => top::run(&args),
            WorkflowCommand::History(args) => history::run(&args),
            WorkflowCommand::Record(args) => record::run(&args),
            WorkflowCommand::Replay(args) => replay::run(&args),
            WorkflowCommand::Get(args) => transfer::get(&args),
            WorkflowCommand::Load(args) => transfer::load(&args),
            WorkflowCommand::Gen(args) => generate::run(args),
            WorkflowCommand::Rung(args) => rung::run(&args),
        }
    }
}
