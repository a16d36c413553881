//! Arrival times from a schedule. Pure: it knows no clock.

use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rand_distr::Exp1;

use super::arrivals::{Schedule, Spacing};

/// The arrival times of one thread in nanoseconds from the start, ascending. Of T threads, thread
/// t gets the arrivals t, t + T, t + 2T and so on of the one sequence that the seed gives.
#[derive(Clone, Debug)]
pub(super) struct ArrivalTimes {
    schedule: Arc<Schedule>,
    random: SmallRng,
    /// Which arrival of the whole sequence comes next.
    index: usize,
    thread: usize,
    threads: usize,
    stretch: usize,
    /// Where the current stretch began, and the time within it so far, in nanoseconds.
    began_ns: f64,
    within_ns: f64,
    /// How many arrivals the current stretch has given.
    given: u64,
}

impl ArrivalTimes {
    pub(super) fn new(schedule: &Arc<Schedule>, seed: u64, thread: usize, threads: usize) -> Self {
        Self {
            schedule: schedule.clone(),
            random: SmallRng::seed_from_u64(seed),
            index: 0,
            thread,
            threads,
            stretch: 0,
            began_ns: 0.0,
            within_ns: 0.0,
            given: 0,
        }
    }

    /// The next arrival of the whole sequence.
    fn next_of_all(&mut self) -> Option<u64> {
        if !self.schedule.trace_ns.is_empty() {
            return self.schedule.trace_ns.get(self.index).copied();
        }
        loop {
            let stretch = self.schedule.stretches.get(self.stretch)?;
            let gap_ns = 1e9 / stretch.rate.per_second;
            let at_ns = match self.schedule.spacing {
                // Multiplied, not summed up: a million roundings would add up to a drift.
                Spacing::Constant => self.given as f64 * gap_ns,
                Spacing::Poisson => {
                    self.within_ns += gap_ns * self.random.sample::<f64, _>(Exp1);
                    self.within_ns
                }
                Spacing::Bursts { on, off } => {
                    let (on, off) = (on.ns as f64, off.ns as f64);
                    let busy_ns = self.given as f64 * gap_ns * on / (on + off);
                    (busy_ns / on).floor() * (on + off) + busy_ns % on
                }
            };
            self.given += 1;
            let end_ns = stretch.length.map(|length| length.ns as f64);
            match end_ns.filter(|end_ns| at_ns >= *end_ns) {
                None => return Some((self.began_ns + at_ns) as u64),
                Some(end_ns) => {
                    self.began_ns += end_ns;
                    self.within_ns = 0.0;
                    self.given = 0;
                    self.stretch += 1;
                }
            }
        }
    }
}

impl Iterator for ArrivalTimes {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            let at_ns = self.next_of_all()?;
            let mine = self.index % self.threads == self.thread;
            self.index += 1;
            if mine {
                return Some(at_ns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Arrivals;

    fn schedule(text: &str) -> Arc<Schedule> {
        match crate::plan::arrivals_of(text) {
            Arrivals::Open(schedule) => schedule,
            other => panic!("{other} is no schedule"),
        }
    }

    fn times(text: &str, until_ns: u64) -> Vec<u64> {
        let times = ArrivalTimes::new(&schedule(text), 7, 0, 1);
        times.take_while(|at_ns| *at_ns < until_ns).collect()
    }

    #[test]
    fn constant_arrivals_are_evenly_spaced_without_drift() {
        let times = times("{ rate = '30k/s' }", 10_000_000_000);
        assert_eq!(times.len(), 300_000);
        assert_eq!(times[299_999], (299_999.0 * 1e9 / 30_000.0) as u64);
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_the_spread_of_their_law() {
        let times = times("{ rate = '10k/s', spacing = 'poisson' }", 10_000_000_000);
        // 100,000 expected with a standard deviation of 316: three of them on either side.
        assert!((99_050..100_950).contains(&times.len()), "{}", times.len());
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // The exponential law's standard deviation equals its mean.
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02);
    }

    #[test]
    fn bursts_keep_the_mean_rate_and_are_silent_between() {
        let times =
            times("{ rate = '1k/s', bursts = { on = '10ms', off = '90ms' } }", 1_000_000_000);
        assert_eq!(times.len(), 1000);
        assert!(times.iter().all(|at_ns| at_ns % 100_000_000 < 10_000_000));
    }

    #[test]
    fn steps_follow_each_other_and_end() {
        let steps = "{ steps = [{ rate = '1k/s', for = '1s' }, { rate = '3k/s', for = '2s' }] }";
        let times = times(steps, u64::MAX);
        assert_eq!(times.len(), 7000);
        assert_eq!(times.iter().filter(|at_ns| **at_ns < 1_000_000_000).count(), 1000);
    }

    #[test]
    fn threads_share_one_sequence() {
        let schedule = schedule("{ rate = '1k/s', spacing = 'poisson' }");
        let all: Vec<u64> = ArrivalTimes::new(&schedule, 7, 0, 1).take(30).collect();
        for thread in 0..3 {
            let mine: Vec<u64> = ArrivalTimes::new(&schedule, 7, thread, 3).take(10).collect();
            let expected: Vec<u64> = all.iter().skip(thread).step_by(3).copied().collect();
            assert_eq!(mine, expected);
        }
    }
}
