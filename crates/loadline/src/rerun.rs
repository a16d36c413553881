//! `loadline rerun RUN`: the same suite with the same settings once more, from the ledger.

use std::process::ExitCode;

use anyhow::Context;
use lab::plan::Plan;

use crate::exit::Failure;
use crate::out::note;
use crate::run::HowArgs;
use crate::storage::Storage;

/// Arguments of `loadline rerun`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loadline rerun last
  loadline rerun 12 --same-seed")]
pub(crate) struct RerunArgs {
    /// The run's number, or `last`
    run: String,
    /// Draw the same operations in the same order as that run
    #[arg(long, conflicts_with = "seed")]
    same_seed: bool,
    #[command(flatten)]
    how: HowArgs,
}

pub(crate) fn run(mut args: RerunArgs) -> Result<ExitCode, Failure> {
    let storage = Storage::find(args.how.ledger.as_deref())?;
    let ledger = storage.read()?;
    let view = ledger.run_view(crate::report::run_named(&ledger, &args.run)?)?;
    drop(ledger);
    let read = |(key, value): &(String, String)| {
        lab::plan::parse_setting(&format!("{key}={value}")).map_err(anyhow::Error::msg)
    };
    let settings: anyhow::Result<Vec<_>> = view.run.settings.iter().map(read).collect();
    let settings = settings.context("the run's settings")?;
    let path = std::path::Path::new(&view.suite.path);
    let plan = Plan::parse(path, view.suite.text, &settings, crate::registry::registry())
        .map_err(crate::exit::suite)?;
    if args.same_seed {
        args.how.seed = Some(view.run.seed);
    }
    // The suite may have come with another ledger: what it starts is shown before it is started.
    note(crate::plan::executed_by(&plan).trim_end());
    crate::run::measure(&plan, &args.how)
}
