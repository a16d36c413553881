//! `loadline ledger export`: the tables of a run for other programs.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use ledger::{EXPORTS, Export, Ledger, RunId};
use report::ExportFormat;

use crate::exit::Failure;
use crate::out::{self, note};
use crate::storage::Storage;

/// Arguments of `loadline ledger export`.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub(super) struct ExportArgs {
    /// The run's number, or `last`
    run: String,
    /// How it is written
    #[arg(long, value_enum)]
    format: Format,
    /// A table, once per table; otherwise all of them
    #[arg(long, value_name = "NAME", value_parser = table)]
    table: Vec<&'static Export>,
    /// The folder for a file per table; `-` is standard output, of one table only
    #[arg(long, value_name = "DIR", default_value = "-")]
    out: PathBuf,
    /// The ledger's file; otherwise the nearest .loadline/ledger.sqlite upward
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A line of names, then a line per row
    Csv,
    /// A JSON object per line
    Jsonl,
    /// Typed columns, where this program is built with the feature `parquet`
    Parquet,
    /// Latencies by second as an HdrHistogram log
    Hlog,
}

impl Format {
    /// What a file of it ends with.
    fn ending(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Jsonl => "jsonl",
            Self::Parquet => "parquet",
            Self::Hlog => "hlog",
        }
    }
}

fn after_help() -> String {
    let rows = EXPORTS.iter().map(|one| format!("  {:<13} {}", one.name, one.doc));
    format!(
        "A row of each table is:\n{}\n\n\
         Examples:\n  loadline ledger export last --format csv --table trials\n  \
         loadline ledger export 12 --format jsonl --out run-12\n  \
         loadline ledger export 12 --format parquet --out run-12\n  \
         loadline ledger export last --format hlog > last.hlog",
        rows.collect::<Vec<_>>().join("\n")
    )
}

fn table(name: &str) -> Result<&'static Export, String> {
    let names = || EXPORTS.iter().map(|one| one.name).collect::<Vec<_>>().join(", ");
    Export::named(name).ok_or_else(|| format!("there is no such table; there are {}", names()))
}

/// Every second of latencies as an HdrHistogram log.
fn hlog(args: &ExportArgs, ledger: &Ledger, run: RunId) -> Result<ExitCode, Failure> {
    if !args.table.is_empty() {
        return Err(Failure::Usage("--format hlog has no tables".to_owned()));
    }
    let started = ledger.run_view(run)?.run.started_at;
    let started: jiff::Timestamp = started.parse().context("when the run started")?;
    let log = ledger.hlog(run, started.into())?;
    if args.out == Path::new("-") {
        out::stream().write_all(&log)?;
        return Ok(ExitCode::SUCCESS);
    }
    std::fs::create_dir_all(&args.out)
        .with_context(|| format!("making the folder {}", args.out.display()))?;
    let path = args.out.join("latency.hlog");
    std::fs::write(&path, log).with_context(|| format!("writing {}", path.display()))?;
    note(path.display());
    Ok(ExitCode::SUCCESS)
}

pub(super) fn run(args: &ExportArgs) -> Result<ExitCode, Failure> {
    if args.format == Format::Parquet && !cfg!(feature = "parquet") {
        let message = "this loadline is built without Parquet: build it with `cargo build \
                       --release --features parquet`, or take --format csv";
        return Err(Failure::Usage(message.to_owned()));
    }
    let storage = Storage::find(args.ledger.as_deref())?;
    let ledger = storage.read()?;
    let run = crate::report::run_named(&ledger, &args.run)?;
    if args.format == Format::Hlog {
        return hlog(args, &ledger, run);
    }
    let tables: Vec<&Export> =
        if args.table.is_empty() { EXPORTS.iter().collect() } else { args.table.clone() };
    if args.out == Path::new("-") {
        let [table] = tables[..] else {
            let message = "standard output takes one table: name it with --table, or a folder \
                           for all of them with --out";
            return Err(Failure::Usage(message.to_owned()));
        };
        write(args, &ledger, run, table, &mut out::stream())?;
        return Ok(ExitCode::SUCCESS);
    }
    std::fs::create_dir_all(&args.out)
        .with_context(|| format!("making the folder {}", args.out.display()))?;
    for table in tables {
        let path = args.out.join(format!("{}.{}", table.name, args.format.ending()));
        let about = || format!("writing {}", path.display());
        let mut file = File::create(&path).with_context(about)?;
        write(args, &ledger, run, table, &mut file).with_context(about)?;
        note(path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a table in the format that was asked for.
fn write(
    args: &ExportArgs,
    ledger: &Ledger,
    run: RunId,
    table: &Export,
    out: &mut (dyn Write + Send),
) -> anyhow::Result<()> {
    let mut out = BufWriter::new(out);
    match args.format {
        Format::Csv => report::export(ledger, run, table, ExportFormat::Csv, &mut out)?,
        #[cfg(feature = "parquet")]
        Format::Parquet => ledger.parquet(run, table, &mut out)?,
        _ => report::export(ledger, run, table, ExportFormat::JsonLines, &mut out)?,
    }
    out.flush()?;
    Ok(())
}
