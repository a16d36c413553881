//! Group-sequential testing: how strict each look at growing data has to be.
//!
//! A test that looks after every few rounds and stops at the first difference finds one sooner or
//! later where there is none. The remedy is alpha spending (K. K. G. Lan and D. L. DeMets,
//! "Discrete sequential boundaries for clinical trials", Biometrika 70, 1983): the error that the
//! whole comparison may make is spent along the way, here as error × fraction² of the rounds that
//! were planned at most (K. Kim and D. L. DeMets, Biometrika 74, 1987, power family with ρ = 2),
//! which leaves nearly all of it for the end and still stops early at what is obvious. When looks
//! are taken must not depend on the difference seen so far; they are at round numbers fixed here.
//!
//! The boundary of each look follows by recursive integration of the density of the sum of
//! normal increments that was not stopped yet (P. Armitage, C. K. McPherson and B. C. Rowe,
//! J. R. Statist. Soc. A 132, 1969). It is given as a *nominal error*: the two-sided level at
//! which Student's t is used at that look (the significance-level approach of C. Jennison and
//! B. W. Turnbull, "Group Sequential Methods", 2000, section 4.4). The interval at that level is
//! their repeated confidence interval (J. R. Statist. Soc. B 51, 1989): all intervals of all looks
//! hold together with the probability asked for, so it may be read at whatever look is the last.
//!
//! A run that goes on until its interval is tight enough looks, too, and mostly stops long before
//! the most rounds, where spending would have left little. All of its looks have one level, the
//! same from the first to the last (S. J. Pocock, Biometrika 64, 1977), from the same recursion.
//!
//! One design for both was tried. With one level, comparisons of 24 rounds find a difference of 0.6
//! deviations in 55 % of cases in place of 66 %, and those of 60 rounds one of 0.4 in 63 % in place
//! of 76 %. With spending, a run of at most 50 rounds waits 19 in place of 15 for an interval of
//! ±0.8 deviations, and 13 in place of 9 for ±1.2.

use crate::normal::{normal_density, normal_tail};
use crate::verdict::MIN_ROUNDS;

/// Points of the grid on which the density between two looks is kept. Odd, for Simpson's rule.
const GRID: usize = 201;

/// Bisection steps for the common level of all looks: to a few thousandths of itself.
const LEVEL_HALVINGS: u32 = 10;

/// Growth of the number of rounds from one look to the next.
const LOOK_STEP: f64 = 1.25;

/// Returns the numbers of rounds at which a comparison of at most `most` rounds is judged: the
/// first at [`MIN_ROUNDS`], each further by a quarter, the last at `most`.
pub fn looks(most: u32) -> Vec<u32> {
    looks_from(MIN_ROUNDS as u32, most)
}

/// The same with another first look.
pub fn looks_from(least: u32, most: u32) -> Vec<u32> {
    let mut looks = Vec::new();
    let mut next = least.max(1);
    while next < most {
        looks.push(next);
        next = next.max((f64::from(next) * LOOK_STEP).ceil() as u32);
    }
    looks.push(most);
    looks
}

/// The nominal two-sided error of each look at `rounds` (rising) of at most `most`, so that all
/// looks together err with the probability `error` at most. Each lies between 0 and `error`.
///
/// The error of a look depends on those before it only, so more may be added at the end: one at an
/// unplanned number of rounds spends what its fraction allots. `None` when
/// `rounds` doesn't rise, passes `most`, or begins at 0, or when `error` isn't between 0 and 1.
pub fn nominal_errors(rounds: &[u32], most: u32, error: f64) -> Option<Vec<f64>> {
    let rises = rounds.windows(2).all(|pair| pair[0] < pair[1]);
    let within = rounds.first().is_none_or(|first| *first > 0)
        && rounds.last().is_none_or(|last| *last <= most);
    let is_share = error > 0.0 && error < 1.0;
    if !(rises && within && is_share) {
        return None;
    }
    let spent = |rounds: u32| error * (f64::from(rounds) / f64::from(most)).powi(2);
    let mut nominal = Vec::with_capacity(rounds.len());
    let mut density: Option<Density> = None;
    let (mut before, mut spent_before) = (0, 0.0);
    for look in rounds {
        let step = f64::from(look - before).sqrt();
        let share = spent(*look) - spent_before;
        let boundary = boundary(density.as_ref(), step, share);
        nominal.push(2.0 * normal_tail(boundary / f64::from(*look).sqrt()));
        density = Some(Density::after(density.as_ref(), step, boundary));
        (before, spent_before) = (*look, spent(*look));
    }
    Some(nominal)
}

/// The confidence of the interval at the last of these looks: 1 less its nominal error. `None` as
/// [`nominal_errors`], and when there was no look.
pub fn confidence_at(rounds: &[u32], most: u32, error: f64) -> Option<f64> {
    nominal_errors(rounds, most, error)?.last().map(|nominal| 1.0 - nominal)
}

