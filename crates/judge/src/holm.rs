//! Holm's step-down correction over a family of comparisons.
//!
//! Sixteen points compared at 5 % each would call about one difference that isn't there. Holm's
//! procedure holds the chance of *any* such false call in the family at 5 %, whatever the
//! dependence between points, and is never weaker than Bonferroni's (S. Holm, "A simple
//! sequentially rejective multiple test procedure", Scand. J. Statist. 6, 1979).

/// The Holm-adjusted p-values of a family, in the order given: a comparison is significant at
/// level α in the family when its adjusted value is at most α.
///
/// A NaN counts as 1: what can't be tested can't be significant, but it stays in the family.
pub fn holm_adjust(p_values: &[f64]) -> Vec<f64> {
    let clean: Vec<f64> =
        p_values.iter().map(|p| if p.is_nan() { 1.0 } else { p.clamp(0.0, 1.0) }).collect();
    let mut order: Vec<usize> = (0..clean.len()).collect();
    order.sort_by(|left, right| clean[*left].total_cmp(&clean[*right]));
    let mut adjusted = vec![1.0; clean.len()];
    let mut floor = 0.0_f64;
    for (rank, index) in order.into_iter().enumerate() {
        let hypotheses_left = (clean.len() - rank) as f64;
        // Step-down: a later one can't become more significant than an earlier one.
        floor = floor.max(clean[index] * hypotheses_left).min(1.0);
        adjusted[index] = floor;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_worked_example_comes_out() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") is 0.03 0.06 0.06 0.02.
        let adjusted = holm_adjust(&[0.01, 0.04, 0.03, 0.005]);
        for (got, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((got - expected).abs() < 1e-12, "{adjusted:?}");
        }
    }

    #[test]
    fn a_family_of_one_is_left_alone_and_nan_never_counts() {
        assert_eq!(holm_adjust(&[0.04]), [0.04]);
        assert_eq!(holm_adjust(&[f64::NAN, 0.03]), [1.0, 0.06]);
        assert!(holm_adjust(&[]).is_empty());
    }
}
