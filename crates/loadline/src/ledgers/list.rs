//! `loadline ledger list`: which runs there are, each with its sentence.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use ledger::RunLine;
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::out;
use crate::storage::Storage;

/// Arguments of `loadline ledger list`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loadline ledger list
  loadline ledger list --json --ledger nightly.sqlite")]
pub(super) struct ListArgs {
    #[command(flatten)]
    common: super::common::CommonArgs,
}

pub(super) fn run(args: &ListArgs) -> Result<ExitCode, Failure> {
    let storage = Storage::find(args.common.ledger.as_deref())?;
    let ledger = storage.read()?;
    let runs = ledger.runs()?;
    let mut out = out::stream();
    if args.common.json {
        writeln!(out, "{:#}", as_json(&runs))?;
    } else {
        let results = ledger.results()?;
        let colour = std::io::stdout().is_terminal() && crate::live::may_colour();
        for run in runs {
            let sentence = report::run_sentence(&run, results.get(&run.id), colour);
            let (state, trials) = (run.state.word(), run.trials);
            let [started, title] = [&run.started_at, &run.title].map(|text| report::one_line(text));
            let id = run.id.get();
            let head = format!("{id:>5}  {started}  {state:<11} {trials:>5} trials  {title}");
            out.write_all(report::wrapped(&format!("{head}\n       {sentence}\n")).as_bytes())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The runs as JSON, as described in docs/json.md.
pub(crate) fn as_json(runs: &[RunLine]) -> Value {
    let runs = runs.iter().map(|run| {
        json!({
            "run": run.id.get(),
            "uid": run.uid,
            "started_at": run.started_at,
            "state": run.state.word(),
            "title": run.title,
            "trials": run.trials,
            "valid_trials": run.valid_trials,
        })
    });
    json!({ "schema": 1, "runs": runs.collect::<Vec<_>>() })
}
