//! Intervals over rounds, on the log scale.
//!
//! Rates and latencies are positive and vary by factors, so their logarithms are closer to normal
//! than they are, and a ratio and its inverse get the same interval. Two targets of one round ran
//! alternately under the same disturbances; the **paired** log ratio cancels what both suffered,
//! which is why the difference is taken within each round before anything is averaged. The
//! interval is Student's t on those differences (W. S. Gosset, Biometrika 6, 1908).

use crate::student::{t_critical, t_two_sided_tail};

/// Floor of the standard error, on the log scale. Counts can agree exactly in every round; then
/// only rounding of f64 is left, which must not pass for a difference.
pub(crate) const LOG_NOISE: f64 = 1e-12;

/// The ratio of two targets over rounds, with its interval and p-value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Geometric mean of a/b over the rounds; no unit.
    pub ratio: f64,
    /// Lower end of the interval. 0 when there is one round only: no variance is known.
    pub low: f64,
    /// Upper end of the interval. Infinite when there is one round only.
    pub high: f64,
    /// Number of pairs.
    pub rounds: usize,
    /// Two-sided p-value of "the ratio is 1", uncorrected. 1 when there is one round only.
    pub p_value: f64,
    /// Standard deviation of ln(a/b) over the rounds; NaN when there is one round only.
    pub log_deviation: f64,
}

/// One series over rounds, with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesInterval {
    /// Geometric mean, in the unit of the series.
    pub mean: f64,
    /// Lower end of the interval. 0 when there is one round only.
    pub low: f64,
    /// Upper end of the interval. Infinite when there is one round only.
    pub high: f64,
    /// Number of rounds.
    pub rounds: usize,
    /// Half the width relative to the mean: `0.019` is printed as ±1.9 %. The interval is
    /// symmetric on the log scale, and this is its upper side: `high / mean - 1`.
    pub relative_half_width: f64,
}

/// The ratio a/b over rounds: geometric mean and Student's t interval on the paired log ratios.
///
/// `a[i]` and `b[i]` are the two targets' figures of one round. `confidence` lies strictly
/// between 0 and 1 (0.95 is what reports print). `None` when there are no rounds, when the slices
/// differ in length, when a figure isn't a positive finite number (a logarithm needs one), or
/// when `confidence` is out of range.
pub fn paired_ratio(a: &[f64], b: &[f64], confidence: f64) -> Option<Interval> {
    if a.len() != b.len() {
        return None;
    }
    let logs: Vec<f64> = logs(a)?.iter().zip(logs(b)?).map(|(a, b)| a - b).collect();
    let spread = Spread::of(&logs, confidence)?;
    Some(Interval {
        ratio: spread.mean.exp(),
        low: (spread.mean - spread.half_width).exp(),
        high: (spread.mean + spread.half_width).exp(),
        rounds: spread.rounds,
        p_value: spread.p_value(),
        log_deviation: spread.deviation,
    })
}

/// The mean of one series over rounds, with Student's t interval on its logarithms.
///
/// `None` under the same conditions as [`paired_ratio`].
pub fn series_interval(values: &[f64], confidence: f64) -> Option<SeriesInterval> {
    let spread = Spread::of(&logs(values)?, confidence)?;
    Some(SeriesInterval {
        mean: spread.mean.exp(),
        low: (spread.mean - spread.half_width).exp(),
        high: (spread.mean + spread.half_width).exp(),
        rounds: spread.rounds,
        relative_half_width: spread.half_width.exp_m1(),
    })
}

/// The logarithms of these figures; `None` without any, or when one isn't positive and finite.
pub(crate) fn logs(values: &[f64]) -> Option<Vec<f64>> {
    let log = |value: &f64| (*value > 0.0 && value.is_finite()).then(|| value.ln());
    values.iter().map(log).collect::<Option<Vec<f64>>>().filter(|logs| !logs.is_empty())
}

/// The mean of a sample and its variance, which is 0 of a single value.
pub(crate) fn mean_and_variance(sample: &[f64]) -> (f64, f64) {
    let count = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / count;
    let squares: f64 = sample.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, squares / (count - 1.0).max(1.0))
}

/// Mean, deviation and half-width of a sample, all on the scale of the sample.
struct Spread {
    mean: f64,
    deviation: f64,
    half_width: f64,
    rounds: usize,
}

