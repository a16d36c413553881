//! `loadline workflow`: what users and scripts do with definitions. Control plane.

mod check;
mod generate;
mod input;
mod print;
mod simulate;

use clap::Subcommand;
use service::{Outcome, Run};

const EXAMPLES: &str = "\
Examples:
  loadline workflow check x.def                  what ecFlow's parser refuses, each with its line
  loadline workflow lint x.def --home $ECF_HOME  what never runs, scripts that are missing
  loadline workflow simulate x.def --until 7d    what would run when
  loadline workflow print x.def --style migrate  as a checkpoint has it
  loadline workflow gen --scale 1 > 3199.def     320,830 nodes, 60 MB";

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
    /// Write a definition with the counts of ECMWF's performance tests, in which every task waits
    Gen(generate::GenArgs),
}

impl Run for WorkflowCommandArgs {
    fn run(self) -> Outcome {
        match self.command {
            WorkflowCommand::Check(args) => check::check(&args),
            WorkflowCommand::Lint(args) => check::lint(&args),
            WorkflowCommand::Simulate(args) => simulate::run(&args),
            WorkflowCommand::Print(args) => print::run(&args),
            WorkflowCommand::Gen(args) => generate::run(args),
        }
    }
}
