//! `cargo xtask test`: all that a change must pass, in the order of what fails fastest. The
//! first failure stops it and says how to run only that step again. The tests come last, so
//! that the last lines on the screen, or in a log, are theirs.

use std::env;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, anyhow};

use crate::{peers, process, tidy};

/// The flags of `cargo xtask test`; it has none, so that everybody runs the same.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// One step: what it is for, and the work.
struct Step {
    name: &'static str,
    work: Work,
}

enum Work {
    /// A cargo command, with one variable of its environment where it needs one.
    Cargo(&'static [&'static str], Option<(&'static str, &'static str)>),
    /// A task of this program: the work, and the words that start it alone.
    Own(fn() -> Result<()>, &'static str),
}

const STEPS: &[Step] = &[
    Step { name: "format", work: Work::Cargo(&["fmt", "--all", "--check"], None) },
    Step {
        name: "lints",
        work: Work::Cargo(
            &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
            None,
        ),
    },
    Step {
        name: "docs",
        work: Work::Cargo(
            &["doc", "--workspace", "--no-deps", "--locked"],
            Some(("RUSTDOCFLAGS", "-D warnings")),
        ),
    },
    Step { name: "tidy", work: Work::Own(tidy_all, "cargo xtask tidy") },
    Step { name: "peers", work: Work::Own(peers_as_wished, "cargo xtask peers") },
    Step {
        name: "lints with parquet",
        work: Work::Cargo(
            &[
                "clippy",
                "--package",
                "loadline-ledger",
                "--package",
                "loadline",
                "--features",
                "parquet",
                "--all-targets",
                "--locked",
                "--",
                "-D",
                "warnings",
            ],
            None,
        ),
    },
    Step {
        name: "parquet",
        work: Work::Cargo(
            &[
                "test",
                "--package",
                "loadline-ledger",
                "--features",
                "parquet",
                "--test",
                "parquet",
                "--locked",
            ],
            None,
        ),
    },
    Step { name: "tests", work: Work::Cargo(&["test", "--workspace", "--locked"], None) },
];

/// Runs the steps until one fails.
pub(crate) fn run(_: &Args) -> Result<()> {
    for (index, step) in STEPS.iter().enumerate() {
        println!("== {} ({} of {})", step.name, index + 1, STEPS.len());
        let start = Instant::now();
        step.run().map_err(|error| {
            anyhow!("{error:#}\n\nthe step `{}` failed; only it: {}", step.name, step.alone())
        })?;
        // Nothing follows the tests' own last lines.
        if index + 1 < STEPS.len() {
            println!("== {} passed in {:.1} s\n", step.name, start.elapsed().as_secs_f64());
        }
    }
    Ok(())
}

impl Step {
    fn run(&self) -> Result<()> {
        match self.work {
            Work::Own(work, _) => work(),
            Work::Cargo(args, variable) => {
                let mut cargo = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
                // Cargo told this program which package it is. Build scripts may watch these
                // variables, and would run again whenever `cargo test` is called directly.
                for (name, _) in env::vars_os() {
                    let text = name.to_string_lossy();
                    if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                        cargo.env_remove(&name);
                    }
                }
                cargo.args(args).envs(variable).current_dir(process::repository());
                process::run(&mut cargo)
            }
        }
    }

    /// What one types to run only this step.
    fn alone(&self) -> String {
        match self.work {
            Work::Own(_, words) => words.to_owned(),
            Work::Cargo(args, variable) => {
                let set = variable.map(|(name, value)| format!("{name}=\"{value}\" "));
                format!("{}cargo {}", set.unwrap_or_default(), args.join(" "))
            }
        }
    }
}

fn tidy_all() -> Result<()> {
    tidy::run(&tidy::Args::default())
}

fn peers_as_wished() -> Result<()> {
    let (peers, ci) = (env::var("PEERS").ok(), env::var("CI").ok());
    peers::bring(peers::Wish::of(peers.as_deref(), ci.as_deref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_says_how_to_run_it_alone() {
        let lines: Vec<_> = STEPS.iter().map(Step::alone).collect();
        assert_eq!(lines[0], "cargo fmt --all --check");
        assert!(lines[2].starts_with("RUSTDOCFLAGS=\"-D warnings\" cargo doc "));
        assert_eq!(lines[3], "cargo xtask tidy");
    }

    #[test]
    fn the_tests_come_last() {
        assert_eq!(STEPS.last().unwrap().alone(), "cargo test --workspace --locked");
    }
}
