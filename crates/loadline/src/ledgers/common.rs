//! The arguments that subcommands share.

use std::path::PathBuf;

/// Which ledger, and how results are printed.
#[derive(Debug, clap::Args)]
pub(super) struct CommonArgs {
    /// Print the result as JSON on standard output
    #[arg(long)]
    pub(super) json: bool,
    /// The ledger's file; otherwise the nearest .loadline/ledger.sqlite upward
    #[arg(long, value_name = "FILE")]
    pub(super) ledger: Option<PathBuf>,
}
