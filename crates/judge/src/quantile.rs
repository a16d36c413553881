//! Quantiles of a few figures, one per round. Percentiles of requests come from histograms.

/// The median: the middle figure, or the mean of the two in the middle. `None` when there is
/// none, or when one is NaN.
pub fn median(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        return Some(sorted[middle]);
    }
    Some(0.5 * (sorted[middle - 1] + sorted[middle]))
}

/// A quantile of sorted figures, between the two nearest (type 7 of R. J. Hyndman and Y. Fan, Am.
/// Statist. 50, 1996). `None` when there is none.
pub(crate) fn quantile_of_sorted(sorted: &[f64], quantile: f64) -> Option<f64> {
    let place = quantile.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
    let (below, part) = (place.floor() as usize, place.fract());
    let above = sorted.get(below + 1).unwrap_or(&sorted[below]);
    Some(sorted[below] + part * (above - sorted[below]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_even_and_none() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, f64::NAN]), None);
    }
}
