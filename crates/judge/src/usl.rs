//! The Universal Scalability Law: how throughput grows with connections or threads.
//!
//! X(N) = γN / (1 + α(N−1) + βN(N−1)): γ is what one brings, α the part that waits in line
//! (contention), β the cost of agreeing (coherency), which makes throughput fall again beyond
//! N* = √((1−α)/β) (N. J. Gunther, "Guerrilla Capacity Planning", 2007, chapters 4 to 6).
//!
//! N/X is linear in 1/γ, α/γ and β/γ, so the fit is weighted linear least squares with errors
//! relative to X, and with α and β not below 0: a negative one is dropped and the rest fitted
//! again. Intervals come from resampling the rounds of each N (bootstrap). A fit is refused when
//! there are fewer than six N, and when the points deviate systematically from the law: the lack of
//! fit against the spread between rounds (F test, N. R. Draper and H. Smith, "Applied Regression
//! Analysis", section 2.1) together with residuals that matter.

use crate::bootstrap::bootstrap;
use crate::random::Random;
use crate::student::f_upper_tail;

/// Different N that a fit needs.
pub const MIN_POINTS: usize = 6;

/// The lack of fit rejects the law only when residuals are larger than this,
const MAX_RESIDUAL: f64 = 0.03;

/// and when its p-value is below this.
const LACK_OF_FIT_P: f64 = 0.01;

/// What was measured at one N: one throughput per round.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    /// Connections or threads.
    pub n: f64,
    /// Throughput in each round.
    pub rates: Vec<f64>,
}

/// A coefficient with the ends of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The fitted value.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// A fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scalability {
    /// Throughput of one, in the unit of the rates.
    pub gamma: Estimate,
    /// Contention, 0 to 1.
    pub alpha: Estimate,
    /// Coherency.
    pub beta: Estimate,
    /// Where throughput peaks; infinite without coherency.
    pub peak: Estimate,
    /// The throughput there; without coherency what it approaches, and infinite without both.
    pub peak_rate: f64,
    /// The largest relative residual of the mean at one N.
    pub residual: f64,
}

/// Why there is no fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unfit {
    /// Fewer than [`MIN_POINTS`] different N.
    TooFew(usize),
    /// The points deviate systematically from the law: the largest relative residual.
    Pattern(f64),
    /// The points have no solution, as with throughput that isn't positive.
    NoSolution,
}

/// Fits the law. The caller leaves out points at which something other than the service was
/// saturated, and points with fewer rounds than the others.
///
/// # Errors
/// Why the points don't fit it.
pub fn fit(points: &[Scale], confidence: f64) -> Result<Scalability, Unfit> {
    let fit_for = |rate: &f64| *rate > 0.0 && rate.is_finite();
    if points.len() < MIN_POINTS {
        return Err(Unfit::TooFew(points.len()));
    }
    if points.iter().any(|point| point.rates.is_empty() || !point.rates.iter().all(fit_for)) {
        return Err(Unfit::NoSolution);
    }
    let whole = solve(points).ok_or(Unfit::NoSolution)?;
    let residual = points.iter().map(|point| relative(&whole, point).abs()).fold(0.0, f64::max);
    if residual > MAX_RESIDUAL && lack_of_fit(points, &whole) < LACK_OF_FIT_P {
        return Err(Unfit::Pattern(residual));
    }
    let estimate = |of: &dyn Fn(&Law) -> f64| {
        let drawn = bootstrap(2, confidence, |random| Some(of(&solve(&drawn(points, random))?)));
        let value = of(&whole);
        let (low, high) = drawn.unwrap_or((f64::NAN, f64::NAN));
        Estimate { value, low: low.min(value), high: high.max(value) }
    };
    Ok(Scalability {
        gamma: estimate(&|law| law.gamma),
        alpha: estimate(&|law| law.alpha),
        beta: estimate(&|law| law.beta),
        peak: estimate(&|law| law.peak()),
        peak_rate: whole.peak_rate(),
        residual,
    })
}

/// The three coefficients.
struct Law {
    gamma: f64,
    alpha: f64,
    beta: f64,
}

impl Law {
    fn rate(&self, n: f64) -> f64 {
        self.gamma * n / (1.0 + self.alpha * (n - 1.0) + self.beta * n * (n - 1.0))
    }

    fn peak(&self) -> f64 {
        match self.beta > 0.0 {
            true => ((1.0 - self.alpha).max(0.0) / self.beta).sqrt().max(1.0),
            false => f64::INFINITY,
        }
    }

