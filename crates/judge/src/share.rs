//! The share of operations of some kind, such as those that took longer than a limit, with its
//! interval over rounds.
//!
//! A binomial interval on all operations would be far too narrow: one stall delays hundreds of
//! requests at once, so that operations of one round are not independent. An interval over the
//! rounds' own shares alone is of no use where no operation at all is of that kind, and is normal
//! where shares are not. Both are joined as in surveys of clustered samples (E. L. Korn and B. I.
//! Graubard, Survey Methodology 24, 1998): the variance between rounds yields the number of
//! independent operations that carry as much information, and the exact binomial interval (C. J.
//! Clopper and E. S. Pearson, Biometrika 26, 1934) is that of this number.
//!
//! Rounds with none, all, or equally many of the kind have no variance, and yet their operations
//! are not independent: a stall that comes once in 30 s is in none of five rounds of a second in
//! five runs of six. So the design effect is never less than that of the clusters which are known
//! beforehand. The requests outstanding together are one: a stall delays all of them alike, and of
//! m that are alike only one counts, for the design effect 1 + (m - 1)ρ is m where ρ is 1 (L. Kish,
//! Survey Sampling, 1965, section 5.4). A stall that a schedule meets with requests beyond those
//! outstanding shows in the variance between rounds once it is seen. That one which came in no
//! round comes seldom, nothing can show but more time: of what happens on average once in the
//! measured time, e⁻¹ = 37 % of runs see nothing.

use crate::normal::normal_critical;
use crate::student::{regularised_beta, t_critical};

/// The share of some operations in all, over rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShareInterval {
    /// Of the operations of all rounds together.
    pub share: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// The share over rounds, each as how many operations are of the kind, and how many there are in
/// all. `at_once` of them, at least 1, may be of the kind for one and the same cause: the requests
/// that are outstanding together. One round alone has an interval of everything.
///
/// `None` without any operation, with a part that is greater than its whole, or when `confidence`
/// doesn't lie between 0 and 1.
pub fn share_interval(
    rounds: &[(u64, u64)],
    at_once: u64,
    confidence: f64,
) -> Option<ShareInterval> {
    let measured: Vec<(f64, f64)> = rounds
        .iter()
        .filter(|(_, all)| *all > 0)
        .map(|(some, all)| (*some as f64, *all as f64))
        .collect();
    let some: f64 = measured.iter().map(|(some, _)| some).sum();
    let all: f64 = measured.iter().map(|(_, all)| all).sum();
    let is_part = measured.iter().all(|(some, all)| some <= all);
    if !is_part || all == 0.0 || !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let share = some / all;
    if measured.len() < 2 {
        return Some(ShareInterval { share, low: 0.0, high: 1.0 });
    }
    let clusters = (all / at_once.max(1) as f64).max(1.0);
    let independent = independent(&measured, share, all, confidence).min(clusters);
    let (part, tail) = (share * independent, 0.5 * (1.0 - confidence));
    let is_none = some == 0.0;
    let low = if is_none { 0.0 } else { beta_quantile(tail, part, independent - part + 1.0) };
    let is_all = some == all;
    let high = if is_all { 1.0 } else { beta_quantile(1.0 - tail, part + 1.0, independent - part) };
    Some(ShareInterval { share, low, high })
}

/// The number of independent operations that carry as much information, by the variance between
/// rounds; all of them where there is none.
fn independent(rounds: &[(f64, f64)], share: f64, all: f64, confidence: f64) -> f64 {
    let count = rounds.len() as f64;
    let squares: f64 = rounds.iter().map(|(some, all)| (some - share * all).powi(2)).sum();
    let variance = count / (count - 1.0) * squares / (all * all);
    if variance <= 0.0 {
        return all;
    }
    // The variance is itself known from few rounds only.
    let narrower = normal_critical(0.5 * (1.0 - confidence)) / t_critical(confidence, count - 1.0);
    (share * (1.0 - share) / variance * narrower.powi(2)).min(all)
}

