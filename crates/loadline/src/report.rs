//! `loadline report`: a run of the ledger, as text, JSON, Markdown, JUnit or one HTML file.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use ledger::{Ledger, LedgerError, RunId};

use crate::exit::Failure;
use crate::out::{self, note};
use crate::storage::Storage;

/// Arguments of `loadline report`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loadline report
  loadline report 12 --json
  loadline report 12 --html run-12.html --junit run-12.xml
  loadline report --markdown >> comment.md")]
pub(crate) struct ReportArgs {
    /// The run's number, or `last`
    #[arg(default_value = "last")]
    run: String,
    /// Print it as JSON on standard output
    #[arg(long)]
    json: bool,
    /// Show the slowest requests of each target as well
    #[arg(long, short)]
    verbose: bool,
    /// Say what one operation costs on both sides as well; system calls where the run counted them
    #[arg(long)]
    cost: bool,
    /// Say what the words of the report mean as well
    #[arg(long)]
    explain: bool,
    /// Print it as Markdown on standard output, for a pull request
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Write it as one HTML file too, which opens without a network; `-` prints it
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write it as JUnit XML too: requirements, validity and verdicts as tests; `-` prints it
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// The ledger's file; otherwise the nearest .loadline/ledger.sqlite upward
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
}

pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode, Failure> {
    check_printed(args)?;
    let storage = Storage::find(args.ledger.as_deref())?;
    let ledger = storage.read()?;
    let run = run_named(&ledger, &args.run)?;
    let view = match args.json || args.verbose {
        true => ledger.run_view(run)?,
        false => ledger.run_view_without_slow(run)?,
    };
    let data = match &args.html {
        None => None,
        Some(_) => Some(findings::ChartData::read(&ledger, &view, ..report::MAX_POINTS_IN_FULL)?),
    };
    let summary = findings::Summary::of(view)?;
    if let (Some(file), Some(data)) = (&args.html, &data) {
        save(file, &report::html(&summary, data))?;
    }
    if let Some(file) = &args.junit {
        save(file, &report::junit(&summary, false))?;
    }
    let is_saved = args.html.is_some() || args.junit.is_some();
    if args.markdown {
        out::print(report::markdown(&summary))?;
    } else if args.json || !is_saved {
        let &ReportArgs { json, verbose, cost, explain, .. } = args;
        say(&summary, Form { json, verbose, cost, explain })?;
    }
    Ok(ExitCode::from(exit_code(&summary)))
}

/// The exit code that the run ended with; of one that was interrupted, that of what it measured.
fn exit_code(summary: &findings::Summary) -> u8 {
    let note = summary.run.note.as_deref().unwrap_or_default();
    match summary.run.state {
        ledger::RunState::Failed if note.starts_with(lab::run::ABORTED) => 3,
        // An error, as of a full disk; the outcome is of the rounds before it.
        ledger::RunState::Failed if !note.starts_with(lab::run::ENDED_EARLY) => 1,
        _ => findings::outcome(summary).exit_code(false),
    }
}

/// Standard output takes one form.
fn check_printed(args: &ReportArgs) -> Result<(), Failure> {
    let is_printed = |file: &Option<PathBuf>| file.as_deref().is_some_and(is_standard_output);
    let forms = [
        ("--html -", is_printed(&args.html)),
        ("--junit -", is_printed(&args.junit)),
        ("--json", args.json),
        ("--markdown", args.markdown),
    ];
    let printed: Vec<&str> =
        forms.into_iter().filter(|(_, is_printed)| *is_printed).map(|(form, _)| form).collect();
    match printed[..] {
        [first, second, ..] => Err(Failure::Usage(format!(
            "{first} and {second} both go to standard output: name a file for one of them"
        ))),
        _ => Ok(()),
    }
}

fn is_standard_output(file: &Path) -> bool {
    file == Path::new("-")
}

