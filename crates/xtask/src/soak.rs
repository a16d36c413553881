//! `cargo xtask soak`: the heavy proofs, then minutes of abuse. Each service's soak is an ignored
//! test of the command, so that it runs the program that is shipped, from outside. What came of it
//! goes to a document.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::bench::{self, commit, host};
use crate::process::{run as run_command, target};
use crate::proof;

/// The document that shows what came of it, and the name of its block.
const DOCUMENT: &str = "docs/benchmarks/soak.md";
const BLOCK: &str = "soak";

/// How the line begins that the soak of workflows reports (`crates/loadline/tests/soak`).
const REPORTS: &str = "workflow: ";

/// How long to soak.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Minutes of abuse
    #[arg(long, default_value_t = 4.0)]
    minutes: f64,

    /// Starts under immediate load
    #[arg(long, default_value_t = 1000)]
    starts: u32,

    /// How often a server is killed while clients insert and it seals
    #[arg(long, default_value_t = 200)]
    kills: u32,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let seconds = args.minutes * 60.0;
    if !(4.0..=86_400.0).contains(&seconds) {
        bail!("--minutes {} is not between 0.07 and 1440", args.minutes);
    }
    proof::run(&proof::Args::untimed())?;
    let results = target().join("soak.txt");
    fs::write(&results, "").with_context(|| results.display().to_string())?;
    // One after another: they measure memory, and share two processors with what they abuse.
    let mut soak = crate::step::cargo();
    soak.args([
        "test",
        "--release",
        "--locked",
        "-p",
        "loadline",
        "--test",
        "main",
        "soak::",
        "--",
    ])
    .args(["--ignored", "--nocapture", "--test-threads", "1"])
    .env("SOAK_SECONDS", (seconds as u64).to_string())
    .env("SOAK_STARTS", args.starts.to_string())
    .env("SOAK_RESULTS", &results);
    run_command(&mut soak)?;
    let mut kills = crate::step::cargo();
    kills.args(["test", "--release", "--locked", "-p", "loadline-conditions", "--test"]);
    kills.args(["conditions", "kill::what", "--", "--nocapture"]);
    run_command(kills.env("CONDITIONS_KILLS", args.kills.to_string()))?;
    let said = fs::read_to_string(&results).with_context(|| results.display().to_string())?;
    if !said.lines().any(|line| line.starts_with(REPORTS)) {
        bail!("{}: no soak has written a line that begins with {REPORTS:?}", results.display());
    }
    let block = format!("```\n$ make soak\n{said}```\nCommit {}, {}.\n", commit()?, host());
    bench::write(DOCUMENT, BLOCK, &block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::repository;

    #[test]
    fn the_document_has_the_markers() {
        let document = fs::read_to_string(repository().join(DOCUMENT)).unwrap();
        assert!(bench::replace(&document, BLOCK, "").is_some());
    }
}
