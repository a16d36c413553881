//! `cargo xtask simulate`: a service's server on a simulated clock and network, seed after seed.
//!
//! Each simulation is an ignored test of the service's crate, and so a build with all debug
//! assertions; `make test` runs the first twenty seeds of each.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::process::{repository, run as run_command};

/// What to simulate.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask simulate cache                seeds for a minute, from 1000 on
  cargo xtask simulate cache --time 1h      for an hour
  cargo xtask simulate cache --seed 4711    one seed, as a failure has printed it

A seed decides everything, so it repeats exactly; its digest is the same each time.")]
pub(crate) struct Args {
    /// The service: cache, records, or wire for the loop alone
    service: String,
    /// Only this seed
    #[arg(long, conflicts_with_all = ["time", "from"])]
    seed: Option<u64>,
    /// How long to go on with further seeds, by this machine's clock: 90s, 10m, 1h
    #[arg(long, default_value = "1m", value_parser = duration)]
    time: Duration,
    /// The first of those seeds
    #[arg(long, default_value_t = 1000)]
    from: u64,
}

/// The services with their packages and tests.
const SERVICES: &[(&str, &str, &str)] = &[
    ("cache", "loadline-cache", "main"),
    ("records", "loadline-records", "records"),
    ("wire", "loadline-wire", "main"),
];

/// The test of each that does what the environment says.
const TEST: &str = "simulation::seeds_of_the_environment_hold";

pub(crate) fn run(args: &Args) -> Result<()> {
    let Some((_, package, target)) = SERVICES.iter().find(|(name, ..)| *name == args.service)
    else {
        let names: Vec<_> = SERVICES.iter().map(|(name, ..)| *name).collect();
        bail!("there is no simulation of {:?}; there are: {}", args.service, names.join(", "));
    };
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--quiet", "--locked", "-p", package, "--test", target, "--"]);
    cargo.args(["--exact", TEST, "--ignored", "--nocapture"]).current_dir(repository());
    match args.seed {
        Some(seed) => cargo.env(testing::SEED, seed.to_string()),
        None => cargo
            .env_remove(testing::SEED)
            .env(testing::FROM, args.from.to_string())
            .env(testing::SECONDS, args.time.as_secs().to_string()),
    };
    run_command(&mut cargo)
}

/// Reads a time such as `90s`, `10m` or `1h`.
fn duration(text: &str) -> Result<Duration, String> {
    let units = [('s', 1), ('m', 60), ('h', 3600)];
    let read = units.iter().find_map(|(unit, seconds)| {
        let number: u64 = text.strip_suffix(*unit)?.parse().ok()?;
        number.checked_mul(*seconds)
    });
    match read {
        Some(seconds @ 1..=604_800) => Ok(Duration::from_secs(seconds)),
        _ => Err("a time from 1s to a week, such as 90s, 10m or 1h".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, duration};

    #[test]
    fn a_time_has_a_unit_and_a_bound() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        for text in ["", "1", "0s", "s", "-1m", "1d", "999999h", "99999999999999999999h"] {
            duration(text).expect_err(text);
        }
    }
}
