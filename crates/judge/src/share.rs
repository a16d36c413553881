//! The share of operations of some kind, such as those that took longer than a limit, with its
//! interval over rounds.
//!
//! A binomial interval on all operations would be far too narrow: one stall delays hundreds of
//! requests at once, so that operations of one round are not independent. An interval over the
//! rounds' own shares alone is of no use where no operation at all is of that kind, and is normal
//! where shares are not. Both are joined as in surveys of clustered samples (E. L. Korn and B. I.
//! Graubard, Survey Methodology 24, 1998): the variance between rounds yields the number of
//! independent operations that carry as much information, at most all of them, and the exact
//! binomial interval (C. J. Clopper and E. S. Pearson, Biometrika 26, 1934) is that of this number.

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
/// all. One round alone has an interval of everything.
///
/// `None` without any operation, with a part that is greater than its whole, or when `confidence`
/// doesn't lie between 0 and 1.
pub fn share_interval(rounds: &[(u64, u64)], confidence: f64) -> Option<ShareInterval> {
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
    let independent = independent(&measured, share, all, confidence);
    let (part, tail) = (share * independent, 0.5 * (1.0 - confidence));
    let is_none = some == 0.0;
    let low = if is_none { 0.0 } else { beta_quantile(tail, part, independent - part + 1.0) };
    let is_all = some == all;
    let high = if is_all { 1.0 } else { beta_quantile(1.0 - tail, part + 1.0, independent - part) };
    Some(ShareInterval { share, low, high })
}

/// The number of independent operations that carry as much information.
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
    fn none_of_all_gives_the_closed_form() {
        let interval = share_interval(&[(0, 100), (0, 200), (0, 100)], 0.95).unwrap();
        assert_eq!((interval.share, interval.low), (0.0, 0.0));
        assert!((interval.high - (1.0 - 0.025_f64.powf(1.0 / 400.0))).abs() < 1e-9);
        let all = share_interval(&[(7, 7), (9, 9)], 0.95).unwrap();
        assert_eq!((all.share, all.high), (1.0, 1.0));
    }

    #[test]
    fn even_rounds_give_the_exact_binomial_interval() {
        let interval = share_interval(&[(10, 1000); 5], 0.95).unwrap();
        let oracle = |part: f64, a: f64, b: f64| Beta::new(a, b).unwrap().inverse_cdf(part);
        assert!((interval.low - oracle(0.025, 50.0, 4951.0)).abs() < 1e-6, "{interval:?}");
        assert!((interval.high - oracle(0.975, 51.0, 4950.0)).abs() < 1e-6, "{interval:?}");
    }

    #[test]
    fn what_comes_in_one_round_only_tells_much_less() {
        let even = share_interval(&[(10, 1000); 5], 0.95).unwrap();
        let stall = share_interval(&[(50, 1000), (0, 1000), (0, 1000), (0, 1000), (0, 1000)], 0.95);
        let stall = stall.unwrap();
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
            let interval = share_interval(&rounds, 0.95).unwrap();
            interval.low <= 0.01 && 0.01 <= interval.high
        });
        let covers = covers.count();
        assert!(covers >= 930, "{covers} of {runs}");
    }

    #[test]
    fn what_can_not_be_a_share_gives_nothing() {
        assert_eq!(share_interval(&[], 0.95), None);
        assert_eq!(share_interval(&[(0, 0), (0, 0)], 0.95), None);
        assert_eq!(share_interval(&[(2, 1), (0, 1)], 0.95), None);
        assert_eq!(share_interval(&[(0, 1), (0, 1)], 1.0), None);
        let one = share_interval(&[(1, 4)], 0.95).unwrap();
        assert_eq!((one.share, one.low, one.high), (0.25, 0.0, 1.0));
    }
}