impl Spread {
    fn of(sample: &[f64], confidence: f64) -> Option<Spread> {
        if !(confidence > 0.0 && confidence < 1.0) {
            return None;
        }
        let (rounds, count) = (sample.len(), sample.len() as f64);
        let (mean, variance) = mean_and_variance(sample);
        let (deviation, half_width) = match rounds {
            1 => (f64::NAN, f64::INFINITY),
            _ => (
                variance.sqrt(),
                t_critical(confidence, count - 1.0) * variance.sqrt() / count.sqrt(),
            ),
        };
        Some(Spread { mean, deviation, half_width, rounds })
    }

    fn p_value(&self) -> f64 {
        if self.rounds < 2 {
            return 1.0;
        }
        let count = self.rounds as f64;
        let error = (self.deviation / count.sqrt()).max(LOG_NOISE);
        t_two_sided_tail(self.mean / error, count - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_sample_gives_the_textbook_interval() {
        // ln ratios 0.1, 0.2, 0.3: mean 0.2, s = 0.1, t(2) = 4.302653, half = 0.248414.
        let a: Vec<f64> = [0.1_f64, 0.2, 0.3].iter().map(|log| log.exp()).collect();
        let interval = paired_ratio(&a, &[1.0, 1.0, 1.0], 0.95).unwrap();
        assert!((interval.ratio.ln() - 0.2).abs() < 1e-12);
        assert!((interval.high.ln() - 0.448_413_8).abs() < 1e-6);
        assert!((interval.low.ln() + 0.048_413_8).abs() < 1e-6);
        // t = 0.2 / (0.1 / √3) = 3.4641; p = 1 - t/√(2 + t²) for two degrees of freedom.
        let t = 12.0_f64.sqrt();
        assert!((interval.p_value - (1.0 - t / (2.0 + t * t).sqrt())).abs() < 1e-12);
    }

    #[test]
    fn swapping_the_targets_inverts_the_ratio_and_keeps_the_p_value() {
        let (a, b) = ([3.0, 5.0, 4.0, 4.5], [2.0, 2.5, 2.2, 2.1]);
        let there = paired_ratio(&a, &b, 0.95).unwrap();
        let back = paired_ratio(&b, &a, 0.95).unwrap();
        assert!((there.ratio * back.ratio - 1.0).abs() < 1e-12);
        assert!((there.low * back.high - 1.0).abs() < 1e-12);
        assert!((there.p_value - back.p_value).abs() < 1e-12);
    }

    #[test]
    fn pairing_cancels_what_both_targets_suffered() {
        let weather = [1.0, 0.5, 0.8, 0.3, 0.9];
        let a: Vec<f64> = weather.iter().map(|w| 110.0 * w).collect();
        let b: Vec<f64> = weather.iter().map(|w| 100.0 * w).collect();
        let interval = paired_ratio(&a, &b, 0.95).unwrap();
        assert!(interval.high - interval.low < 1e-9 && (interval.ratio - 1.1).abs() < 1e-9);
        assert!(series_interval(&a, 0.95).unwrap().relative_half_width > 0.5);
    }

    #[test]
    fn rounding_is_no_difference_and_a_constant_factor_is() {
        let (a, b) = ([1.0 + 1e-15; 5], [1.0; 5]);
        assert!(paired_ratio(&a, &b, 0.95).unwrap().p_value > 0.9);
        assert!(paired_ratio(&[1.01; 5], &b, 0.95).unwrap().p_value < 1e-12);
    }

    #[test]
    fn one_round_tells_the_ratio_and_nothing_else() {
        let interval = paired_ratio(&[2.0], &[1.0], 0.95).unwrap();
        assert_eq!((interval.ratio, interval.low, interval.p_value), (2.0, 0.0, 1.0));
        assert!(interval.high.is_infinite());
    }

    #[test]
    fn what_has_no_logarithm_gives_nothing() {
        for (a, b) in [(0.0, 1.0), (1.0, -1.0), (f64::NAN, 1.0), (1.0, f64::INFINITY)] {
            assert_eq!(paired_ratio(&[a, 1.0], &[b, 1.0], 0.95), None);
        }
        assert_eq!(paired_ratio(&[1.0], &[], 0.95), None);
        assert_eq!(series_interval(&[], 0.95), None);
        assert_eq!(series_interval(&[1.0], 1.0), None);
    }
}
