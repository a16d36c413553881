//! The ratio of two series that aren't paired, such as figures that were measured elsewhere.

use crate::interval::{Interval, LOG_NOISE, logs, mean_and_variance};
use crate::student::{t_critical, t_two_sided_tail};

/// The ratio a/b of two series: geometric means, with Welch's t interval on the logarithms (B. L.
/// Welch, Biometrika 34, 1947), which needs no equal spreads.
///
/// `rounds` of the interval is the smaller count, and `log_deviation` that of a difference of one
/// figure of each, so that [`crate::more_rounds`] estimates how many more of each a verdict needs.
/// `None` when a series is empty, a figure isn't a positive finite number, or `confidence` isn't
/// between 0 and 1.
pub fn unpaired_ratio(a: &[f64], b: &[f64], confidence: f64) -> Option<Interval> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let (a, b) = (logs(a)?, logs(b)?);
    let ((a_mean, a_variance), (b_mean, b_variance)) =
        (mean_and_variance(&a), mean_and_variance(&b));
    let (a_count, b_count) = (a.len() as f64, b.len() as f64);
    let difference = a_mean - b_mean;
    let rounds = a.len().min(b.len());
    if rounds < 2 {
        return Some(Interval {
            ratio: difference.exp(),
            low: 0.0,
            high: f64::INFINITY,
            rounds,
            p_value: 1.0,
            log_deviation: f64::NAN,
        });
    }
    let (a_part, b_part) = (a_variance / a_count, b_variance / b_count);
    let error = (a_part + b_part).sqrt().max(LOG_NOISE);
    // Satterthwaite's degrees of freedom; without any spread they are the fewest possible.
    let spread = a_part.powi(2) / (a_count - 1.0) + b_part.powi(2) / (b_count - 1.0);
    let degrees = match spread > 0.0 {
        true => (a_part + b_part).powi(2) / spread,
        false => rounds as f64 - 1.0,
    };
    let half_width = t_critical(confidence, degrees) * error;
    Some(Interval {
        ratio: difference.exp(),
        low: (difference - half_width).exp(),
        high: (difference + half_width).exp(),
        rounds,
        p_value: t_two_sided_tail(difference / error, degrees),
        log_deviation: (a_variance + b_variance).sqrt(),
    })
}

/// Returns the quantisation step of the figures as a share of their median, when they were rounded
/// so coarsely that few distinct values are left (whole seconds of a clock); else `None`.
pub fn step_of(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    let steps = sorted.windows(2).map(|pair| pair[1] - pair[0]);
    let least = steps.fold(f64::INFINITY, f64::min);
    let middle = crate::quantile::median(figures).filter(|middle| *middle > 0.0)?;
    let whole = |figure: &f64| (figure / least - (figure / least).round()).abs() < 1e-9;
    let coarse = least.is_finite() && figures.len() >= 4 && sorted.iter().all(whole);
    (coarse && sorted.len() * 2 <= figures.len().max(4)).then_some(least / middle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Direction;
    use crate::verdict::{Comparison, Inconclusive, Rule, Verdict, judge_family};

    const RULE: Rule = Rule { same_within: 0.02, confidence: 0.95 };

    fn judge_one(a: &[f64], b: &[f64]) -> Verdict {
        let interval = unpaired_ratio(a, b, RULE.confidence);
        let direction = Direction::LowerIsBetter;
        judge_family(&[Comparison { interval, direction, barred: None }], &RULE)[0]
    }

    /// Five repeats in seconds before and after a change, once published with the words "backed
    /// out, since no significant improvement" beside averages of 12.43 and 13.06.
    #[test]
    fn a_change_that_was_backed_out_cant_be_told_and_it_says_how_many_runs_would() {
        let before = [12.35, 12.41, 12.42, 12.33, 12.64];
        let after = [14.53, 12.35, 12.32, 12.3, 13.63];
        let Verdict::CantTell { why: Inconclusive::TooWide, more_rounds: Some(more) } =
            judge_one(&after, &before)
        else {
            panic!("{:?}", judge_one(&after, &before));
        };
        assert!((15..120).contains(&more), "{more}");
    }

    /// Seconds of a clock that only knows whole ones, once called a change from 13.2 to 12.4.
    #[test]
    fn whole_seconds_tell_little_and_their_step_is_named() {
        let first = [12.0, 13.0, 14.0, 14.0, 13.0];
        let second = [12.0, 12.0, 12.0, 13.0, 13.0];
        assert!(matches!(judge_one(&second, &first), Verdict::CantTell { .. }));
        assert!((step_of(&second).unwrap() - 1.0 / 12.0).abs() < 1e-12);
        assert_eq!(step_of(&[12.35, 12.41, 12.42, 12.33, 12.64]), None);
    }

    #[test]
    fn unequal_spreads_and_counts_have_welchs_degrees_of_freedom() {
        // ln a: 0, 0.2, 0.1; ln b: 1, 2, 3, 4, 5 → mean difference -2.9, by hand.
        let a: Vec<f64> = [0.0_f64, 0.2, 0.1].iter().map(|log| log.exp()).collect();
        let b: Vec<f64> = [1.0_f64, 2.0, 3.0, 4.0, 5.0].iter().map(|log| log.exp()).collect();
        let interval = unpaired_ratio(&a, &b, 0.95).unwrap();
        assert!((interval.ratio.ln() + 2.9).abs() < 1e-12);
        // scipy.stats.ttest_ind([0, .2, .1], [1, 2, 3, 4, 5], equal_var=False).
        assert!((interval.p_value - 0.014_607_483_483_350_9).abs() < 1e-12, "{}", interval.p_value);
        assert_eq!(unpaired_ratio(&a, &[], 0.95), None);
        assert_eq!(unpaired_ratio(&a, &[0.0], 0.95), None);
        assert!(unpaired_ratio(&a, &[1.0], 0.95).unwrap().high.is_infinite());
    }
}