/// The x up to which this part of the beta distribution lies.
fn beta_quantile(part: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    // Every step halves the gap; after these it is below the last digit of what matters.
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        match regularised_beta(a, b, middle, 1.0 - middle) < part {
            true => low = middle,
            false => high = middle,
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use statrs::distribution::{Beta, ContinuousCDF};

    #[test]
    fn none_of_all_gives_the_closed_form_of_the_clusters() {
        let rounds = [(0, 100), (0, 200), (0, 100)];
        for at_once in [0, 1, 10, 400, 1_000] {
            let interval = share_interval(&rounds, at_once, 0.95).unwrap();
            let clusters = (400.0 / at_once.max(1) as f64).max(1.0);
            assert_eq!((interval.share, interval.low), (0.0, 0.0));
            let high = 1.0 - 0.025_f64.powf(1.0 / clusters);
            assert!((interval.high - high).abs() < 1e-9, "{at_once}: {interval:?}");
        }
        let all = share_interval(&[(7, 7), (9, 9)], 4, 0.95).unwrap();
        assert_eq!((all.share, all.high), (1.0, 1.0));
        assert!((all.low - 0.025_f64.powf(1.0 / 4.0)).abs() < 1e-9, "{all:?}");
    }

    #[test]
    fn even_rounds_give_the_exact_binomial_interval_of_the_clusters() {
        let oracle = |part: f64, a: f64, b: f64| Beta::new(a, b).unwrap().inverse_cdf(part);
        for (at_once, some, all) in [(1, 50.0, 5_000.0), (10, 5.0, 500.0)] {
            let interval = share_interval(&[(10, 1000); 5], at_once, 0.95).unwrap();
            let (low, high) =
                (oracle(0.025, some, all - some + 1.0), oracle(0.975, some + 1.0, all - some));
            assert!((interval.low - low).abs() < 1e-6, "{interval:?}");
            assert!((interval.high - high).abs() < 1e-6, "{interval:?}");
        }
    }

    #[test]
    fn a_healthy_service_still_shows_its_99th_percentile_in_five_seconds() {
        let interval = share_interval(&[(0, 20_000); 5], 64, 0.95).unwrap();
        assert!(interval.high < 0.01, "no answer of 100,000 is over the limit: {interval:?}");
        assert!(interval.high > 0.001, "the 99.9th takes longer: {interval:?}");
    }

    #[test]
    fn what_comes_in_one_round_only_tells_much_less() {
        let even = share_interval(&[(10, 1000); 5], 1, 0.95).unwrap();
        let stall = [(50, 1000), (0, 1000), (0, 1000), (0, 1000), (0, 1000)];
        let stall = share_interval(&stall, 1, 0.95).unwrap();
        assert_eq!(even.share, stall.share);
        assert!(stall.high > 4.0 * even.high && stall.low < even.low / 10.0, "{stall:?}");
    }

    #[test]
    fn the_interval_has_the_true_share_in_it_though_operations_come_in_stalls() {
        // Each round has a stall with its own probability; one delays 40 of 2,000 operations.
        let mut random = Random::new(1);
        let runs = 1_000;
        let covers = (0..runs).filter(|_| {
            let mut round = || {
                let stalls = (0..10).filter(|_| random.uniform() < 0.5).count() as u64;
                (stalls * 40, 20_000)
            };
            let rounds: Vec<_> = (0..6).map(|_| round()).collect();
            let interval = share_interval(&rounds, 1, 0.95).unwrap();
            interval.low <= 0.01 && 0.01 <= interval.high
        });
        let covers = covers.count();
        assert!(covers >= 930, "{covers} of {runs}");
    }

    /// How many of 1,000 runs have the true share in their interval: five rounds of 20,000
    /// operations, in which each of `stalls` on average, at any time, delays 64.
    fn covers(stalls: f64, at_once: u64, seed: u64) -> u32 {
        let mut random = Random::new(seed);
        let truth = stalls * 64.0 / 100_000.0;
        let covers = |_: &u32| {
            let mut round = |_| {
                // Poisson's number of stalls, as arrivals in a fifth of the time.
                let mut left = stalls / 5.0;
                let mut count = 0;
                loop {
                    left += (1.0 - random.uniform()).ln();
                    if left < 0.0 {
                        return (count * 64, 20_000);
                    }
                    count += 1;
                }
            };
            let rounds = [0; 5].map(|_| round(()));
            let interval = share_interval(&rounds, at_once, 0.95).unwrap();
            interval.low <= truth && truth <= interval.high
        };
        (0..1_000).filter(covers).count() as u32
    }

    #[test]
    fn the_interval_has_the_true_share_in_it_though_stalls_are_rare() {
        for (seed, stalls) in (20_261_123..).zip([1.0 / 6.0, 0.5, 1.0, 2.0, 3.0, 6.0, 12.0]) {
            let covered = covers(stalls, 64, seed);
            assert!(covered >= 930, "{covered} of 1,000 with {stalls} stalls, seed {seed}");
        }
        // What stalls of a run of 5 s in 30 s are to one that takes operations for independent.
        let independent = covers(1.0 / 6.0, 1, 20_261_123);
        assert!(independent < 250, "{independent} of 1,000, seed 20261123");
    }

    #[test]
    fn what_can_not_be_a_share_gives_nothing() {
        assert_eq!(share_interval(&[], 1, 0.95), None);
        assert_eq!(share_interval(&[(0, 0), (0, 0)], 1, 0.95), None);
        assert_eq!(share_interval(&[(2, 1), (0, 1)], 1, 0.95), None);
        assert_eq!(share_interval(&[(0, 1), (0, 1)], 1, 1.0), None);
        let one = share_interval(&[(1, 4)], 1, 0.95).unwrap();
        assert_eq!((one.share, one.low, one.high), (0.25, 0.0, 1.0));
    }
}
