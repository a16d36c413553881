//! `cargo xtask bench`: runs suites and writes their figures between markers in the documents.
//!
//! A figure in a document is never typed: it comes from a run, with the suite, the command, the
//! commit and the host beside it, and every peer measured in the same rounds.

mod document;
mod excerpt;
mod overview;
mod picture;
mod rows;
mod stale;

use std::process::Command;

use anyhow::{Result, bail};

use crate::process::{program, repository, run as run_command};
use excerpt::excerpt;
use rows::{PICTURED, ROWS, Row, Shown};

#[cfg(test)]
pub(crate) use document::replace;
pub(crate) use document::{commit, host, write};

/// Which figures to write.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these suites, by name; all of the table otherwise
    names: Vec<String>,
    /// Name the figures that are older than the crates and suites that they measured; run nothing
    #[arg(long)]
    stale: bool,
    /// Write the table of BENCHMARKS.md from the pages as they are; run nothing
    #[arg(long)]
    overview: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.stale {
        return stale::list();
    }
    if args.overview {
        return overview::update();
    }
    for name in &args.names {
        if !ROWS.iter().any(|row| row.name == name) {
            let known: Vec<_> = ROWS.iter().map(|row| row.name).collect();
            bail!("no figures of \"{name}\" stand in a document, only of: {}", known.join(", "));
        }
    }
    let mut build = crate::step::cargo();
    // The bound in records-array-client is an example of its service.
    build.args(["build", "--release", "--locked", "-p", "loadline", "-p", "loadline-records"]);
    // Servers of rpc, and the peers of conditions, are behind features.
    build.args(["--features", "loadline/postgres,loadline/rpc,loadline/sqlite"]);
    // Profiles name functions by their symbols.
    build.env("CARGO_PROFILE_RELEASE_STRIP", "none");
    run_command(build.args(["--bins", "--example", "bare_sender"]))?;
    let wanted = |row: &&Row| args.names.is_empty() || args.names.iter().any(|n| n == row.name);
    let mut passed_over = Vec::new();
    for row in ROWS.iter().filter(wanted) {
        let document = row.document();
        let Some(figures) = measure(row)? else {
            eprintln!("{document}: {} is passed over: no target is installed", row.name);
            passed_over.push(row.name);
            continue;
        };
        write(&document, &row.marker(), &figures)?;
        eprintln!("{document}: {} is written", row.name);
        if row.name == PICTURED {
            picture::draw()?;
        }
    }
    overview::update()?;
    if !passed_over.is_empty() {
        bail!("no target is installed, and nothing was measured, of: {}", passed_over.join(", "));
    }
    Ok(())
}

/// Runs the program and returns the figures as a document shows them; `None` where each target is
/// optional, and none is installed.
fn measure(row: &Row) -> Result<Option<String>> {
    let wait = if matches!(row.shown, Shown::Bare) { "" } else { " --wait" };
    let printed = ask(&format!("{}{wait}", row.run))?;
    if row.run.starts_with("run ") && !has_answers(&printed) {
        if has_no_target(&printed) {
            return Ok(None);
        }
        bail!("`loadline {}` measured nothing:\n{printed}", row.run);
    }
    let shown = match row.shown {
        Shown::Bare => return Ok(Some(printed)),
        Shown::Printed => format!("```\n$ loadline {}\n{printed}```\n", row.run),
        Shown::Excerpt => format!("```\n$ loadline {}\n{}```\n", row.run, excerpt(&printed)),
        // The program's path is this machine's.
        Shown::Table => {
            ask("report last --markdown")?.replace(&program().display().to_string(), "loadline")
        }
    };
    Ok(Some(format!("{shown}Commit {}, {}.\n", commit()?, host())))
}

/// Whether anything was measured.
fn has_answers(printed: &str) -> bool {
    [" wrong of ", " unchecked"].iter().any(|words| printed.contains(words))
}

/// Whether that is because targets were skipped, and no round had any.
fn has_no_target(printed: &str) -> bool {
    printed.contains("\n  skipped ") && printed.contains("valid 0/0")
}

/// Returns what the program prints.
fn ask(line: &str) -> Result<String> {
    let mut command = Command::new(program());
    command.args(line.split_whitespace()).current_dir(repository());
    let finished = command.stderr(std::process::Stdio::inherit()).output()?;
    // 3 and 4 are results too: a broken requirement, and an inconclusive one.
    if !matches!(finished.status.code(), Some(0 | 3 | 4)) {
        bail!("`loadline {line}` measured nothing: {}", finished.status);
    }
    Ok(String::from_utf8_lossy(&finished.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_targets_is_told_from_one_that_failed() {
        let skipped = "Title  run 1\n  skipped     a: bin/python is not installed\n\n";
        let none = format!("{skipped}batch/run  1 conns · 0 rounds · valid 0/0\n");
        assert!(!has_answers(&none) && has_no_target(&none));
        let failed = format!("{skipped}batch/run  1 conns · 5 rounds · valid 0/5\n  b  invalid\n");
        assert!(!has_answers(&failed) && !has_no_target(&failed));
        assert!(has_answers(&format!("{skipped}b  9/s  0 wrong of 5\n")));
    }
}
