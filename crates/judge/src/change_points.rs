//! Change points: where a series of figures over commits changed for good.
//!
//! E-divisive finds the cut that makes two parts differ most in their distribution (D. S. Matteson
//! and N. A. James, J. Am. Statist. Assoc. 109, 2014, with exponent 1), here with Student's t test
//! in place of permutations, in sliding windows, and with a second pass that removes weak
//! points ("Hunter", M. Fleming and others, ICPE 2023): no chance is involved, so the same series
//! always has the same points. A test holds the points to those of apache-otava, and to the steps
//! that asv finds.
//!
//! It differs from otava in two things: the t test has the sample's variance, not the population's,
//! which would find changes in a handful of figures too easily; and when a weak point is removed,
//! both of its neighbours are judged again.

use crate::student::t_two_sided_tail;

/// How change points are searched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hunt {
    /// Figures per window; windows overlap by half.
    pub window: usize,
    /// Maximum p-value of a change point.
    pub p_value: f64,
    /// Minimum relative change: 0.02 is 2 %.
    pub least_change: f64,
    /// Minimum number of figures on either side of a change point: a single outlier is no change.
    pub least_segment: usize,
}

impl Default for Hunt {
    fn default() -> Self {
        Self { window: 50, p_value: 0.001, least_change: 0.0, least_segment: 2 }
    }
}

/// A lasting change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// The first figure after the change.
    pub index: usize,
    /// The mean from the change before (or the start) to this one.
    pub before: f64,
    /// The mean from this one to the next (or the end).
    pub after: f64,
    /// Student's two-sided p-value of the two parts.
    pub p_value: f64,
}

impl ChangePoint {
    /// The greater of the relative changes forward and backward.
    fn magnitude(&self) -> f64 {
        let relative = |a: f64, b: f64| if b == 0.0 { 0.0 } else { (a / b - 1.0).abs() };
        relative(self.after, self.before).max(relative(self.before, self.after))
    }
}

/// Returns every change point of a series, in order; none when a figure isn't finite.
pub fn change_points(series: &[f64], hunt: &Hunt) -> Vec<ChangePoint> {
    if series.iter().any(|figure| !figure.is_finite()) || hunt.window < 2 {
        return Vec::new();
    }
    let places = split(series, hunt);
    merge(series, places, hunt)
}

/// The p-value of the first pass, which only proposes candidates.
fn first_pass(p_value: f64) -> f64 {
    match p_value {
        p if p < 0.05 => p * 10.0,
        p if p < 0.5 => p * 2.0,
        p => p,
    }
}

/// Candidates of all windows.
fn split(series: &[f64], hunt: &Hunt) -> Vec<usize> {
    let (mut start, step) = (0, hunt.window / 2);
    let mut places: Vec<usize> = Vec::new();
    while start < series.len() {
        let end = (start + hunt.window).min(series.len());
        let found = divide(&series[start..end], hunt);
        let last = found.last().map_or(0, |place| place + start);
        places.extend(found.iter().map(|place| place + start));
        start = last.max(start + step);
    }
    places.sort_unstable();
    places.dedup();
    places
}

/// E-divisive in one window: the best cut of all parts, again and again, while it is significant.
fn divide(window: &[f64], hunt: &Hunt) -> Vec<usize> {
    let mut places: Vec<usize> = Vec::new();
    loop {
        let mut best: Option<(f64, usize, usize, usize)> = None;
        for (start, end) in parts(&places, window.len()) {
            let Some((q, cut)) = best_cut(&window[start..end], hunt.least_segment) else {
                continue;
            };
            if best.is_none_or(|(most, ..)| q > most) {
                best = Some((q, start, start + cut, end));
            }
        }
        let Some((_, start, cut, end)) = best else { return places };
        let change = compare(&window[start..cut], &window[cut..end], cut);
        if change.p_value > first_pass(hunt.p_value) || change.p_value.is_nan() {
            return places;
        }
        places.push(cut);
        places.sort_unstable();
    }
}

/// The parts between change points.
fn parts(places: &[usize], length: usize) -> Vec<(usize, usize)> {
    let starts = std::iter::once(0).chain(places.iter().copied());
    let ends = places.iter().copied().chain(std::iter::once(length));
    starts.zip(ends).filter(|(start, end)| start < end).collect()
}

/// The cut at which the left part differs most from what follows, up to whatever end makes it
/// differ most: the largest Q(τ, κ) and its τ.
fn best_cut(part: &[f64], least_segment: usize) -> Option<(f64, usize)> {
    let least = least_segment.max(1);
    let mut best: Option<(f64, usize)> = None;
    // Σ of distances within the left part, which grows with the cut.
    let mut within_left = 0.0;
    for cut in 1..part.len() {
        let newest = part[cut - 1];
        within_left += part[..cut - 1].iter().map(|value| (value - newest).abs()).sum::<f64>();
        if cut < least || part.len() - cut < least {
            continue;
        }
        let (mut within_right, mut across) = (0.0, 0.0);
        for end in cut + 1..=part.len() {
            let newest = part[end - 1];
            let distance =
                |values: &[f64]| -> f64 { values.iter().map(|value| (value - newest).abs()).sum() };
            within_right += distance(&part[cut..end - 1]);
            across += distance(&part[..cut]);
            let (left, right) = (cut as f64, (end - cut) as f64);
            let all = left + right;
            let spread = |within: f64, own: f64, other: f64| match own > 1.0 {
                true => 2.0 * other / all / (own - 1.0) * within,
                false => 0.0,
            };
            let q = 2.0 / all * across
                - spread(within_left, left, right)
                - spread(within_right, right, left);
            if best.is_none_or(|(most, _)| q > most) {
                best = Some((q, cut));
            }
        }
    }
    best
}