    fn peak_rate(&self) -> f64 {
        match (self.beta > 0.0, self.alpha > 0.0) {
            (true, _) => self.rate(self.peak()),
            (false, true) => self.gamma / self.alpha,
            (false, false) => f64::INFINITY,
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The relative residual of the mean at one N.
fn relative(law: &Law, point: &Scale) -> f64 {
    mean(&point.rates) / law.rate(point.n) - 1.0
}

fn drawn(points: &[Scale], random: &mut Random) -> Vec<Scale> {
    let draw = |point: &Scale| {
        let pick = |_| point.rates[random.below(point.rates.len())];
        Scale { n: point.n, rates: (0..point.rates.len()).map(pick).collect() }
    };
    points.iter().map(draw).collect()
}

/// The law with α and β not below 0.
fn solve(points: &[Scale]) -> Option<Law> {
    // Which of α and β may differ from 0; the first without a negative one is the best.
    for (alpha, beta) in [(true, true), (true, false), (false, true), (false, false)] {
        let Some(law) = least_squares(points, alpha, beta) else { continue };
        if law.gamma > 0.0 && law.alpha >= 0.0 && law.beta >= 0.0 && law.alpha <= 1.0 {
            return Some(law);
        }
    }
    None
}

/// Weighted linear least squares of N/X = c₀ + c₁(N−1) + c₂N(N−1), with errors relative to N/X.
fn least_squares(points: &[Scale], with_alpha: bool, with_beta: bool) -> Option<Law> {
    let mut used = vec![0];
    used.extend(with_alpha.then_some(1));
    used.extend(with_beta.then_some(2));
    let mut normal = vec![vec![0.0; used.len() + 1]; used.len()];
    for point in points {
        let all = [1.0, point.n - 1.0, point.n * (point.n - 1.0)];
        for rate in &point.rates {
            let left = point.n / rate;
            let row: Vec<f64> = used.iter().map(|column| all[*column] / left).collect();
            for (i, equation) in normal.iter_mut().enumerate() {
                for (j, value) in row.iter().enumerate() {
                    equation[j] += row[i] * value;
                }
                equation[row.len()] += row[i];
            }
        }
    }
    let solution = eliminate(normal)?;
    let mut coefficients = [0.0; 3];
    for (column, value) in used.into_iter().zip(solution) {
        coefficients[column] = value;
    }
    let [first, second, third] = coefficients;
    Some(Law { gamma: 1.0 / first, alpha: second / first, beta: third / first })
}

/// Gaussian elimination with pivoting; the last column is the right side.
fn eliminate(mut rows: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let size = rows.len();
    for column in 0..size {
        let pivot = (column..size)
            .max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs()))?;
        rows.swap(column, pivot);
        let scale = rows[column][column];
        if scale.abs() < f64::MIN_POSITIVE || !scale.is_finite() {
            return None;
        }
        let above = rows[column].clone();
        for row in rows.iter_mut().skip(column + 1) {
            let factor = row[column] / scale;
            row.iter_mut().zip(&above).for_each(|(value, above)| *value -= factor * above);
        }
    }
    let mut solution = vec![0.0; size];
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|column| rows[row][column] * solution[column]).sum();
        solution[row] = (rows[row][size] - known) / rows[row][row];
    }
    Some(solution)
}

/// The p-value of the residuals of the means, given the spread between rounds; 0 without a spread.
fn lack_of_fit(points: &[Scale], law: &Law) -> f64 {
    let all: usize = points.iter().map(|point| point.rates.len()).sum();
    let (fitted, own) = (points.len() - 3, all - points.len());
    let off: f64 =
        points.iter().map(|one| one.rates.len() as f64 * relative(law, one).powi(2)).sum();
    let spread = |point: &Scale| {
        let middle = mean(&point.rates);
        point.rates.iter().map(|rate| ((rate - middle) / middle).powi(2)).sum::<f64>()
    };
    let pure: f64 = points.iter().map(spread).sum();
    if own == 0 || pure <= 0.0 {
        return 0.0;
    }
    f_upper_tail((off / fitted as f64) / (pure / own as f64), fitted as f64, own as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 24.0, 32.0, 48.0];

    fn points(law: &Law, noise: f64, seed: u64) -> Vec<Scale> {
        let mut random = Random::new(seed);
        let mut at = |n: f64| {
            let rates = (0..5).map(|_| law.rate(n) * (noise * random.normal()).exp()).collect();
            Scale { n, rates }
        };
        SIZES.iter().map(|n| at(*n)).collect()
    }

    #[test]
    fn a_law_without_noise_is_found_again() {
        let law = Law { gamma: 1_000.0, alpha: 0.05, beta: 0.000_5 };
        let found = fit(&points(&law, 0.0, 1), 0.95).unwrap();
        assert!((found.gamma.value - 1_000.0).abs() < 1e-6, "{found:?}");
        assert!((found.alpha.value - 0.05).abs() < 1e-9 && (found.beta.value - 5e-4).abs() < 1e-9);
        assert!((found.peak.value - (0.95_f64 / 5e-4).sqrt()).abs() < 1e-6);
    }

    #[test]
    fn the_intervals_cover_the_law_as_often_as_they_say() {
        let law = Law { gamma: 1_000.0, alpha: 0.05, beta: 0.000_5 };
        let covered = (0..40).filter(|seed| {
            let found = fit(&points(&law, 0.02, 100 + seed), 0.95).unwrap();
            found.alpha.low <= 0.05 && 0.05 <= found.alpha.high
        });
        let covered = covered.count();
        assert!(covered >= 32, "{covered} of 40");
    }

    #[test]
    fn linear_growth_has_no_peak() {
        let found =
            fit(&points(&Law { gamma: 10.0, alpha: 0.0, beta: 0.0 }, 0.0, 1), 0.95).unwrap();
        assert!(found.alpha.value < 1e-9 && found.beta.value < 1e-9, "{found:?}");
        let found =
            fit(&points(&Law { gamma: 10.0, alpha: 0.1, beta: 0.0 }, 0.0, 1), 0.95).unwrap();
        assert!((found.peak_rate - 100.0).abs() < 1e-6 || found.peak.value > 1e3, "{found:?}");
    }

    #[test]
    fn points_that_dont_carry_the_law_are_refused() {
        let law = Law { gamma: 1_000.0, alpha: 0.05, beta: 0.000_5 };
        let all = points(&law, 0.01, 3);
        assert_eq!(fit(&all[..5], 0.95), Err(Unfit::TooFew(5)));
        // A plateau with a sudden step: the generator's limit, or another machine.
        let mut stepped = all.clone();
        for point in &mut stepped[4..] {
            point.rates.iter_mut().for_each(|rate| *rate *= 0.4);
        }
        assert!(matches!(fit(&stepped, 0.95), Err(Unfit::Pattern(_))));
        let mut dead = all;
        dead[0].rates[0] = 0.0;
        assert_eq!(fit(&dead, 0.95), Err(Unfit::NoSolution));
    }
}
