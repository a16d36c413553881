//! The knee of a curve: where more load begins to cost more than it brings.
//!
//! Kneedle (V. Satopää, J. Albrecht, D. Irwin and B. Raghavan, "Finding a kneedle in a haystack",
//! ICDCS workshops 2011): both axes are scaled to 0..1, and the knee of a rising convex curve is
//! the point furthest below the diagonal.

/// Minimum number of points of a curve that has a knee.
const MIN_POINTS: usize = 5;

/// Minimum depth of a knee below the diagonal; noise about a straight line stays above.
const MIN_DEPTH: f64 = 0.2;

/// Minimum rise of the latency beyond a knee, as a factor.
const MIN_RISE: f64 = 2.0;

/// Returns the load at the knee of these (load, latency) points, in any order. `None` when there
/// are fewer than five, or when the curve has none.
pub fn knee(points: &[(f64, f64)]) -> Option<f64> {
    if points.len() < MIN_POINTS || points.iter().any(|(x, y)| !x.is_finite() || !y.is_finite()) {
        return None;
    }
    let range = |of: fn(&(f64, f64)) -> f64| {
        let values = || points.iter().map(of);
        (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max))
    };
    let ((x_least, x_most), (y_least, y_most)) = (range(|point| point.0), range(|point| point.1));
    let depth = |(x, y): &(f64, f64)| {
        (x - x_least) / (x_most - x_least) - (y - y_least) / (y_most - y_least)
    };
    let deepest = points.iter().max_by(|a, b| depth(a).total_cmp(&depth(b)))?;
    let rises = points.iter().any(|(x, y)| *x > deepest.0 && *y >= MIN_RISE * deepest.1);
    (rises && depth(deepest) >= MIN_DEPTH).then_some(deepest.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_has_its_knee_before_it_is_full_and_a_line_has_none() {
        // M/M/1: the latency is 1/(1 - load).
        let queue: Vec<(f64, f64)> =
            (1..=19).map(|n| f64::from(n) * 0.05).map(|load| (load, 1.0 / (1.0 - load))).collect();
        let found = knee(&queue).unwrap();
        assert!((0.7..0.9).contains(&found), "{found}");
        let line: Vec<(f64, f64)> = (1..=9).map(|n| (f64::from(n), f64::from(n))).collect();
        assert_eq!(knee(&line), None);
        assert_eq!(knee(&queue[..4]), None);
        assert_eq!(knee(&[(1.0, 1.0); 6]), None);
        let falling: Vec<(f64, f64)> =
            (1..=9).map(|n| (f64::from(n), 2.0 / f64::from(n))).collect();
        assert_eq!(knee(&falling), None);
    }
}
