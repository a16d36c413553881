//! A trial: samples of how long a call takes, each the mean of a few where a call is short against
//! the clock; and what is computed of them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::caller::cpu_ticks;

/// A sample lasts this long at least: the clock costs 20 ns of it.
const LEAST_SAMPLE: Duration = Duration::from_micros(1);

/// Calls before the first sample, and the most time that they take.
const WARM_UP_CALLS: u32 = 1_000;
const WARM_UP_TIME: Duration = Duration::from_millis(200);

/// What a trial ends with, whichever comes first.
#[derive(Clone, Copy, Debug)]
pub(in crate::command) struct Limits<'a> {
    pub(in crate::command) samples: usize,
    pub(in crate::command) time: Duration,
    /// Whether it is interrupted.
    pub(in crate::command) stop: &'a AtomicBool,
}

/// Calls whose allocations are counted.
const COUNTED: usize = 5;

/// What one call allocates in the thread that calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::command) struct Allocated {
    pub(in crate::command) count: u64,
    pub(in crate::command) bytes: u64,
}

impl Allocated {
    /// The least of several calls: some make room for others.
    pub(in crate::command) fn of(
        mut once: impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let mut least: Option<Self> = None;
        for _ in 0..COUNTED {
            let mut result = Ok(());
            let counted = base::allocations::measure(|| result = once());
            result?;
            let one = Self { count: counted.count, bytes: counted.bytes };
            least = Some(least.map_or(one, |least| least.min(one)));
        }
        Ok(least.unwrap_or_default())
    }
}

/// What was measured.
#[derive(Debug)]
pub(in crate::command) struct Trial {
    /// Nanoseconds of a call, sorted.
    pub(in crate::command) samples_ns: Vec<f64>,
    /// Calls of a sample.
    pub(in crate::command) evaluations: u32,
    /// The share of this process's CPU time that was spent in the kernel; `None` where there was
    /// too little of it to say.
    pub(in crate::command) kernel_share: Option<f64>,
}

impl Trial {
    /// Calls `once` until a limit is reached.
    pub(in crate::command) fn run(
        limits: Limits<'_>,
        mut once: impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let start = Instant::now();
        let mut calls = 0;
        while calls < WARM_UP_CALLS && start.elapsed() < WARM_UP_TIME.min(limits.time) {
            once()?;
            calls += 1;
        }
        let evaluations = evaluations(start.elapsed(), calls);
        let before = cpu_ticks("self");
        let mut samples_ns = Vec::with_capacity(limits.samples);
        let start = Instant::now();
        let mut last = start;
        while samples_ns.len() < limits.samples {
            let called = (0..evaluations).try_for_each(|_| once());
            let is_over = limits.stop.load(Relaxed) && !samples_ns.is_empty();
            // The signal may have ended the server, too.
            if called.is_err() && is_over {
                break;
            }
            called?;
            let now = Instant::now();
            samples_ns.push((now - last).as_nanos() as f64 / f64::from(evaluations));
            if now - start >= limits.time || limits.stop.load(Relaxed) {
                break;
            }
            // What is between two samples counts with neither.
            last = Instant::now();
        }
        samples_ns.sort_by(f64::total_cmp);
        let kernel_share = before.zip(cpu_ticks("self")).and_then(|(before, after)| {
            let (user, system) =
                (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
            let all = user + system;
            (all >= 10).then(|| system as f64 / all as f64)
        });
        Ok(Self { samples_ns, evaluations, kernel_share })
    }

    /// What is computed of the samples; there is one at least.
    pub(in crate::command) fn summary(&self) -> Summary {
        Summary::of(&self.samples_ns)
    }
}

/// How many calls are a sample, where this number has taken this long.
fn evaluations(took: Duration, calls: u32) -> u32 {
    let per_call = took.as_nanos() / u128::from(calls.max(1));
    LEAST_SAMPLE.as_nanos().div_ceil(per_call.max(1)) as u32
}

/// What the samples come to, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::command) struct Summary {
    pub(in crate::command) min: f64,
    pub(in crate::command) max: f64,
    pub(in crate::command) median: f64,
    pub(in crate::command) p99: f64,
    pub(in crate::command) mean: f64,
    pub(in crate::command) sigma: f64,
}

impl Summary {
    fn of(sorted: &[f64]) -> Self {
        let count = sorted.len().max(1) as f64;
        let mean = sorted.iter().sum::<f64>() / count;
        let squares = sorted.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
        Self {
            min: quantile(sorted, 0.0),
            max: quantile(sorted, 1.0),
            median: quantile(sorted, 0.5),
            p99: quantile(sorted, 0.99),
            mean,
            sigma: (squares / (count - 1.0).max(1.0)).sqrt(),
        }
    }
}

/// A quantile, between two samples where it lies between them.
pub(in crate::command) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share * sorted.len().saturating_sub(1) as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    let of = |index: usize| sorted.get(index).copied().unwrap_or(0.0);
    of(low) + (of(high) - of(low)) * (at - at.floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_the_figures_of_its_samples() {
        let summary = Summary::of(&[1.0, 2.0, 3.0, 4.0, 10.0]);
        assert_eq!((summary.min, summary.median, summary.max), (1.0, 3.0, 10.0));
        assert_eq!(summary.mean, 4.0);
        assert!((summary.sigma - 12.5_f64.sqrt()).abs() < 1e-12);
        assert!((quantile(&[0.0, 10.0], 0.25) - 2.5).abs() < 1e-12);
        assert_eq!(Summary::of(&[5.0]).sigma, 0.0);
    }

    #[test]
    fn the_least_that_a_call_allocates_is_counted() {
        let (mut calls, mut kept) = (0, Vec::new());
        let allocated = Allocated::of(|| {
            calls += 1;
            // The first ones make room.
            kept.push(Box::new([0_u8; 48]));
            Ok(())
        });
        assert_eq!(calls, COUNTED);
        assert_eq!(allocated.expect("counted"), Allocated { count: 1, bytes: 48 });
        assert!(Allocated::of(|| anyhow::bail!("wrong")).is_err());
    }

    #[test]
    fn a_trial_ends_with_its_count_or_with_the_first_error() {
        let stop = AtomicBool::new(false);
        let limits = Limits { samples: 7, time: Duration::from_secs(60), stop: &stop };
        let mut calls = 0;
        let trial = Trial::run(limits, || {
            calls += 1;
            Ok(())
        });
        let trial = trial.expect("samples");
        assert_eq!(trial.samples_ns.len(), 7);
        assert!(calls > 7 * trial.evaluations, "{calls}");
        let error = Trial::run(limits, || anyhow::bail!("wrong")).expect_err("an error");
        assert_eq!(error.to_string(), "wrong");
        stop.store(true, Relaxed);
        let trial = Trial::run(limits, || Ok(())).expect("samples");
        assert_eq!(trial.samples_ns.len(), 1, "interrupted");
    }

    #[test]
    fn a_sample_is_as_many_calls_as_take_a_microsecond() {
        let of = |us, calls| evaluations(Duration::from_micros(us), calls);
        let all = [of(1, 1_000), of(10, 1_000), of(1_000, 1_000), of(9_000, 3)];
        assert_eq!(all, [1_000, 100, 1, 1]);
        assert_eq!((of(0, 1_000), of(0, 0)), (1_000, 1_000));
    }
}
