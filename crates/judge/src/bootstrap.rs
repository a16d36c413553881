//! Bootstrap intervals: the figures are resampled with replacement, and the spread of the statistic
//! over the resamples is its interval (B. Efron, Ann. Statist. 7, 1979). The percentile interval
//! assumes nothing.

use crate::quantile::quantile_of_sorted;
use crate::random::Random;

/// Number of resamples.
const RESAMPLES: usize = 1_999;

/// Returns the lower and upper end of the percentile interval of the statistic that `answer`
/// computes of one resample. Resamples without a value are left out; `None` when more than one in
/// ten has none.
pub(crate) fn bootstrap(
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
