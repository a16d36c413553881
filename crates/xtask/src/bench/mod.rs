//! `cargo xtask bench`: runs suites and writes what they found between markers in the documents.
//!
//! A figure in a document is never typed: it comes from a run, with the suite, the command, the
//! commit and the host beside it, and every peer measured in the same rounds.

mod picture;

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{output, program, repository, run as run_command};

/// Which figures to write.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these suites, by name; all of the table otherwise
    names: Vec<String>,
}

/// What is run, and the document that shows it, between `<!-- bench:NAME -->` and `<!-- end -->`.
struct Row {
    name: &'static str,
    /// The program's arguments.
    run: &'static str,
    shown: Shown,
    document: &'static str,
}

/// How a document shows a run.
#[derive(Clone, Copy)]
enum Shown {
    /// As the program prints it.
    Printed,
    /// The first point and the conclusion of what the program prints.
    Excerpt,
    /// As a table with a line per target and point, for suites of many points.
    Table,
}

impl Row {
    fn marker(&self) -> String {
        format!("bench:{}", self.name)
    }
}

const fn printed(name: &'static str, run: &'static str) -> Row {
    Row { name, run, shown: Shown::Printed, document: "BENCHMARKS.md" }
}

const fn table(name: &'static str, run: &'static str) -> Row {
    Row { name, run, shown: Shown::Table, document: "BENCHMARKS.md" }
}

/// Everything whose figures stand in a document.
const ROWS: &[Row] = &[
    Row { document: "README.md", shown: Shown::Excerpt, ..printed("tour", "run suites/tour.toml") },
    printed("generator", "run suites/generator.toml"),
    printed("memcaslap", "run suites/memcaslap.toml"),
    printed("open-loop", "run suites/open-loop.toml"),
    printed("doctor", "doctor"),
    table("cache-peers", "run suites/cache-peers.toml"),
    table("cache-udp", "run suites/cache-udp.toml"),
    table("cache-latency", "run suites/cache-latency.toml"),
    table("cache-large", "run suites/cache-large.toml"),
    table("cache-threads", "run suites/cache-threads.toml"),
    table("cache-evict", "run suites/cache-evict.toml"),
    table("cache-web", "run suites/cache-web.toml"),
    table("cache-multiclient", "run suites/cache-multiclient.toml"),
    printed("cache-ladder", "ladder suites/cache-ladder.toml"),
    table("records-array", "run suites/records-array.toml"),
    table("records-array-monitor", "run suites/records-array-monitor.toml"),
    table("records-array-client", "run suites/records-array-client.toml"),
    table("records-array-shared", "run suites/records-array-shared.toml"),
    table("records-ends", "run suites/records-ends.toml"),
    table("records-producer", "run suites/records-producer.toml"),
    table("records-scalar", "run suites/records-scalar.toml"),
    table("records-scalar-monitor", "run suites/records-scalar-monitor.toml"),
    table("records-saturated", "run suites/records-saturated.toml"),
    table("records-churn", "run suites/records-churn.toml"),
    table("records-connect", "run suites/records-connect.toml"),
    table("records-slow-client", "run suites/records-slow-client.toml"),
];

/// Whose page is drawn for the README.
const PICTURED: &str = "tour";

pub(crate) fn run(args: &Args) -> Result<()> {
    for name in &args.names {
        if !ROWS.iter().any(|row| row.name == name) {
            let known: Vec<_> = ROWS.iter().map(|row| row.name).collect();
            bail!("no figures of \"{name}\" stand in a document, only of: {}", known.join(", "));
        }
    }
    let mut build = Command::new("cargo");
    // The bound in records-array-client is an example of its service.
    build.args(["build", "--release", "--locked", "-p", "loadline", "-p", "loadline-records"]);
    run_command(build.args(["--bins", "--example", "bare_sender"]))?;
    let wanted = |row: &&Row| args.names.is_empty() || args.names.iter().any(|n| n == row.name);
    for row in ROWS.iter().filter(wanted) {
        let path = repository().join(row.document);
        let text = fs::read_to_string(&path).with_context(|| row.document.to_owned())?;
        let figures = measure(row)?;
        let written = replace(&text, &row.marker(), &figures)
            .with_context(|| format!("{} has no markers for {}", row.document, row.name))?;
        fs::write(&path, written).with_context(|| row.document.to_owned())?;
        eprintln!("{}: {} is written", row.document, row.name);
        if row.name == PICTURED {
            picture::draw()?;
        }
    }
    Ok(())
}

/// Runs the program and gives what a document shows of it.
fn measure(row: &Row) -> Result<String> {
    let printed = ask(&format!("{} --wait", row.run))?;
    let shown = match row.shown {
        Shown::Printed => format!("```\n$ loadline {}\n{printed}```\n", row.run),
        Shown::Excerpt => format!("```\n$ loadline {}\n{}```\n", row.run, excerpt(&printed)),
        // Where the program lies is this machine's.
        Shown::Table => {
            ask("report last --markdown")?.replace(&program().display().to_string(), "loadline")
        }
    };
    Ok(format!("{shown}Commit {}, {}.\n", commit()?, host()))
}

