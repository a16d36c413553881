//! `loadline ledger`: what the ledger holds.

use std::path::PathBuf;
use std::process::ExitCode;

use ledger::Ledger;

use crate::exit::Failure;
use crate::home::Home;

/// Arguments of `loadline ledger`.
#[derive(Debug, clap::Args)]
pub(crate) struct LedgerArgs {
    #[command(subcommand)]
    command: LedgerCommand,
}

#[derive(Debug, clap::Subcommand)]
enum LedgerCommand {
    /// List the runs, newest last
    List {
        /// Print them as JSON on standard output
        #[arg(long)]
        json: bool,
        /// The ledger's file; otherwise the nearest .loadline/ledger.sqlite upward
        #[arg(long, value_name = "FILE")]
        ledger: Option<PathBuf>,
    },
}

pub(crate) fn run(args: &LedgerArgs) -> Result<ExitCode, Failure> {
    let LedgerCommand::List { json, ledger } = &args.command;
    let home = Home::find(ledger.as_deref())?;
    let runs = Ledger::open_read_only(&home.ledger)?.runs()?;
    if *json {
        let runs = runs.iter().map(|run| {
            serde_json::json!({
                "run": run.id.get(),
                "started_at": run.started_at,
                "state": run.state.word(),
                "title": run.title,
                "trials": run.trials,
            })
        });
        let all = serde_json::json!({ "schema": 1, "runs": runs.collect::<Vec<_>>() });
        println!("{}", serde_json::to_string_pretty(&all)?);
    } else {
        for run in runs {
            let (state, trials) = (run.state.word(), run.trials);
            let (id, started, title) = (run.id, run.started_at, run.title);
            println!("{:>5}  {started}  {state:<11} {trials:>5} trials  {title}", id.get());
        }
    }
    Ok(ExitCode::SUCCESS)
}
