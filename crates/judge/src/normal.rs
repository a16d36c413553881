//! The standard normal distribution: its tail, its density, and the value with a given tail.
//!
//! The tail is half of erfc(x/√2). Near 0 erf is summed by its series of positive terms
//! (Abramowitz & Stegun, 7.1.6), further out erfc is the continued fraction 7.1.14, so that small
//! tails keep their digits. The tests hold both against `statrs`.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Argument above which the continued fraction converges faster than the series.
const SERIES_BELOW: f64 = 2.0;

/// P(Z > z).
pub(crate) fn normal_tail(z: f64) -> f64 {
    0.5 * complementary_error(z * FRAC_1_SQRT_2)
}

/// The density at `z`.
pub(crate) fn normal_density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * PI).sqrt()
}

/// The z with P(Z > z) = `tail`, for a tail strictly between 0 and 1; NaN otherwise.
pub(crate) fn normal_critical(tail: f64) -> f64 {
    if !(tail > 0.0 && tail < 1.0) {
        return f64::NAN;
    }
    // The tail falls, and 40 lies beyond the smallest f64.
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if normal_tail(middle) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

fn complementary_error(x: f64) -> f64 {
    if x.is_nan() {
        return f64::NAN;
    }
    if x < 0.0 {
        return 2.0 - complementary_error(-x);
    }
    let front = (-x * x).exp() / PI.sqrt();
    if x < SERIES_BELOW {
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            term *= 2.0 * x * x / f64::from(2 * n + 1);
            sum += term;
            if term < 1e-17 * sum {
                break;
            }
        }
        return 1.0 - 2.0 * front * sum;
    }
    // Evaluated from the inside out: 50 levels exceed the precision of f64 from 2 on.
    let fraction = (1..50).rev().fold(x, |inner, n| x + 0.5 * f64::from(n) / inner);
    front / fraction
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{ContinuousCDF, Normal};

    #[test]
    fn tails_and_critical_values_agree_with_the_oracle() {
        let oracle = Normal::standard();
        for step in -60..=60 {
            let z = f64::from(step) * 0.1;
            let expected = oracle.sf(z);
            assert!((normal_tail(z) - expected).abs() <= 1e-9 * expected, "{z}");
        }
        for tail in [0.4, 0.025, 0.0125, 1e-6, 0.9] {
            assert!((normal_tail(normal_critical(tail)) - tail).abs() < 1e-12 * tail, "{tail}");
        }
        assert!((normal_critical(0.025) - 1.959_963_984_540_054).abs() < 1e-12);
        assert!((normal_density(0.0) - 0.398_942_280_401_432_7).abs() < 1e-15);
    }

    #[test]
    fn far_tails_keep_their_digits() {
        // 1 - Φ(10) = 7.619853024160527e-24 (mpmath).
        assert!((normal_tail(10.0) / 7.619_853_024_160_527e-24 - 1.0).abs() < 1e-12);
        assert!(normal_critical(0.0).is_nan() && normal_tail(f64::NAN).is_nan());
    }
}
