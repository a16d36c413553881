//! Bootstrap intervals: the figures are resampled with replacement, and the spread of the statistic
//! over the resamples is its interval (B. Efron, Ann. Statist. 7, 1979). The percentile interval
//! assumes nothing, and suits a median, which has no derivative for finer corrections to use.

use crate::quantile::{median, quantile_of_sorted};
use crate::random::Random;

/// Number of resamples.
pub const RESAMPLES: usize = 1_999;

/// Returns the lower and upper end of the percentile interval of the statistic that `answer`
/// computes of one resample. Resamples without a value are left out; `None` when more than one in
/// ten has none.
pub fn bootstrap(
    seed: u64,
    confidence: f64,
    mut answer: impl FnMut(&mut Random) -> Option<f64>,
) -> Option<(f64, f64)> {
    let mut random = Random::new(seed);
    let mut answers: Vec<f64> = (0..RESAMPLES).filter_map(|_| answer(&mut random)).collect();
    if answers.len() * 10 < RESAMPLES * 9 || !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    answers.sort_by(f64::total_cmp);
    let tail = 0.5 * (1.0 - confidence);
    Some((quantile_of_sorted(&answers, tail)?, quantile_of_sorted(&answers, 1.0 - tail)?))
}

/// Returns the interval of the ratio of two medians of unpaired figures.
pub fn median_ratio_interval(a: &[f64], b: &[f64], confidence: f64) -> Option<(f64, f64)> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let draw = |random: &mut Random, values: &[f64]| -> Vec<f64> {
        (0..values.len()).map(|_| values[random.below(values.len())]).collect()
    };
    bootstrap(1, confidence, |random| {
        let ratio = median(&draw(random, a))? / median(&draw(random, b))?;
        ratio.is_finite().then_some(ratio)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_covers_as_often_as_it_says() {
        let mut random = Random::new(9);
        let covered = (0..100).filter(|_| {
            let mut series =
                || -> Vec<f64> { (0..25).map(|_| (0.1 * random.normal()).exp()).collect() };
            let (low, high) = median_ratio_interval(&series(), &series(), 0.9).unwrap();
            low <= 1.0 && 1.0 <= high
        });
        let covered = covered.count();
        assert!((82..=98).contains(&covered), "{covered} of 100 at 90 %");
    }

    #[test]
    fn the_same_figures_give_the_same_interval_and_none_gives_none() {
        let (a, b) = ([1.0, 2.0, 3.0], [2.0, 2.5, 3.0]);
        assert_eq!(median_ratio_interval(&a, &b, 0.95), median_ratio_interval(&a, &b, 0.95));
        assert_eq!(median_ratio_interval(&[], &b, 0.95), None);
        assert_eq!(median_ratio_interval(&a, &[0.0; 3], 0.95), None);
    }
}
