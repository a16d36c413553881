//! `loadline ledger prune`: deletes old runs, and frees their space.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use base::units::Span;
use jiff::Timestamp;
use ledger::{Ledger, RunId, RunLine, RunState};

use crate::exit::Failure;
use crate::out;
use crate::storage::Storage;

/// Arguments of `loadline ledger prune`.
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("which").required(true),
    after_help = "\
Examples:
  loadline ledger prune --keep 20 --dry-run
  loadline ledger prune --older-than 30d"
)]
pub(super) struct PruneArgs {
    /// Keep the newest N runs, by when they started
    #[arg(long, value_name = "N", group = "which")]
    keep: Option<usize>,
    /// Delete runs that started longer ago: 30d, 12h
    #[arg(long, value_name = "TIME", group = "which", value_parser = age)]
    older_than: Option<Span>,
    /// Say which runs would go, and delete nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    common: super::common::CommonArgs,
}

/// A span that may be given in days, which are of 24 hours here.
fn age(written: &str) -> Result<Span, String> {
    let days = written.strip_suffix('d').and_then(|days| days.trim().parse::<u32>().ok());
    if let Some(days) = days {
        return Ok(Span { ns: u64::from(days).saturating_mul(24 * 3600 * 1_000_000_000) });
    }
    written.parse().map_err(|_| format!("\"{written}\" is not a time such as \"30d\" or \"12h\""))
}

pub(super) fn run(args: &PruneArgs) -> Result<ExitCode, Failure> {
    let storage = Storage::find(args.common.ledger.as_deref())?;
    // Nothing is made just to be pruned.
    let mut ledger = match args.dry_run {
        true => Ledger::open_read_only(&storage.ledger),
        false => Ledger::open_existing(&storage.ledger),
    }
    .map_err(|error| storage.failure(error))?;
    let runs = ledger.runs()?;
    let chosen = choose(args, &runs)?;
    let ids: Vec<RunId> = chosen.iter().map(|run| run.id).collect();
    let running = runs.iter().find(|run| run.state == RunState::Running);
    let mut freed_bytes = None;
    if !args.dry_run && !ids.is_empty() {
        if let Some(run) = running {
            return Err(Failure::Other(anyhow::anyhow!(
                "run {} is being measured into this ledger: prune when it has ended, as pruning \
                 would disturb it",
                run.id
            )));
        }
        let mut freed = ledger.delete_runs(&ids).map_err(|error| storage.failure(error))?;
        for run in &ids {
            freed += delete_logs(&storage, *run)?;
        }
        freed_bytes = Some(freed);
    }
    let mut out = out::stream();
    if args.common.json {
        let all = serde_json::json!({
            "schema": 1,
            "dry_run": args.dry_run,
            "deleted": ids.iter().map(|run| run.get()).collect::<Vec<_>>(),
            "kept": runs.len() - ids.len(),
            "freed_bytes": freed_bytes,
        });
        writeln!(out, "{all:#}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let verb = if args.dry_run { "would delete" } else { "deleted" };
    for run in &chosen {
        writeln!(
            out,
            "{verb} run {}  {}  {}",
            run.id,
            run.started_at,
            report::one_line(&run.title)
        )?;
    }
    let kept = runs.len() - ids.len();
    let freed = freed_bytes.map(|freed| format!(", {} freed", report::bytes(freed as f64)));
    let freed = freed.unwrap_or_default();
    let passive = if args.dry_run { "would be deleted" } else { "deleted" };
    writeln!(out, "{} {passive}, {kept} kept{freed}", ids.len())?;
    Ok(ExitCode::SUCCESS)
}

/// The runs to delete, oldest first. One that is being measured is never among them.
fn choose<'a>(args: &PruneArgs, runs: &'a [RunLine]) -> anyhow::Result<Vec<&'a RunLine>> {
    let mut dated = Vec::with_capacity(runs.len());
    for run in runs {
        let started: Timestamp = run
            .started_at
            .parse()
            .with_context(|| format!("run {} has no readable time of its start", run.id))?;
        dated.push((started, run));
    }
    // Merged runs have later ids than their time, so ids don't show which is newest.
    dated.sort_by_key(|(started, run)| (*started, run.id));
    let keep = args.keep.unwrap_or(0);
    dated.truncate(dated.len().saturating_sub(keep));
    if let Some(age) = args.older_than {
        let now = Timestamp::now();
        dated.retain(|(started, _)| {
            now.duration_since(*started).unsigned_abs() > age.duration() && *started < now
        });
    }
    dated.retain(|(_, run)| run.state != RunState::Running);
    Ok(dated.into_iter().map(|(_, run)| run).collect())
}

/// Deletes the logs of a run. Returns the bytes freed.
fn delete_logs(storage: &Storage, run: RunId) -> anyhow::Result<u64> {
    let folder = storage.logs.join(run.to_string());
    if !folder.is_dir() {
        return Ok(0);
    }
    let bytes = size_of(&folder).unwrap_or(0);
    std::fs::remove_dir_all(&folder)
        .with_context(|| format!("deleting the logs in {}", folder.display()))?;
    Ok(bytes)
}

fn size_of(folder: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        bytes += if about.is_dir() { size_of(&entry.path())? } else { about.len() };
    }
    Ok(bytes)
}
