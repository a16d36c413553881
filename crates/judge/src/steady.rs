//! Detection of the steady state: the marginal standard error rule (MSER).
//!
//! The truncated start is the one for which the mean of the rest is known best: it minimises Σ (yᵢ
//! − ȳ)² / n² over the n values that remain (White, "An effective truncation heuristic for bias
//! reduction in simulation output", Simulation 69, 1997). White, Cobb and Spratt ("A comparison of
//! five steady-state truncation heuristics for simulation", WSC 2000) take means of five
//! observations first, MSER-5; what is given here are buckets of time already, means of thousands.
//! When more than half would be left out, the series has not settled (the same paper).

/// Minimum length of the rest: fewer values agree by chance.
const MIN_REST: usize = 5;

/// Returns the number of values to truncate at the start, at most half of them; `None` when the
/// series has not settled, is too short, or holds a value that isn't finite.
pub fn steady_from(values: &[f64]) -> Option<usize> {
    if values.len() < 2 * MIN_REST || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let (mut least, mut best) = (f64::INFINITY, None);
    let (mut sum, mut squares) = (0.0, 0.0);
    // Values are taken relative to the last one, so that large ones leave no rounding behind.
    let origin = values[values.len() - 1];
    for (left_out, value) in values.iter().enumerate().rev() {
        let value = value - origin;
        sum += value;
        squares += value * value;
        let rest = (values.len() - left_out) as f64;
        if values.len() - left_out < MIN_REST {
            continue;
        }
        let error = (squares - sum * sum / rest).max(0.0) / (rest * rest);
        // Of equal ones the longest rest is taken: a constant series is steady from its start.
        if error <= least {
            (least, best) = (error, Some(left_out));
        }
    }
    best.filter(|left_out| *left_out <= values.len() / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small differences that look random and are the same every time.
    fn noise(index: usize) -> f64 {
        ((index * 7919 + 13) % 101) as f64 / 101.0 - 0.5
    }

    #[test]
    fn a_slow_start_is_left_out_and_a_steady_series_is_kept_whole() {
        let settling = |i: usize| 1000.0 * (1.0 - (-(i as f64) / 4.0).exp()) + 20.0 * noise(i);
        let values: Vec<f64> = (0..60).map(settling).collect();
        let left_out = steady_from(&values).unwrap();
        assert!((8..24).contains(&left_out), "{left_out}");
        let steady: Vec<f64> = (0..60).map(|i| 1000.0 + 20.0 * noise(i)).collect();
        assert!(steady_from(&steady).unwrap() <= 15);
        assert_eq!(steady_from(&[5.0; 20]), Some(0));
    }

    #[test]
    fn what_still_changes_at_the_end_has_not_settled() {
        let rising: Vec<f64> = (0..40).map(|i| i as f64).collect();
        assert_eq!(steady_from(&rising), None);
        let step: Vec<f64> = (0..40).map(|i| if i < 30 { 1.0 } else { 2.0 }).collect();
        assert_eq!(steady_from(&step), None);
        assert_eq!(steady_from(&[1.0; 9]), None, "too short");
        assert_eq!(steady_from(&[f64::NAN; 30]), None);
    }
}
