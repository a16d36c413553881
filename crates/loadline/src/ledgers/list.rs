//! `loadline ledger list`: which runs there are, each with its sentence.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use findings::Summary;
use ledger::{Ledger, LedgerError, RunLine, RunState};
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::out::{self, note};
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
    let runs = concluded(&storage.read()?)?;
    let mut out = out::stream();
    if args.common.json {
        writeln!(out, "{:#}", as_json(&runs))?;
    } else {
        if runs.is_empty() {
            note(format!("{} has no runs", storage.ledger.display()));
        }
        let colour = std::io::stdout().is_terminal() && crate::live::may_colour();
        for run in runs {
            let sentence = report::run_sentence(&run, colour);
            let (state, trials) = (run.state.word(), run.trials);
            let [started, title] = [&run.started_at, &run.title].map(|text| report::one_line(text));
            let id = run.id.get();
            let head = format!("{id:>5}  {started}  {state:<11} {trials:>5} trials  {title}");
            out.write_all(report::wrapped(&format!("{head}\n       {sentence}\n")).as_bytes())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// All runs. Of one that was killed before its report the conclusion is made here.
pub(crate) fn concluded(ledger: &Ledger) -> Result<Vec<RunLine>, LedgerError> {
    let mut runs = ledger.runs()?;
    let has_none = |run: &&mut RunLine| run.conclusion.is_none() && run.state != RunState::Running;
    for run in runs.iter_mut().filter(has_none) {
        let summary = ledger.run_view_without_slow(run.id).and_then(Summary::of);
        // A damaged run has none, and the others are listed.
        run.conclusion = summary.ok().map(|summary| report::concluded(&summary));
    }
    Ok(runs)
}

/// The runs as JSON, as described in docs/json.md.
pub(crate) fn as_json(runs: &[RunLine]) -> Value {
    let runs = runs.iter().map(|run| {
        let conclusion = run.conclusion.as_ref();
        json!({
            "run": run.id.get(),
            "uid": run.uid,
            "started_at": run.started_at,
            "state": run.state.word(),
            "title": run.title,
            "trials": run.trials,
            "valid_trials": run.valid_trials,
            "outcome": conclusion.map(|one| &one.outcome),
            "conclusion": conclusion.map(|one| &one.sentences),
        })
    });
    json!({ "schema": 1, "runs": runs.collect::<Vec<_>>() })
}