/// The confidence at which every one of these looks is taken, so that all intervals of all looks
/// hold together with the probability 1 - `error` at least. Looks that are left out only make it
/// more conservative. `None` when `rounds` is empty or doesn't rise, or `error` isn't between 0 and
/// 1.
pub fn level_confidence(rounds: &[u32], error: f64) -> Option<f64> {
    let rises = rounds.windows(2).all(|pair| pair[0] < pair[1]);
    if !rises || *rounds.first()? == 0 || !(error > 0.0 && error < 1.0) {
        return None;
    }
    let (mut low, mut high) = (error / rounds.len() as f64, error);
    // Bonferroni's share is always strict enough, and one of several looks alone never is.
    for _ in 0..LEVEL_HALVINGS {
        let middle = 0.5 * (low + high);
        if error_of_level(rounds, middle) > error {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(1.0 - low)
}

/// The error rate of all these looks together when each is taken at the same nominal error.
fn error_of_level(rounds: &[u32], nominal: f64) -> f64 {
    let critical = crate::normal::normal_critical(nominal / 2.0);
    let mut density: Option<Density> = None;
    let mut before = 0;
    for look in rounds {
        let step = f64::from(look - before).sqrt();
        let edge = critical * f64::from(*look).sqrt();
        density = Some(Density::after(density.as_ref(), step, edge));
        before = *look;
    }
    density.map_or(0.0, |density| 1.0 - density.integrate(|_| 1.0))
}

/// Returns the smallest detectable difference, as a ratio above 1: what a comparison of `rounds`
/// rounds shows with a power of 0.9, when the paired log ratios deviate by `log_deviation` and the
/// last look is judged at `nominal_error`.
///
/// `None` with fewer than two rounds, or a deviation that isn't a number.
pub fn smallest_difference(log_deviation: f64, rounds: u32, nominal_error: f64) -> Option<f64> {
    if rounds < 2 || !log_deviation.is_finite() {
        return None;
    }
    let critical = crate::t_critical(1.0 - nominal_error, f64::from(rounds - 1));
    // A power of 0.9 adds the normal's upper tenth.
    let needed = (critical + 1.281_551_565_544_6) * log_deviation / f64::from(rounds).sqrt();
    needed.is_finite().then(|| needed.exp())
}

/// The density of the sum that no look has stopped yet, at points from -edge to edge.
struct Density {
    edge: f64,
    values: Vec<f64>,
}

impl Density {
    /// After one more step of that standard deviation, inside ±edge.
    fn after(before: Option<&Density>, step: f64, edge: f64) -> Density {
        let value = |place: usize| {
            let at = point(place, edge);
            match before {
                None => normal_density(at / step) / step,
                Some(density) => {
                    density.integrate(|from| normal_density((at - from) / step) / step)
                }
            }
        };
        Density { edge, values: (0..GRID).map(value).collect() }
    }

    /// Simpson's rule over the density times `weight`.
    fn integrate(&self, weight: impl Fn(f64) -> f64) -> f64 {
        let spacing = 2.0 * self.edge / (GRID - 1) as f64;
        let terms = self.values.iter().enumerate().map(|(place, value)| {
            let factor = match place {
                0 => 1.0,
                place if place == GRID - 1 => 1.0,
                place if place % 2 == 1 => 4.0,
                _ => 2.0,
            };
            factor * value * weight(point(place, self.edge))
        });
        terms.sum::<f64>() * spacing / 3.0
    }
}

fn point(place: usize, edge: f64) -> f64 {
    edge * (2.0 * place as f64 / (GRID - 1) as f64 - 1.0)
}

/// The sum beyond which, on both sides together, the next look stops with probability `share`.
fn boundary(before: Option<&Density>, step: f64, share: f64) -> f64 {
    let beyond = |edge: f64| match before {
        None => 2.0 * normal_tail(edge / step),
        Some(density) => density.integrate(|from| {
            normal_tail((edge - from) / step) + normal_tail((edge + from) / step)
        }),
    };
    let (mut low, mut high) = (0.0, before.map_or(0.0, |density| density.edge) + 12.0 * step);
    for _ in 0..45 {
        let middle = 0.5 * (low + high);
        if beyond(middle) > share {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::paired_ratio;
    use crate::normal::normal_critical;
    use crate::random::Random;

    #[test]
    fn looks_begin_at_the_least_rounds_and_end_at_the_most() {
        assert_eq!(looks(5), [5]);
        assert_eq!(looks(3), [3]);
        assert_eq!(looks(20), [5, 7, 9, 12, 15, 19, 20]);
        assert!(looks(10_000).len() < 40);
    }

    #[test]
    fn one_look_may_spend_everything_and_all_together_no_more() {
        let one = nominal_errors(&[30], 30, 0.025).unwrap();
        assert!((one[0] - 0.025).abs() < 1e-9);
        assert_eq!(nominal_errors(&[3, 3], 5, 0.05), None);
        assert_eq!(nominal_errors(&[6], 5, 0.05), None);
    }

    /// Two looks, for which one integral is enough: at half of
    /// the information a quarter of the error is spent, z₁ = z(0.05/8); the second boundary follows
    /// from the bivariate normal with correlation √½, here by scipy's adaptive quadrature.
    #[test]
    fn two_looks_agree_with_the_bivariate_normal() {
        let nominal = nominal_errors(&[10, 20], 20, 0.05).unwrap();
        assert!((nominal[0] - 0.0125).abs() < 1e-9, "{nominal:?}");
        let second = normal_critical(nominal[1] / 2.0);
        assert!((second - 2.018_31).abs() < 1e-5, "{second}");
    }

    /// Pocock's constants for equally spaced looks at 5 % (Jennison and Turnbull 2000, table 2.1):
    /// 2.178 for two looks, 2.413 for five.
    #[test]
    fn one_level_for_all_looks_is_pococks() {
        assert_eq!(level_confidence(&[], 0.05), None);
        assert_eq!(level_confidence(&[2, 2], 0.05), None);
        let one = level_confidence(&[7], 0.05).unwrap();
        assert!((one - 0.95).abs() < 1e-4, "{one}");
        for (looks, constant) in [(&[1, 2][..], 2.178), (&[1, 2, 3, 4, 5], 2.413)] {
            let confidence = level_confidence(looks, 0.05).unwrap();
            let critical = normal_critical((1.0 - confidence) / 2.0);
            assert!((-0.001..0.002).contains(&(critical - constant)), "{looks:?}: {critical}");
        }
    }

    /// What a run with `until` would do: look, and stop when the interval is tight.
    #[test]
    fn an_interval_that_is_waited_for_still_holds_as_often_as_it_says() {
        let looks = looks_from(5, 50);
        let confidence = level_confidence(&looks, 0.05).unwrap();
        let mut random = Random::new(11);
        let tries = 2_000;
        let misses = |confidence: f64, random: &mut Random| {
            let missed = (0..tries).filter(|_| {
                let (mut a, mut b) = (Vec::new(), Vec::new());
                let mut interval = None;
                for rounds in &looks {
                    while a.len() < *rounds as usize {
                        a.push((0.01 * random.normal()).exp());
                        b.push((0.01 * random.normal()).exp());
                    }
                    let now = paired_ratio(&a, &b, confidence).unwrap();
                    interval = Some(now);
                    if now.high / now.ratio - 1.0 <= 0.012 {
                        break;
                    }
                }
                interval.is_some_and(|one| one.low > 1.0 || one.high < 1.0)
            });
            missed.count() as f64 / f64::from(tries)
        };
        let plain = misses(0.95, &mut random);
        let corrected = misses(confidence, &mut random);
        assert!(plain > 0.05, "an interval of 95 % errs more often when waited for: {plain}");
        assert!(corrected < 0.05, "{corrected}");
    }

    /// What a comparison would do: look, and stop at the first difference.
    fn finds_a_difference(shift: f64, random: &mut Random, looks: &[u32], nominal: &[f64]) -> bool {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for (rounds, error) in looks.iter().zip(nominal) {
            while a.len() < *rounds as usize {
                a.push((shift + 0.01 * random.normal()).exp());
                b.push((0.01 * random.normal()).exp());
            }
            if paired_ratio(&a, &b, 1.0 - error).unwrap().p_value <= *error {
                return true;
            }
        }
        false
    }

    #[test]
    fn looking_early_does_not_cheat_and_the_difference_said_beforehand_is_found() {
        let (most, error) = (30, 0.05);
        let looks = looks(most);
        let nominal = nominal_errors(&looks, most, error).unwrap();
        let mut random = Random::new(7);
        let tries = 2_000;
        let found = |shift: f64, random: &mut Random| {
            let found =
                (0..tries).filter(|_| finds_a_difference(shift, random, &looks, &nominal)).count();
            found as f64 / f64::from(tries)
        };
        let wrong = found(0.0, &mut random);
        assert!((0.03..0.065).contains(&wrong), "{wrong}");
        // Two independent series of 1 % each: the log ratio deviates by √2 %.
        let last = *nominal.last().unwrap();
        let least = smallest_difference(0.01 * 2.0_f64.sqrt(), most, last).unwrap();
        let power = found(least.ln(), &mut random);
        assert!((0.88..0.97).contains(&power), "{power}");
    }
}
