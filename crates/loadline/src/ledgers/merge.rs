//! `loadline ledger merge`: runs of other ledgers, measured on other hosts perhaps, in one place.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use ledger::{Ledger, Merged, RunId};

use crate::exit::Failure;
use crate::out;
use crate::storage::Storage;

/// Arguments of `loadline ledger merge`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A run that is here already is left alone, so merging the same ledger twice is harmless. The other
ledgers stay as they are. Logs are not taken along.

Examples:
  loadline ledger merge host-b.sqlite host-c.sqlite
  loadline ledger merge ../other/.loadline/ledger.sqlite --ledger all.sqlite")]
pub(super) struct MergeArgs {
    /// The other ledgers
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    common: super::common::CommonArgs,
}

pub(super) fn run(args: &MergeArgs) -> Result<ExitCode, Failure> {
    let storage = Storage::find(args.common.ledger.as_deref())?;
    // All others are looked at before this one is changed, or made.
    let mut others = Vec::new();
    for file in &args.files {
        if is_same(file, &storage.ledger) {
            let message = format!("{} is the ledger to merge into", file.display());
            return Err(Failure::Usage(message));
        }
        let other =
            Ledger::open_read_only(file).map_err(|error| Storage::named(file).failure(error))?;
        others.push((file, other));
    }
    let mut ledger = Ledger::open(&storage.ledger).map_err(|error| storage.failure(error))?;
    let mut all = Vec::new();
    for (file, other) in others {
        let merged = ledger.merge(&other).with_context(|| {
            format!("merging {} into {}", file.display(), storage.ledger.display())
        })?;
        all.push((file, merged));
    }
    let mut out = out::stream();
    if args.common.json {
        let files: Vec<_> = all.iter().map(|(file, merged)| json(file, merged)).collect();
        writeln!(out, "{:#}", serde_json::json!({ "schema": 1, "files": files }))?;
    } else {
        for (file, merged) in &all {
            writeln!(out, "{}", words(file, merged))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn is_same(a: &Path, b: &Path) -> bool {
    a.canonicalize().ok().zip(b.canonicalize().ok()).is_some_and(|(a, b)| a == b)
}

fn words(file: &Path, merged: &Merged) -> String {
    let runs = |number: usize| match number {
        1 => "1 run".to_owned(),
        number => format!("{number} runs"),
    };
    let mut line = format!("{}: {} taken", file.display(), runs(merged.taken.len()));
    for (there, here) in &merged.taken {
        line.push_str(&format!("\n  run {there} is run {here} here"));
    }
    if !merged.known.is_empty() {
        line.push_str(&format!("\n  {} here already", runs(merged.known.len())));
    }
    for run in &merged.running {
        line.push_str(&format!("\n  run {run} left out: it is still running"));
    }
    line
}

fn json(file: &Path, merged: &Merged) -> serde_json::Value {
    let ids = |runs: &[RunId]| runs.iter().map(|run| run.get()).collect::<Vec<_>>();
    let taken = merged
        .taken
        .iter()
        .map(|(there, here)| serde_json::json!({ "run": here.get(), "there": there.get() }));
    serde_json::json!({
        "file": file.display().to_string(),
        "taken": taken.collect::<Vec<_>>(),
        "known": ids(&merged.known),
        "running": ids(&merged.running),
    })
}
