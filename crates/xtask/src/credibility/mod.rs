//! `cargo xtask credibility`: holds what the lab says against what is known to be true, live and on
//! this host, and writes what came of it into docs/benchmarks/credibility.md. It never gates a
//! change: a noisy host fails it and breaks nothing.
//!
//! A check is a suite that is run again and again, and a judge of all its runs. The runs are kept
//! in a ledger of their own, so that what was measured yesterday is not measured again: stop it
//! whenever you like, and go on later. `rpc-why` is the one without a suite: it takes three
//! minutes, and keeps nothing.

mod burner;
mod checks;
mod runs;
mod why;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::bench::{self, commit, host};
use crate::process::run as run_command;
use checks::{CHECKS, Check, Seen};
use runs::Runs;

/// Which checks, and for how long.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask credibility                     all checks, from where they were left
  cargo xtask credibility --minutes 10        and stop after ten minutes, to go on another time
  cargo xtask credibility queue --runs 3      one check, with fewer runs than it takes
  cargo xtask credibility likely likely-10 likely-5 --runs 1
                                              verdicts beside other programs, each once: 7 minutes
  cargo xtask credibility --list              what there is, and how far it is")]
pub(crate) struct Args {
    /// Only these checks, by name
    names: Vec<String>,
    /// Stop after N minutes; what was measured is kept, and the next time goes on from there
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
    /// As many runs of each kind, instead of as many as the check takes
    #[arg(long, value_name = "N")]
    runs: Option<usize>,
    /// Forget earlier runs
    #[arg(long)]
    fresh: bool,
    /// Say what there is and how far it is, and measure nothing
    #[arg(long)]
    list: bool,
}

/// The document that shows what came of it, between `<!-- credibility:NAME -->` and `<!-- end -->`.
const DOCUMENT: &str = "docs/benchmarks/credibility.md";

pub(crate) fn run(args: &Args) -> Result<()> {
    for name in &args.names {
        let known: Vec<_> = CHECKS.iter().map(|check| check.name).chain([why::NAME]).collect();
        if !known.contains(&&name[..]) {
            bail!("there is no check \"{name}\"; there are {}", known.join(", "));
        }
    }
    let cargo = ["build", "--release", "--locked", "-p", "loadline", "--features", "postgres"];
    run_command(crate::step::cargo().args(cargo))?;
    let mut runs = Runs::open(args.fresh)?;
    let until = args.minutes.map(|minutes| Instant::now() + Duration::from_secs(minutes * 60));
    let wanted = |name: &str| args.names.is_empty() || args.names.iter().any(|n| n == name);
    for check in CHECKS.iter().filter(|check| wanted(check.name)) {
        if !args.list {
            measure(check, &mut runs, args.runs, until)?;
        }
        let seen = Seen { runs: runs.of(check)? };
        let judged = (check.judge)(&seen);
        let text = text(check, &judged, &seen);
        println!("{text}");
        if !args.list && seen.count() > 0 {
            write(check, &text)?;
        }
    }
    let is_over = until.is_some_and(|until| Instant::now() >= until);
    match wanted(why::NAME) {
        true if args.list => println!("{}: a run of each plant takes 15 s", why::NAME),
        true if !is_over => why::check(args.runs)?,
        _ => {}
    }
    Ok(())
}

/// Runs each kind of a check until there are enough, or the time is over.
fn measure(
    check: &Check,
    runs: &mut Runs,
    most: Option<usize>,
    until: Option<Instant>,
) -> Result<()> {
    let mut order: Vec<(usize, usize)> = Vec::new();
    for (index, kind) in check.kinds.iter().enumerate() {
        let done = runs.count(check, kind)?;
        order.extend((done..most.unwrap_or(kind.runs).max(done)).map(|number| (number, index)));
    }
    // Kinds take turns, so that what changes on this host in an hour changes for all of them.
    order.sort_unstable();
    let (started, count) = (Instant::now(), order.len());
    for (done, (number, index)) in order.into_iter().enumerate() {
        if until.is_some_and(|until| Instant::now() >= until) {
            eprintln!("{}: the time is over; the next time goes on from here", check.name);
            return Ok(());
        }
        let kind = &check.kinds[index];
        let left = started.elapsed().mul_f64((count - done) as f64 / done.max(1) as f64);
        let left = (done > 0).then(|| format!(", about {} s left", left.as_secs()));
        let left = left.unwrap_or_default();
        eprintln!("{}: {} run {} of {}{left}", check.name, kind.name, number + 1, kind.runs);
        let _burner = kind.beside.start(number as u64);
        runs.measure(check, kind, number)?;
    }
    Ok(())
}

/// What a check found, as Markdown.
fn text(check: &Check, judged: &checks::Judged, seen: &Seen) -> String {
    let outcome = match judged.holds {
        Some(true) => "It holds",
        Some(false) => "**It does not hold**",
        None => "There is not enough yet to tell",
    };
    let (count, wanted) = (seen.count(), check.kinds.iter().map(|kind| kind.runs).sum::<usize>());
    let runs =
        if count < wanted { format!("{count} of {wanted} runs") } else { format!("{count} runs") };
    format!("{} {outcome} ({runs}).\n\n{}", check.claim, judged.evidence)
}

fn write(check: &Check, text: &str) -> Result<()> {
    let block = format!("{text}\nCommit {}, {}.\n", commit()?, host());
    bench::write(DOCUMENT, &format!("credibility:{}", check.name), &block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::replace;
    use crate::process::repository;
    use std::fs;

    #[test]
    fn every_check_has_its_suite_and_its_markers() {
        let document = fs::read_to_string(repository().join(DOCUMENT)).unwrap();
        for check in CHECKS {
            assert!(repository().join(check.suite).is_file(), "{}", check.suite);
            let name = format!("credibility:{}", check.name);
            assert!(replace(&document, &name, "").is_some(), "{name}");
        }
    }

    #[test]
    fn nothing_is_judged_without_runs() {
        for check in CHECKS {
            let judged = (check.judge)(&Seen { runs: Vec::new() });
            assert_eq!(judged.holds, None, "{}", check.name);
        }
    }
}
