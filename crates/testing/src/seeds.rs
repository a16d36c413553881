//! Running a simulation for many seeds: the fixed ones of `make test`, or as many as fit into a
//! time, which is what `cargo xtask simulate` does.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// The environment variable with the one seed to run.
pub const SEED: &str = "SIMULATE_SEED";

/// The environment variable with the seconds for which seeds are run, without [`SEED`].
pub const SECONDS: &str = "SIMULATE_SECONDS";

/// The environment variable with the first of those seeds.
pub const FROM: &str = "SIMULATE_FROM";

/// A line of progress comes after this time.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

/// Runs the simulation of a service for each seed, in order.
///
/// # Panics
/// When one fails, after a line that replays it.
pub fn run_seeds<R: Display, E: Display>(
    service: &str,
    seeds: impl Iterator<Item = u64>,
    simulate: impl Fn(u64) -> Result<R, E>,
) {
    for seed in seeds {
        run_seed(service, seed, &simulate);
    }
}

/// Runs the simulation of a service as the environment asks: for one seed, or for a time.
///
/// # Panics
/// When a seed fails, after a line that replays it; and when a variable is no number.
pub fn run_seeds_of_environment<R: Display, E: Display>(
    service: &str,
    simulate: impl Fn(u64) -> Result<R, E>,
) {
    if let Some(seed) = number(SEED) {
        let report = run_seed(service, seed, &simulate);
        println!("seed {seed}: {report}");
        return;
    }
    let (from, time) = (number(FROM).unwrap_or(0), number(SECONDS).unwrap_or(60));
    let (start, time) = (Instant::now(), Duration::from_secs(time));
    println!("{service}: seeds from {from} for {} s", time.as_secs());
    let mut printed = start;
    let mut seed = from;
    while start.elapsed() < time {
        let report = run_seed(service, seed, &simulate);
        seed = seed.wrapping_add(1);
        if printed.elapsed() >= PROGRESS_EVERY {
            printed = Instant::now();
            let seconds = start.elapsed().as_secs();
            println!("{seconds:>6} s, {} seeds; the last: {report}", seed.wrapping_sub(from));
        }
    }
    println!("{service}: {} seeds held", seed.wrapping_sub(from));
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

fn run_seed<R: Display, E: Display>(
    service: &str,
    seed: u64,
    simulate: &impl Fn(u64) -> Result<R, E>,
) -> R {
    let replay = || {
        eprintln!("seed {seed} of {service} fails; this line replays it:");
        eprintln!("  cargo xtask simulate {service} --seed {seed}");
    };
    match catch_unwind(AssertUnwindSafe(|| simulate(seed))) {
        Ok(Ok(report)) => report,
        Ok(Err(error)) => {
            replay();
            panic!("{service}, seed {seed}: {error}");
        }
        Err(panic) => {
            replay();
            resume_unwind(panic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::run_seeds;
    use std::panic::catch_unwind;

    #[test]
    fn the_first_seed_that_fails_ends_the_run_and_is_named() {
        let simulate = |seed| if seed == 3 { Err("wrong") } else { Ok("right") };
        run_seeds("toy", 0..3, simulate);
        let panic = catch_unwind(|| run_seeds("toy", 0..9, simulate)).expect_err("seed 3 fails");
        assert_eq!(panic.downcast_ref::<String>().expect("text"), "toy, seed 3: wrong");
    }
}
