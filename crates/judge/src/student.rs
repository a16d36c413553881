//! Student's t distribution: the two-sided tail and the critical value.
//!
//! Both follow from the regularised incomplete beta function, because for T with ν degrees of
//! freedom P(|T| > t) = I_x(ν/2, 1/2) with x = ν / (ν + t²) (Abramowitz & Stegun, 26.7.1). The
//! function is evaluated by its continued fraction with the modified Lentz method (Press et al.,
//! Numerical Recipes, 6.4), the gamma function by Lanczos' approximation (g = 7, n = 9). The
//! tests hold the results against `statrs` to 1e-8.

/// Maximum number of terms of the continued fraction. It converges in O(√max(a, b))
/// terms, so this covers degrees of freedom far beyond any number of rounds.
const FRACTION_TERMS_MAX: u32 = 10_000;

/// Newton steps towards a critical value. Far out in the tail of one degree of freedom a step
/// only doubles the value, so even the largest f64 is reached within this many.
const STEPS_MAX: u32 = 1_100;

/// P(|T| > |t|) for Student's t with `degrees` degrees of freedom: the two-sided p-value.
///
/// `degrees` must be positive; NaN comes back for anything else, and for a NaN `t`.
pub fn t_two_sided_tail(t: f64, degrees: f64) -> f64 {
    if t.is_nan() || degrees.is_nan() || degrees <= 0.0 {
        return f64::NAN;
    }
    if t.is_infinite() {
        return 0.0;
    }
    // Both x and 1 - x are formed directly, as neither may lose its digits to a subtraction.
    let denominator = degrees + t * t;
    regularised_beta(degrees / 2.0, 0.5, degrees / denominator, t * t / denominator)
}

/// The t beyond which, on both sides together, lies `1 - confidence` of the distribution:
/// `t_critical(0.95, 4.0)` is 2.776.
///
/// `confidence` lies strictly between 0 and 1 and `degrees` above 0; NaN otherwise.
pub fn t_critical(confidence: f64, degrees: f64) -> f64 {
    let tail = 1.0 - confidence;
    if !(tail > 0.0 && tail < 1.0 && degrees > 0.0) {
        return f64::NAN;
    }
    // The tail falls and is convex for t > 0, so Newton's method started at 0 climbs towards the
    // root from below and never passes it: no bracket is needed.
    let log_peak = ln_gamma(0.5 * (degrees + 1.0))
        - ln_gamma(0.5 * degrees)
        - 0.5 * (std::f64::consts::PI * degrees).ln();
    let mut t = 0.0_f64;
    for _ in 0..STEPS_MAX {
        let density = (log_peak - 0.5 * (degrees + 1.0) * (t * t / degrees).ln_1p()).exp();
        let step = (t_two_sided_tail(t, degrees) - tail) / (2.0 * density);
        t += step;
        // Below the last digit only rounding moves it; a step back can be nothing else either.
        if step.is_nan() || step <= 1e-15 * t {
            break;
        }
    }
    t
}

/// P(F > f) for Fisher's F with these degrees of freedom (Abramowitz & Stegun, 26.6.2).
pub(crate) fn f_upper_tail(f: f64, above: f64, below: f64) -> f64 {
    let denominator = below + above * f;
    regularised_beta(below / 2.0, above / 2.0, below / denominator, above * f / denominator)
}

/// I_x(a, b), with `y` = 1 - x given by the caller.
pub(crate) fn regularised_beta(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if y <= 0.0 {
        return 1.0;
    }
    let log_front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * y.ln();
    let front = log_front.exp();
    // The fraction converges fast only below the mean; above it the symmetric one does.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, y) / b
    }
}

/// The continued fraction of the incomplete beta function (Numerical Recipes, `betacf`).
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let away_from_zero = |v: f64| if v.abs() < f64::MIN_POSITIVE { f64::MIN_POSITIVE } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for term in 1..=FRACTION_TERMS_MAX {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        let step = d * c;
        fraction *= step;
        if (step - 1.0).abs() < 1e-16 {
            break;
        }
    }
    fraction
}

/// ln Γ(z) for z > 0, by Lanczos' approximation; about 15 digits.
fn ln_gamma(z: f64) -> f64 {
    const COEFFICIENTS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if z < 0.5 {
        // Reflection keeps small arguments accurate; only 0 < z < 0.5 comes here.
        let pi = std::f64::consts::PI;
        return (pi / (pi * z).sin()).ln() - ln_gamma(1.0 - z);
    }
    let z = z - 1.0;
    let base = z + 7.5;
    let mut sum = 0.999_999_999_999_809_9;
    for (offset, coefficient) in (1_u32..).zip(COEFFICIENTS) {
        sum += coefficient / (z + f64::from(offset));
    }
    0.5 * (2.0 * std::f64::consts::PI).ln() + (z + 0.5) * base.ln() - base + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{ContinuousCDF, StudentsT};

    #[test]
    fn critical_values_match_the_published_table() {
        // Two-sided 95 % column of the usual printed table.
        for (degrees, table) in
            [(1.0, 12.706), (2.0, 4.303), (4.0, 2.776), (9.0, 2.262), (30.0, 2.042)]
        {
            assert!((t_critical(0.95, degrees) - table).abs() < 5e-4, "{degrees}");
        }
    }

    #[test]
    fn the_tail_of_f_agrees_with_the_oracle() {
        use statrs::distribution::FisherSnedecor;
        for (above, below) in [(3.0, 20.0), (1.0, 4.0), (10.0, 100.0)] {
            let oracle = FisherSnedecor::new(above, below).unwrap();
            for f in [0.1, 1.0, 3.0, 8.0] {
                assert!((f_upper_tail(f, above, below) - oracle.sf(f)).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn one_degree_of_freedom_is_the_cauchy_closed_form() {
        for t in [0.001, 0.5, 1.0, 7.0, 4_000.0_f64] {
            let closed = 1.0 - 2.0 / std::f64::consts::PI * t.atan();
            assert!((t_two_sided_tail(t, 1.0) - closed).abs() < 1e-12, "{t}");
        }
    }

    #[test]
    fn tail_and_critical_value_agree_with_the_oracle() {
        for degrees in [1.0, 2.0, 3.0, 4.0, 5.0, 11.0, 39.0, 200.0, 5_000.0] {
            let oracle = StudentsT::new(0.0, 1.0, degrees).unwrap();
            for t in [0.0, 1e-3, 0.3, 1.0, 2.2, 5.0, 40.0] {
                let expected = 2.0 * oracle.cdf(-t);
                assert!((t_two_sided_tail(t, degrees) - expected).abs() < 1e-8, "{degrees} {t}");
            }
            for confidence in [0.5, 0.9, 0.95, 0.99, 0.9995] {
                let t = t_critical(confidence, degrees);
                let reached = oracle.cdf(t) - oracle.cdf(-t);
                assert!((reached - confidence).abs() < 1e-8, "{degrees} {confidence}");
            }
        }
    }
}