/// Removes the weakest point until all are strong enough.
fn merge(series: &[f64], mut places: Vec<usize>, hunt: &Hunt) -> Vec<ChangePoint> {
    loop {
        let bounds = parts(&places, series.len());
        let compared = bounds.windows(2).map(|pair| {
            let ((start, cut), (_, end)) = (pair[0], pair[1]);
            compare(&series[start..cut], &series[cut..end], cut)
        });
        let points: Vec<ChangePoint> = compared.collect();
        let least_likely = points.iter().max_by(|a, b| a.p_value.total_cmp(&b.p_value));
        let smallest = points.iter().min_by(|a, b| a.magnitude().total_cmp(&b.magnitude()));
        let weakest = match (least_likely, smallest) {
            (Some(weakest), _) if weakest.p_value.is_nan() || weakest.p_value >= hunt.p_value => {
                weakest.index
            }
            (_, Some(smallest)) if smallest.magnitude() <= hunt.least_change => smallest.index,
            _ => return points,
        };
        places.retain(|place| *place != weakest);
    }
}

/// The two parts with Student's t test of equal variances.
fn compare(left: &[f64], right: &[f64], index: usize) -> ChangePoint {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (before, after) = (mean(left), mean(right));
    let squares = |values: &[f64], mean: f64| -> f64 {
        values.iter().map(|value| (value - mean).powi(2)).sum()
    };
    let (n, m) = (left.len() as f64, right.len() as f64);
    let degrees = n + m - 2.0;
    if degrees <= 0.0 {
        return ChangePoint { index, before, after, p_value: 1.0 };
    }
    let pooled = (squares(left, before) + squares(right, after)) / degrees;
    let error = (pooled * (1.0 / n + 1.0 / m)).sqrt();
    let p_value = match (error > 0.0, before == after) {
        (true, _) => t_two_sided_tail((before - after) / error, degrees),
        (false, true) => 1.0,
        (false, false) => 0.0,
    };
    ChangePoint { index, before, after, p_value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn series(random: &mut Random, levels: &[(usize, f64)]) -> Vec<f64> {
        let mut part = |(count, level): &(usize, f64)| -> Vec<f64> {
            (0..*count).map(|_| level + random.normal()).collect()
        };
        levels.iter().flat_map(&mut part).collect()
    }

    fn places(series: &[f64], hunt: &Hunt) -> Vec<usize> {
        change_points(series, hunt).iter().map(|point| point.index).collect()
    }

    #[test]
    fn planted_steps_of_five_deviations_are_found_within_one() {
        let (mut random, mut extra) = (Random::new(1), 0);
        for _ in 0..60 {
            let lengths = [5 + random.below(20), 5 + random.below(20), 5 + random.below(20)];
            let levels = [(lengths[0], 100.0), (lengths[1], 105.5), (lengths[2], 111.0)];
            let series = series(&mut random, &levels);
            let found = places(&series, &Hunt::default());
            for planted in [lengths[0], lengths[0] + lengths[1]] {
                let near = found.iter().any(|place| place.abs_diff(planted) <= 1);
                assert!(near, "{planted} not in {found:?}");
            }
            extra += found.len() - 2;
        }
        assert!(extra <= 3, "{extra} points that were not planted in 60 series");
    }

    #[test]
    fn plain_noise_has_hardly_any_change_points() {
        let mut random = Random::new(2);
        let wrong: usize = (0..100)
            .map(|_| places(&series(&mut random, &[(60, 100.0)]), &Hunt::default()).len())
            .sum();
        assert!(wrong <= 6, "{wrong} in 6,000 figures");
    }

    #[test]
    fn one_odd_figure_is_no_change_for_good() {
        let mut spike: Vec<f64> = (0..20).map(|n| 100.0 + f64::from(n % 3) * 0.1).collect();
        spike[10] = 140.0;
        assert_eq!(places(&spike, &Hunt::default()), [0_usize; 0]);
        assert_eq!(places(&[1.0; 30], &Hunt::default()), [0_usize; 0]);
        assert_eq!(places(&[], &Hunt::default()), [0_usize; 0]);
        assert_eq!(places(&[1.0, f64::NAN, 2.0], &Hunt::default()), [0_usize; 0]);
    }

    #[test]
    fn a_step_without_noise_is_certain_and_small_ones_can_be_left_out() {
        let mut step = vec![100.0; 10];
        step.extend([101.0; 10]);
        let found = change_points(&step, &Hunt::default());
        assert_eq!((found[0].index, found[0].before, found[0].after), (10, 100.0, 101.0));
        assert_eq!(found[0].p_value, 0.0);
        let large = Hunt { least_change: 0.02, ..Hunt::default() };
        assert_eq!(change_points(&step, &large), []);
    }
}
