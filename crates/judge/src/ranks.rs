//! Rank statistics: robust against outliers, without an assumption of normality.
//!
//! Mann and Whitney's U (Ann. Math. Statist. 18, 1947) tests whether one sample tends to be
//! greater; Hodges and Lehmann's shift (Ann. Math. Statist. 34, 1963) estimates by how much. They
//! are reported beside Student's t: where the two disagree, a few outliers decide one of them.

use crate::normal::normal_tail;
use crate::quantile::median;

/// The largest product of sample sizes for which the exact distribution of U is counted.
const EXACT_PRODUCT_MAX: usize = 2_500;

/// Two-sided p-value of Mann and Whitney's U for "neither sample tends to be greater": exact
/// without ties in samples of moderate size, else the normal approximation.
///
/// `None` when a sample is empty or holds a NaN.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<f64> {
    mann_whitney_exact(a, b).or_else(|| mann_whitney_normal(a, b))
}

/// The p-value from the exact distribution of U. `None` with ties, for samples whose sizes
/// multiply to more than 2,500, and as [`mann_whitney`].
pub fn mann_whitney_exact(a: &[f64], b: &[f64]) -> Option<f64> {
    let ranked = Ranked::of(a, b)?;
    if ranked.ties > 0.0 || a.len() * b.len() > EXACT_PRODUCT_MAX {
        return None;
    }
    let counts = orderings(a.len(), b.len());
    let all: f64 = counts.iter().sum();
    // Without ties U is a whole number.
    let greater = ranked.u.max((a.len() * b.len()) as f64 - ranked.u) as usize;
    let beyond: f64 = counts[greater..].iter().sum();
    Some((2.0 * beyond / all).min(1.0))
}

/// The p-value from the normal approximation, corrected for ties and continuity.
pub fn mann_whitney_normal(a: &[f64], b: &[f64]) -> Option<f64> {
    let ranked = Ranked::of(a, b)?;
    let (n, m) = (a.len() as f64, b.len() as f64);
    let all = n + m;
    let variance = n * m / 12.0 * ((all + 1.0) - ranked.ties / (all * (all - 1.0)));
    let greater = ranked.u.max(n * m - ranked.u);
    let above = greater - 0.5 * n * m - 0.5;
    if variance <= 0.0 {
        return Some(1.0);
    }
    Some((2.0 * normal_tail(above / variance.sqrt())).min(1.0))
}

/// How many orderings of the two samples give each U: the coefficients of the Gaussian binomial,
/// by the usual recurrence on sizes.
fn orderings(n: usize, m: usize) -> Vec<f64> {
    let mut counts = vec![0.0; n * m + 1];
    counts[0] = 1.0;
    // ∏ (1 - q^(m+i)) / (1 - q^i) for i = 1..n, one factor at a time, within the first terms.
    for i in 1..=n {
        for u in (m + i..counts.len()).rev() {
            counts[u] -= counts[u - m - i];
        }
        for u in i..counts.len() {
            counts[u] += counts[u - i];
        }
    }
    counts
}

/// U of the first sample, and Σ (t³ - t) over groups of ties.
struct Ranked {
    u: f64,
    ties: f64,
}

impl Ranked {
    fn of(a: &[f64], b: &[f64]) -> Option<Ranked> {
        if a.is_empty() || b.is_empty() || a.iter().chain(b).any(|value| value.is_nan()) {
            return None;
        }
        let mut all: Vec<(f64, bool)> = a.iter().map(|value| (*value, true)).collect();
        all.extend(b.iter().map(|value| (*value, false)));
        all.sort_by(|left, right| left.0.total_cmp(&right.0));
        let (mut rank_sum, mut ties, mut start) = (0.0, 0.0, 0);
        for group in all.chunk_by(|left, right| left.0 == right.0) {
            let size = group.len() as f64;
            let rank = start as f64 + 0.5 * (size + 1.0);
            rank_sum += rank * group.iter().filter(|(_, of_a)| *of_a).count() as f64;
            ties += size * size * size - size;
            start += group.len();
        }
        let n = a.len() as f64;
        Some(Ranked { u: rank_sum - 0.5 * n * (n + 1.0), ties })
    }
}

/// The ratio a/b of paired figures by Hodges and Lehmann: the median of all means of two log
/// ratios. `None` when there is none, or when a figure isn't positive.
pub fn paired_shift_ratio(a: &[f64], b: &[f64]) -> Option<f64> {
    let positive = |values: &[f64]| values.iter().all(|value| *value > 0.0 && value.is_finite());
    if a.len() != b.len() || !positive(a) || !positive(b) {
        return None;
    }
    let logs: Vec<f64> = a.iter().zip(b).map(|(a, b)| (a / b).ln()).collect();
    let means = (0..logs.len())
        .flat_map(|i| logs[i..].iter().map(move |other| (i, other)))
        .map(|(i, other)| 0.5 * (logs[i] + other));
    median(&means.collect::<Vec<_>>()).map(f64::exp)
}

/// The ratio a/b of figures that aren't paired: the median of all ratios of one to another.
pub fn shift_ratio(a: &[f64], b: &[f64]) -> Option<f64> {
    let ratios: Vec<f64> = a.iter().flat_map(|a| b.iter().map(move |b| a / b)).collect();
    median(&ratios).filter(|ratio| *ratio > 0.0 && ratio.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_are_those_of_the_published_table() {
        // Mann and Whitney's own example sizes: U of 3 and 3 has 20 orderings.
        assert_eq!(orderings(3, 3), [1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 2.0, 1.0, 1.0]);
        assert_eq!(orderings(2, 1), [1.0, 1.0, 1.0]);
        let p = mann_whitney(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]).unwrap();
        assert!((p - 0.1).abs() < 1e-12);
    }

    #[test]
    fn ties_go_by_the_normal_approximation_and_equal_samples_are_never_different() {
        assert_eq!(mann_whitney_exact(&[1.0, 2.0], &[2.0, 3.0]), None);
        assert_eq!(mann_whitney(&[2.0; 4], &[2.0; 3]), Some(1.0));
        assert_eq!(mann_whitney(&[], &[1.0]), None);
        assert_eq!(mann_whitney(&[f64::NAN], &[1.0]), None);
    }

    #[test]
    fn one_odd_round_moves_the_shift_little() {
        let b = [1.0; 5];
        let shift = paired_shift_ratio(&[1.10, 1.11, 1.09, 1.10, 7.0], &b).unwrap();
        assert!((shift - 1.1).abs() < 0.02, "{shift}");
        assert_eq!(shift_ratio(&[4.0, 4.0], &[2.0, 2.0, 2.0]), Some(2.0));
        assert_eq!(paired_shift_ratio(&[1.0], &[0.0]), None);
        assert_eq!(shift_ratio(&[], &[1.0]), None);
    }
}
