//! `cargo xtask test`: all that a change must pass, in the order of what fails fastest. The first
//! failure stops it and prints the command of that step alone. At the end stand the time of each
//! step and every test that was skipped, with its reason.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::proof::{self, PROOFS};
use crate::skips::{self, Skips};
use crate::step::{Step, Work};
use crate::{peers, tidy, touched};

/// What to check; without a flag everybody runs the same.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only format, tidy and the unit tests of touched crates: what a minute can tell
    #[arg(long)]
    fast: bool,
}

const STEPS: &[Step] = &[
    Step { name: "format", work: Work::Cargo(&["fmt", "--all", "--check"], None) },
    Step { name: "tidy", work: Work::Own(tidy_all, "cargo xtask tidy") },
    Step {
        name: "lints",
        work: Work::Cargo(
            &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
            None,
        ),
    },
    Step {
        name: "docs",
        // Programs have no reader of their documentation, and checking them twice takes a minute.
        work: Work::Cargo(
            &["doc", "--workspace", "--lib", "--no-deps", "--locked"],
            Some(("RUSTDOCFLAGS", "-D warnings")),
        ),
    },
    Step { name: "peers", work: Work::Own(peers_as_wished, "cargo xtask peers") },
    Step {
        name: "tests",
        // Examples are checked by the lints, and there are no tests in documentation.
        work: Work::Cargo(&["test", "--workspace", "--tests", "--locked", "--no-fail-fast"], None),
    },
];

/// What follows format and tidy under `--fast`.
const UNITS: Step = Step { name: "units", work: Work::Own(touched::test, FAST) };

const FAST: &str = "cargo xtask test --fast";

/// Runs the steps until one fails, under CI the heavy proofs too.
pub(crate) fn run(args: &Args) -> Result<()> {
    let is_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    let skips = Skips::begin()?;
    let proofs = PROOFS.iter().filter(|proof| is_ci && !proof.is_timed).flat_map(proof::steps);
    let steps: Vec<Step> = match args.fast {
        true => STEPS[..2].iter().copied().chain([UNITS]).collect(),
        false => STEPS.iter().copied().chain(proofs).collect(),
    };
    let mut times = Vec::with_capacity(steps.len());
    let mut failed = None;
    for (index, step) in steps.iter().enumerate() {
        println!("== {} ({} of {})", step.name, index + 1, steps.len());
        let start = Instant::now();
        let done = step.run();
        times.push((step.name, start.elapsed()));
        if let Err(error) = done {
            let (name, alone) = (step.name, step.alone());
            failed = Some(anyhow!("{error:#}\n\nthe step `{name}` failed; only it: {alone}"));
            break;
        }
    }
    print!("\n{}", table(&times));
    let skipped = skips.end()?;
    print!("{}", skips::list(&skipped));
    match failed {
        Some(error) => Err(error),
        None if is_ci && !args.fast => skips::refuse_unexpected(&skipped),
        None => Ok(()),
    }
}

/// The time of each step and of all.
fn table(times: &[(&str, Duration)]) -> String {
    let line = |name: &str, time: Duration| format!("  {name:<10} {:>7.1} s\n", time.as_secs_f64());
    let mut text = String::from("== time per step\n");
    text.extend(times.iter().map(|(name, time)| line(name, *time)));
    text.push_str(&line("together", times.iter().map(|(_, time)| *time).sum()));
    text
}

fn tidy_all() -> Result<()> {
    tidy::run(&tidy::Args::default())
}

fn peers_as_wished() -> Result<()> {
    let (peers, ci) = (std::env::var("PEERS").ok(), std::env::var("CI").ok());
    peers::bring(peers::Wish::of(peers.as_deref(), ci.as_deref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_has_a_command_that_runs_it_alone() {
        let lines: Vec<_> = STEPS.iter().map(Step::alone).collect();
        assert_eq!(lines[..2], ["cargo fmt --all --check", "cargo xtask tidy"]);
        assert!(lines[3].starts_with("RUSTDOCFLAGS=\"-D warnings\" cargo doc "));
        assert_eq!(lines.last().unwrap(), "cargo test --workspace --tests --locked --no-fail-fast");
    }

    #[test]
    fn times_are_a_table_with_their_sum() {
        let times = [("lints", Duration::from_millis(61_240)), ("tests", Duration::from_secs(9))];
        let lines = "  lints         61.2 s\n  tests          9.0 s\n  together      70.2 s\n";
        assert_eq!(table(&times), format!("== time per step\n{lines}"));
    }
}