/// The title, the first point as far as its verdict and its first limit, and the conclusion. Cells
/// behind the server's and what follows a limit's first clause are left out.
fn excerpt(printed: &str) -> String {
    let mut blocks = printed.split("\n\n");
    let title = blocks.next().unwrap_or_default().lines().next().unwrap_or_default();
    let mut lines = vec![title.to_owned(), String::new()];
    let point: Vec<&str> = blocks.next().unwrap_or_default().lines().collect();
    let limit = point.iter().position(|line| line.starts_with("  limit: "));
    for line in &point[..limit.map_or(point.len(), |limit| limit + 1)] {
        let (cell, _) = line.split_once("  generator ").unwrap_or((line, ""));
        let (clause, _) = match line.starts_with("  limit: ") {
            true => cell.split_once("; ").unwrap_or((cell, "")),
            false => (cell, ""),
        };
        if !line.contains(" counted per operation ") && !line.starts_with("  beside: ") {
            lines.push(clause.trim_end().to_owned());
        }
    }
    let rest: Vec<&str> = blocks.collect();
    if let Some((conclusion, others)) = rest.split_last() {
        lines.push(if others.is_empty() { String::new() } else { "…".to_owned() });
        lines.extend(conclusion.lines().map(str::to_owned));
    }
    lines.join("\n") + "\n"
}

/// What the program prints.
fn ask(line: &str) -> Result<String> {
    let mut command = Command::new(program());
    command.args(line.split_whitespace()).current_dir(repository());
    let finished = command.stderr(std::process::Stdio::inherit()).output()?;
    // 3 and 4 are results too: a broken requirement, and one that can't be told.
    if !matches!(finished.status.code(), Some(0 | 3 | 4)) {
        bail!("`loadline {line}` measured nothing: {}", finished.status);
    }
    Ok(String::from_utf8_lossy(&finished.stdout).into_owned())
}

/// The commit, and whether the tree differs from it in more than documents.
pub(crate) fn commit() -> Result<String> {
    let git = |arguments: &[&str]| output(Command::new("git").args(arguments));
    let commit = git(&["rev-parse", "--short", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--", "crates", "suites", "Cargo.lock"])?;
    let mark = if changed.trim().is_empty() { "" } else { " with changes" };
    Ok(format!("{}{mark}", commit.trim()))
}

/// The machine in a line.
pub(crate) fn host() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{cores} cores of {}, Linux {}", model.unwrap_or("an unseen CPU"), kernel.trim())
}

/// The document with what stands between `<!-- MARKER -->` and `<!-- end -->` replaced; `None`
/// without markers.
pub(crate) fn replace(text: &str, marker: &str, figures: &str) -> Option<String> {
    let begin = format!("<!-- {marker} -->\n");
    let start = text.find(&begin)? + begin.len();
    let end = start + text[start..].find("<!-- end -->")?;
    Some(format!("{}{figures}{}", &text[..start], &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_markers_is_replaced() {
        let text = "a\n<!-- bench:x -->\nold\n<!-- end -->\nb\n<!-- bench:y -->\n<!-- end -->\n";
        let new = "a\n<!-- bench:x -->\nnew\n<!-- end -->\nb\n<!-- bench:y -->\n<!-- end -->\n";
        assert_eq!(replace(text, "bench:x", "new\n").as_deref(), Some(new));
        assert_eq!(replace(text, "bench:z", "new\n"), None);
    }

    #[test]
    fn an_excerpt_has_the_first_points_verdict_and_the_conclusion() {
        let printed = "Tour  run 7\n  claim  small\n\nget  depth 16\n  ours    1M/s  server 9 ns  \
                       generator 8 ns\n  ours counted per operation get 1\n  verdict: better\n  \
                       beside: p50\n  limit: ours: one thread; also more\n    try: less\n\n\
                       get  depth 1\n  ours\n\nours is better.\nAll held.\n";
        let short = "Tour  run 7\n\nget  depth 16\n  ours    1M/s  server 9 ns\n  \
                     verdict: better\n  limit: ours: one thread\n…\nours is better.\nAll held.\n";
        assert_eq!(excerpt(printed), short);
    }

    #[test]
    fn every_row_has_its_suite_and_its_markers() {
        for row in ROWS {
            let mut files = row.run.split(' ').filter(|argument| argument.ends_with(".toml"));
            assert!(files.all(|file| repository().join(file).is_file()), "{}", row.name);
            let text = fs::read_to_string(repository().join(row.document)).unwrap();
            assert!(replace(&text, &row.marker(), "").is_some(), "{}", row.name);
        }
    }
}
