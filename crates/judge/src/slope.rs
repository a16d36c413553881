//! The slope of a series over time, by least squares, with Student's interval (e.g. Draper and
//! Smith, Applied Regression Analysis, 3rd edition, section 1.4).

use crate::student::t_critical;

/// A slope with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slope {
    /// The growth of y per unit of x.
    pub slope: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The slope of the points (x, y); `None` with fewer than three, or when all have one x.
pub fn slope(points: &[(f64, f64)], confidence: f64) -> Option<Slope> {
    let count = points.len() as f64;
    if points.len() < 3 {
        return None;
    }
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
    let square: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let product: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    if square <= 0.0 {
        return None;
    }
    let slope = product / square;
    let rest: f64 = points.iter().map(|(x, y)| (y - mean_y - slope * (x - mean_x)).powi(2)).sum();
    let degrees = count - 2.0;
    let half = t_critical(confidence, degrees) * (rest / degrees / square).sqrt();
    Some(Slope { slope, low: slope - half, high: slope + half })
}

#[test]
fn a_line_has_its_own_slope_and_noise_widens_the_interval() {
    let line: Vec<_> = (0..10).map(|x| (f64::from(x), 3.0 + 2.0 * f64::from(x))).collect();
    let found = slope(&line, 0.99).unwrap();
    assert!((found.slope - 2.0).abs() < 1e-9 && (found.high - found.low) < 1e-6);
    // R: confint(lm(c(1, 3, 2, 5, 4) ~ c(1, 2, 3, 4, 5))) gives [-0.302, 1.902] at 95 %.
    let noisy = [(1.0, 1.0), (2.0, 3.0), (3.0, 2.0), (4.0, 5.0), (5.0, 4.0)];
    let found = slope(&noisy, 0.95).unwrap();
    assert!((found.slope - 0.8).abs() < 1e-9);
    assert!((found.low + 0.302).abs() < 2e-3 && (found.high - 1.902).abs() < 2e-3, "{found:?}");
    assert_eq!(slope(&noisy[..2], 0.95), None);
    assert_eq!(slope(&[(1.0, 1.0); 5], 0.95), None);
}
