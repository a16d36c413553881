//! Arrival times from a schedule. Pure: it knows no clock.

use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rand_distr::Exp1;

use super::arrivals::{Schedule, Spacing};

/// What the arrivals of one run of the load depend on, the same for all of its threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seed {
    /// The round's, and its group's.
    pub(super) of_group: u64,
    /// The number of the run in the round: of a slice, or of what is before the first.
    pub(super) run: u64,
}

impl Seed {
    fn random(self) -> SmallRng {
        SmallRng::seed_from_u64(self.of_group.wrapping_add(self.run))
    }

    /// How long the first of evenly spaced arrivals comes after the start, in gaps. A run of half a
    /// gap has one arrival every other time then, and not each time; by steps of the golden ratio
    /// the runs of a round have together as many as are due, but for one or two.
    fn phase(self) -> f64 {
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        let first: f64 = SmallRng::seed_from_u64(self.of_group).random();
        (first + self.run as f64 * GOLDEN).fract()
    }
}

/// The arrival times of one thread in nanoseconds from the start, ascending. Of T threads, thread
/// t gets the arrivals t, t + T, t + 2T and so on of the one sequence that the seed gives.
#[derive(Clone, Debug)]
pub(super) struct ArrivalTimes {
    schedule: Arc<Schedule>,
    random: SmallRng,
    phase: f64,
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
    pub(super) fn new(
        schedule: &Arc<Schedule>,
        seed: Seed,
        (thread, threads): (usize, usize),
    ) -> Self {
        Self {
            schedule: schedule.clone(),
            random: seed.random(),
            phase: seed.phase(),
            index: 0,
            thread,
            threads,
            stretch: 0,
            began_ns: 0.0,
            within_ns: 0.0,
            given: 0,
        }
    }

    pub(super) fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The same from the start on.
    #[cfg(test)]
    pub(super) fn at_once(mut self) -> Self {
        self.phase = 0.0;
        self
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
                Spacing::Constant => (self.given as f64 + self.phase) * gap_ns,
                Spacing::Poisson => {
                    self.within_ns += gap_ns * self.random.sample::<f64, _>(Exp1);
                    self.within_ns
                }
                Spacing::Bursts { on, off } => {
                    let bursts = Bursts { on: on.ns as f64, period: (on.ns + off.ns) as f64 };
                    bursts.at(self.given as f64, self.phase, gap_ns)
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

/// Bursts of this length in nanoseconds, one each period.
struct Bursts {
    on: f64,
    period: f64,
}

impl Bursts {
    /// When an arrival comes: bursts have gone on for ever, and a run starts at any time of them,
    /// at this phase of a thousand periods. So runs that are no whole number of periods long have
    /// together as many arrivals as are due.
    fn at(&self, given: f64, phase: f64, gap_ns: f64) -> f64 {
        let Self { on, period } = *self;
        let start_ns = phase * 1000.0 * period;
        let busy_gap_ns = gap_ns * on / period;
        let busy_before_ns = (start_ns / period).floor() * on + (start_ns % period).min(on);
        let busy_ns = ((busy_before_ns / busy_gap_ns).ceil() + given) * busy_gap_ns;
        // Rounding may put the first just before the start, and so into the burst before it.
        let busy_ns = busy_ns.max(busy_before_ns);
        ((busy_ns / on).floor() * period + busy_ns % on - start_ns).max(0.0)
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

    const SEED: Seed = Seed { of_group: 7, run: 3 };

    fn times(text: &str, until_ns: u64) -> Vec<u64> {
        let times = ArrivalTimes::new(&schedule(text), SEED, (0, 1));
        times.take_while(|at_ns| *at_ns < until_ns).collect()
    }

    #[test]
    fn constant_arrivals_are_evenly_spaced_without_drift() {
        let times = times("{ rate = '30k/s' }", 10_000_000_000);
        assert_eq!(times.len(), 300_000);
        let due = (299_999.0 * 1e9 / 30_000.0) as u64;
        assert!((times[299_999] - times[0]).abs_diff(due) <= 1, "{}", times[299_999]);
    }

    #[test]
    fn runs_shorter_than_a_gap_have_together_as_many_arrivals_as_are_due() {
        let bursts = "bursts = { on = '10ms', off = '90ms' }";
        for (rate, run_ms, runs) in [
            ("rate = '1/s'".to_owned(), 500, 24),
            ("rate = '3/s'".to_owned(), 500, 16),
            ("rate = '1/s'".to_owned(), 50, 200),
            (format!("rate = '1k/s', {bursts}"), 250, 200),
            (format!("rate = '3/s', {bursts}"), 50, 400),
        ] {
            let schedule = schedule(&format!("{{ {rate} }}"));
            for of_group in 0..50 {
                let of_run = |run| {
                    let times = ArrivalTimes::new(&schedule, Seed { of_group, run }, (0, 1));
                    times.take_while(|at_ns| *at_ns < run_ms * 1_000_000).count() as f64
                };
                let sent: f64 = (0..runs).map(of_run).sum();
                let due = schedule.stretches[0].rate.per_second * (runs * run_ms) as f64 / 1e3;
                // Arrivals of a burst come or stay away together.
                let within = if rate.contains(bursts) { 0.1 * due } else { 2.0 };
                assert!(
                    (sent - due).abs() <= within,
                    "{rate}, {run_ms} ms, {of_group}: {sent} of {due}"
                );
            }
        }
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
        assert!((999..=1001).contains(&times.len()), "{}", times.len());
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let between = gaps.iter().filter(|gap| **gap >= 90_000_000).count();
        assert!((9..=10).contains(&between), "{between}");
        assert!(gaps.iter().all(|gap| gap.abs_diff(100_000) <= 1 || *gap >= 90_000_000));
    }

    #[test]
    fn the_first_of_a_run_lies_in_a_burst_of_it() {
        for (per_second, on_ms, off_ms) in [(30.0, 10, 90), (30.0, 100, 900), (3000.0, 7, 20)] {
            let [on, off] = [on_ms, off_ms].map(|ms| f64::from(ms) * 1e6);
            let bursts = Bursts { on, period: on + off };
            for run in 0..1000 {
                let phase = Seed { of_group: 7, run }.phase();
                let start = phase * 1000.0 * bursts.period;
                let at = bursts.at(0.0, phase, 1e9 / per_second);
                let within = (start + at) % bursts.period;
                let is_in_one = within <= on + 1.0 || within >= bursts.period - 1.0;
                assert!(is_in_one, "{per_second}/s, {on_ms} ms, run {run}: {within}");
            }
        }
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
        let all: Vec<u64> = ArrivalTimes::new(&schedule, SEED, (0, 1)).take(30).collect();
        for thread in 0..3 {
            let mine: Vec<u64> = ArrivalTimes::new(&schedule, SEED, (thread, 3)).take(10).collect();
            let expected: Vec<u64> = all.iter().skip(thread).step_by(3).copied().collect();
            assert_eq!(mine, expected);
        }
    }
}
