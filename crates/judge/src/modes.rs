//! Bimodality: whether figures fall into two groups, two states of the system and not noise about
//! one.
//!
//! One binary that runs at two speeds (both ends of a connection on one core or on two, a lucky or
//! an unlucky memory layout) has no "typical" speed, and its mean is a figure that never occurs.
//! The sorted figures are cut where the squares within both parts are least (W. D. Fisher, J. Am.
//! Statist. Assoc. 53, 1958), and the parts count as two modes when Ashman's D between them is
//! large (K. M. Ashman, C. M. Bird and S. E. Zepf, Astron. J. 108, 1994): D > 2 is their bound for
//! a clean separation of two known groups. Here the cut itself makes the parts look apart, which
//! is why the bound is higher: [`MIN_SEPARATION`] was chosen so that fewer than one in a
//! thousand samples of plain normal noise is called two modes, which a test checks.

use crate::interval::{logs, mean_and_variance};

/// Minimum number of figures.
const MIN_FIGURES: usize = 5;

/// Number of figures from which modes may lie near each other.
const FIGURES_MANY: usize = 12;

/// Minimum share of the figures in either mode; fewer are outliers, not a mode.
const MIN_SHARE: f64 = 0.2;

/// Ashman's D from which the parts are modes.
const MIN_SEPARATION: f64 = 7.5;

/// Minimum relative distance of modes: 0.05 is 5 %.
const MIN_DISTANCE: f64 = 0.05;

/// The same two bounds for few figures, which noise splits in two more easily: modes of which the
/// upper is twice the lower. Held to one in a thousand as well, for noise of up to 30 %.
const SEPARATION_OF_FEW: f64 = 16.0;
const DISTANCE_OF_FEW: f64 = 1.0;

/// Two modes of positive figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Modes {
    /// The lower one: the geometric mean of its figures.
    pub low: f64,
    /// The upper one.
    pub high: f64,
    /// Figures in the lower one.
    pub low_count: usize,
    /// Figures in the upper one.
    pub high_count: usize,
}

/// Returns the two modes of these figures; `None` when they have one, or a figure isn't positive.
pub fn two_modes(figures: &[f64]) -> Option<Modes> {
    let mut logs = logs(figures).filter(|logs| logs.len() >= MIN_FIGURES)?;
    logs.sort_by(f64::total_cmp);
    let cut = best_cut(&logs);
    let (low, high) = logs.split_at(cut);
    let fewer = low.len().min(high.len());
    let share = fewer as f64 / logs.len() as f64;
    let ((low_mean, low_variance), (high_mean, high_variance)) =
        (mean_and_variance(low), mean_and_variance(high));
    let distance = high_mean - low_mean;
    let separation = 2.0_f64.sqrt() * distance / (low_variance + high_variance).sqrt();
    let (distance_least, separation_least) = match logs.len() < FIGURES_MANY {
        true => (DISTANCE_OF_FEW, SEPARATION_OF_FEW),
        false => (MIN_DISTANCE, MIN_SEPARATION),
    };
    // A single outlier is no mode.
    let apart = share >= MIN_SHARE
        && fewer > 1
        && distance >= distance_least.ln_1p()
        && separation >= separation_least;
    apart.then(|| Modes {
        low: low_mean.exp(),
        high: high_mean.exp(),
        low_count: low.len(),
        high_count: high.len(),
    })
}

/// Where to cut sorted values so that the sum of squares within both parts is least.
fn best_cut(sorted: &[f64]) -> usize {
    let all: f64 = sorted.iter().sum();
    let count = sorted.len() as f64;
    let mut sum = 0.0;
    let mut best = (f64::NEG_INFINITY, 1);
    for (place, value) in sorted.iter().enumerate().take(sorted.len() - 1) {
        sum += value;
        let left = (place + 1) as f64;
        // Least squares within is most squares between, which the sums alone give.
        let between = sum * sum / left + (all - sum).powi(2) / (count - left);
        if between > best.0 {
            best = (between, place + 1);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn two_speeds_of_one_binary_are_named_with_their_shares() {
        let mut random = Random::new(3);
        let mut speed = |place: usize| {
            let level = if place.is_multiple_of(3) { 145e3 } else { 1.01e6 };
            level * (0.05 * random.normal()).exp()
        };
        let figures: Vec<f64> = (0..15).map(&mut speed).collect();
        let modes = two_modes(&figures).unwrap();
        assert_eq!((modes.low_count, modes.high_count), (5, 10));
        assert!((modes.high / modes.low - 7.0).abs() < 0.7, "{modes:?}");
        // So great a factor shows in five rounds, too, but not by one odd round of them.
        let five = [1.01e6, 145e3, 0.98e6, 151e3, 1.03e6];
        assert_eq!(two_modes(&five).map(|modes| (modes.low_count, modes.high_count)), Some((2, 3)));
        assert_eq!(two_modes(&[1.01e6, 145e3, 0.98e6, 1.0e6, 1.03e6]), None);
    }

    #[test]
    fn plain_noise_outliers_and_small_steps_are_one_mode() {
        let mut random = Random::new(11);
        let noises = [(5, 0.3), (8, 0.3), (11, 0.3), (12, 0.1), (20, 0.1), (40, 0.1), (100, 0.1)];
        for (count, noise) in noises {
            let sample = |random: &mut Random| -> Vec<f64> {
                (0..count).map(|_| (noise * random.normal()).exp()).collect()
            };
            let wrong = (0..4_000).filter(|_| two_modes(&sample(&mut random)).is_some()).count();
            assert!(wrong <= 4, "{wrong} of 4000 samples of {count}");
        }
        let mut outlier = vec![1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.01, 0.99, 1.0, 1.0];
        outlier.push(7.0);
        assert_eq!(two_modes(&outlier), None);
        assert_eq!(two_modes(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.02, 1.02, 1.02, 1.02, 1.02]), None);
        assert_eq!(two_modes(&[1.0; 9]), None);
        assert_eq!(two_modes(&[0.0; 20]), None);
    }
}
