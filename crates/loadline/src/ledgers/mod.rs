//! `loadline ledger`: what the ledger holds, and its upkeep: one file per subcommand.

mod common;
mod export;
mod list;
mod merge;
mod prune;

use std::process::ExitCode;

use crate::exit::Failure;

pub(crate) use list::{as_json as list_as_json, concluded as concluded_runs};

/// Arguments of `loadline ledger`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loadline ledger list
  loadline ledger merge host-b.sqlite
  loadline ledger prune --keep 20 --dry-run
  loadline ledger export last --format csv --table trials

It is an SQLite file; docs/ledger.md describes its tables.")]
pub(crate) struct LedgerArgs {
    #[command(subcommand)]
    command: LedgerCommand,
}

#[derive(Debug, clap::Subcommand)]
enum LedgerCommand {
    /// List the runs, newest last
    List(list::ListArgs),
    /// Take the runs of other ledgers into this one
    Merge(merge::MergeArgs),
    /// Delete old runs with everything that hangs on them
    Prune(prune::PruneArgs),
    /// Write the tables of a run as CSV or JSON lines
    Export(export::ExportArgs),
}

pub(crate) fn run(args: &LedgerArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        LedgerCommand::List(args) => list::run(args),
        LedgerCommand::Merge(args) => merge::run(args),
        LedgerCommand::Prune(args) => prune::run(args),
        LedgerCommand::Export(args) => export::run(args),
    }
}