/// Writes a run as one HTML file, in a folder that is made for it, and prints its path.
pub(crate) fn save_page(ledger: &Ledger, run: RunId, file: &Path) -> anyhow::Result<()> {
    let (summary, data) = page_of(ledger, run)?;
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
    }
    save(file, &report::html(&summary, &data))
}

/// What the page of a run shows.
pub(crate) fn page_of(
    ledger: &Ledger,
    run: RunId,
) -> Result<(findings::Summary, findings::ChartData), ledger::LedgerError> {
    let most = report::MAX_POINTS_IN_FULL;
    let view = ledger.run_view_of(run, 0..=most as u32)?;
    let data = findings::ChartData::read(ledger, &view, ..most)?;
    Ok((findings::Summary::of(view)?, data))
}

/// Writes a file and prints its path; `-` is standard output.
fn save(file: &Path, text: &str) -> anyhow::Result<()> {
    if is_standard_output(file) {
        return Ok(out::print(text)?);
    }
    std::fs::write(file, text).with_context(|| match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.exists() => {
            format!("cannot write {}: there is no folder {}", file.display(), folder.display())
        }
        _ => format!("cannot write {}", file.display()),
    })?;
    note(format!("wrote {}", file.display()));
    Ok(())
}

/// The run of that number, or the last one.
pub(crate) fn run_named(ledger: &Ledger, name: &str) -> Result<RunId, Failure> {
    if name == "last" {
        return Ok(ledger.last_run()?.context("the ledger has no run yet")?);
    }
    let number = name.parse::<i64>().map(RunId::from);
    let wrong = |_| Failure::Usage(format!("\"{name}\" is not a run's number, nor `last`"));
    let run = number.map_err(wrong)?;
    match ledger.runs()?.iter().any(|known| known.id == run) {
        true => Ok(run),
        false => Err(Failure::usage(LedgerError::NoSuchRun(run))),
    }
}

/// In which form a run is printed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// JSON instead of text.
    pub(crate) json: bool,
    /// The slowest requests.
    pub(crate) verbose: bool,
    /// What an operation costs.
    pub(crate) cost: bool,
    /// What its words mean.
    pub(crate) explain: bool,
}

/// Prints a run on standard output and returns the exit code that `code` has for it.
pub(crate) fn print(
    ledger: &Ledger,
    run: RunId,
    shown: Form,
    code: impl FnOnce(&findings::Summary) -> u8,
) -> anyhow::Result<ExitCode> {
    let view = match shown.json || shown.verbose {
        true => ledger.run_view(run)?,
        false => ledger.run_view_without_slow(run)?,
    };
    let summary = findings::Summary::of(view)?;
    say(&summary, shown)?;
    Ok(ExitCode::from(code(&summary)))
}

/// Prints a text, and what its words mean where that was asked for.
pub(crate) fn print_text(text: String, explain: bool) -> anyhow::Result<()> {
    let words = if explain { crate::ask::glossary(&text) } else { String::new() };
    Ok(out::print(text + &words)?)
}

/// Prints a run on standard output.
fn say(summary: &findings::Summary, shown: Form) -> anyhow::Result<()> {
    if shown.json {
        return Ok(out::print(format!("{:#}\n", report::json(summary)))?);
    }
    let colour = std::io::stdout().is_terminal() && crate::live::may_colour();
    let mut text = report::text(summary, colour);
    for point in (0..summary.points.len()).filter(|_| shown.cost || shown.verbose) {
        if summary.points.len() > 1 {
            let label = report::one_line(&summary.points[point].row.label);
            let _ = writeln!(text, "\n{}", report::wrapped(&label));
        }
        if shown.verbose {
            text.push_str(&report::slowest(summary, point, colour));
        }
        if shown.cost {
            text.push_str(&report::cost(summary, point, colour));
        }
    }
    if shown.explain {
        let plain = if colour { report::text(summary, false) } else { text.clone() };
        text.push_str(&crate::ask::glossary(&plain));
    }
    Ok(out::print(text)?)
}
