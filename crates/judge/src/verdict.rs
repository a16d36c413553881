//! Better, worse, same, can't tell: the rule, and the reasons of an inconclusive comparison.
//!
//! The rule, for the first target (a) of a comparison a/b:
//!
//! 1. a barred comparison (generator-bound, disturbed rounds, invalid trials, unseen) is *can't
//!    tell*;
//! 2. so is one of fewer than [`MIN_ROUNDS`] rounds, however far apart the figures lie;
//! 3. when the plain interval lies wholly inside ±`same_within`, it is the same, also where it
//!    excludes 1: a difference that is proven and smaller than what the suite calls equal must not
//!    fail a gate;
//! 4. else, when the interval *at the confidence that Holm's procedure leaves to this comparison*
//!    excludes 1, it is better or worse, by the metric's direction;
//! 5. else *can't tell*: by the correction for several comparisons where the plain interval
//!    excludes 1, and otherwise with an estimate of the rounds that are missing.
//!
//! Step 4 is decided by the Holm-adjusted p-value, which is the same thing without a second
//! interval. The interval that is *printed* stays the plain one (95 %), so that its meaning
//! doesn't depend on how many points a suite has.

use crate::holm::holm_adjust;
use crate::interval::Interval;
use crate::metric::Direction;
use crate::student::t_critical;

/// Minimum number of rounds of a verdict. With fewer, one outlier decides the deviation.
pub const MIN_ROUNDS: usize = 5;

/// Maximum total of rounds that is advised.
const ROUNDS_ADVISED_MAX: u32 = 10_000;

/// The parameters of a verdict; one per run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Differences up to this fraction are called the same: 0.02 is ±2 %. It is applied on the
    /// log scale (from 1/1.02 to 1.02), so that a/b and b/a agree.
    pub same_within: f64,
    /// Confidence of the interval and of a family of verdicts; 0.95 is usual.
    pub confidence: f64,
}

/// Why a comparison is inconclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inconclusive {
    /// Fewer than [`MIN_ROUNDS`] rounds were measured.
    TooFewRounds,
    /// The interval neither excludes 1 nor fits inside ±`same_within`.
    TooWide,
    /// The interval excludes 1, but not at the confidence that is left to one of several
    /// comparisons.
    MultipleComparisons,
    /// The interval excludes 1, but one of the two targets was started only once: what differs
    /// from one start to the next is in no interval.
    OneStart,
    /// The generator was busy for 90 % of the time or more: it, not the target, set the figure.
    GeneratorBound,
    /// A target was overloaded: its latency is that of a queue that only grew, a function of the
    /// measured time and not of the target's speed.
    Overloaded,
    /// Enough rounds were measured, but too few in which both trials are valid: most others are
    /// invalid.
    InvalidTrials,
    /// The same, and most others are disturbed.
    DisturbedRounds,
    /// The metric wasn't seen on this host, or was zero, in at least one round.
    Unseen,
}

impl Inconclusive {
    const ALL: [Self; 9] = [
        Self::TooFewRounds,
        Self::TooWide,
        Self::MultipleComparisons,
        Self::OneStart,
        Self::GeneratorBound,
        Self::Overloaded,
        Self::DisturbedRounds,
        Self::InvalidTrials,
        Self::Unseen,
    ];

    /// The reason of this code.
    pub fn of_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|why| why.code() == code)
    }

    /// The reason as one lower-case word for JSON: `too_few_rounds`, `generator_bound`, …
    pub fn code(self) -> &'static str {
        self.names().0
    }

    /// The reason in words, as reports print it in brackets after "can't tell".
    pub fn words(self) -> &'static str {
        self.names().1
    }

    fn names(self) -> (&'static str, &'static str) {
        match self {
            Inconclusive::TooFewRounds => ("too_few_rounds", "too few rounds"),
            Inconclusive::TooWide => ("too_wide", "interval too wide"),
            Inconclusive::MultipleComparisons => {
                ("multiple_comparisons", "not clear after correction for several comparisons")
            }
            Inconclusive::OneStart => ("one_start", "one start"),
            Inconclusive::GeneratorBound => ("generator_bound", "generator-bound"),
            Inconclusive::Overloaded => ("overloaded", "overloaded"),
            Inconclusive::InvalidTrials => ("invalid_trials", "invalid trials"),
            Inconclusive::DisturbedRounds => ("disturbed_rounds", "disturbed rounds"),
            Inconclusive::Unseen => ("unseen", "unseen"),
        }
    }
}

/// The verdict on the first target against another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The first target is better, in the metric's direction.
    Better,
    /// The first target is worse.
    Worse,
    /// The difference, if there is one, is smaller than what the run calls a difference.
    Same,
    /// The measurement is inconclusive.
    CantTell {
        /// Why not.
        why: Inconclusive,
        /// Estimate of the rounds that are missing, from the variance observed; `None` when more
        /// rounds would not help or there is no variance to estimate from.
        more_rounds: Option<u32>,
    },
}

impl Verdict {
    /// The verdict as one lower-case word for JSON: better, worse, same, cant_tell.
    pub fn code(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Same => "same",
            Verdict::CantTell { .. } => "cant_tell",
        }
    }
}

/// One comparison of a family.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// The ratio a/b over the rounds in which both are valid; `None` when there is none.
    pub interval: Option<Interval>,
    /// Which direction of the metric is good.
    pub direction: Direction,
    /// A reason outside the numbers for which it is inconclusive.
    pub barred: Option<Inconclusive>,
}

/// The verdicts of a family of comparisons, in the order given.
///
/// A family is all comparisons of one metric in one run (points × pairs). Comparisons that are
/// inconclusive for a reason other than their p-value make no claim, so they don't count in Holm's
/// correction.
pub fn judge_family(family: &[Comparison], rule: &Rule) -> Vec<Verdict> {
    let early: Vec<Option<Verdict>> = family.iter().map(|one| beforehand(one, rule)).collect();
    let tested = |index: &usize| early[*index].is_none();
    let order: Vec<usize> = (0..family.len()).filter(tested).collect();
    let p_values: Vec<f64> =
        order.iter().map(|index| family[*index].interval.map_or(1.0, |i| i.p_value)).collect();
    let mut adjusted = vec![1.0; family.len()];
    for (index, p_value) in order.into_iter().zip(holm_adjust(&p_values)) {
        adjusted[index] = p_value;
    }
    let both = family.iter().zip(early).zip(adjusted);
    both.map(|((one, early), p)| early.unwrap_or_else(|| decide(one, p, rule))).collect()
}

/// The verdict that is clear without a p-value.
fn beforehand(one: &Comparison, rule: &Rule) -> Option<Verdict> {
    if let Some(why) = one.barred {
        return Some(Verdict::CantTell { why, more_rounds: None });
    }
    let Some(interval) = one.interval else {
        return Some(Verdict::CantTell { why: Inconclusive::Unseen, more_rounds: None });
    };
    if interval.rounds >= MIN_ROUNDS {
        return None;
    }
    let missing = u32::try_from(MIN_ROUNDS - interval.rounds).unwrap_or(u32::MAX);
    let estimate = more_rounds(&interval, rule).unwrap_or(0).max(missing);
    Some(Verdict::CantTell { why: Inconclusive::TooFewRounds, more_rounds: Some(estimate) })
}

fn decide(one: &Comparison, adjusted_p: f64, rule: &Rule) -> Verdict {
    let Some(interval) = one.interval else {
        return Verdict::CantTell { why: Inconclusive::Unseen, more_rounds: None };
    };
    let margin = rule.same_within.max(0.0).ln_1p();
    if interval.high.ln() <= margin && interval.low.ln() >= -margin {
        return Verdict::Same;
    }
    let error = 1.0 - rule.confidence;
    if adjusted_p <= error {
        let higher = interval.ratio > 1.0;
        return match (one.direction, higher) {
            (Direction::HigherIsBetter, true) | (Direction::LowerIsBetter, false) => {
                Verdict::Better
            }
            _ => Verdict::Worse,
        };
    }
    match interval.p_value <= error {
        true => Verdict::CantTell { why: Inconclusive::MultipleComparisons, more_rounds: None },
        false => Verdict::CantTell {
            why: Inconclusive::TooWide,
            more_rounds: more_rounds(&interval, rule),
        },
    }
}

/// The share of a difference that the half-width of its interval has to be for the interval to
/// exclude 1 in four of five tries: at 95 %, 1.96 / (1.96 + 0.84) standard errors.
const TOLD_IN_FOUR_OF_FIVE: f64 = 0.7;

/// Estimates how many more rounds bring the half-width of the interval under `same_within`, or so
/// far that a difference as large as the one seen is detected, if the variance stays as observed.
///
/// When it is already under (the interval straddles the margin), the goal is half of `same_within`:
/// an interval that narrow either excludes 1 or fits inside. `None` when the variance is unknown
/// (one round), when `same_within` is not positive, or past 10,000 rounds.
pub fn more_rounds(interval: &Interval, rule: &Rule) -> Option<u32> {
    let margin = rule.same_within.ln_1p();
    let deviation = interval.log_deviation;
    let now = u32::try_from(interval.rounds).ok()?;
    let usable = deviation.is_finite() && margin > 0.0 && (2..ROUNDS_ADVISED_MAX).contains(&now);
    if !usable {
        return None;
    }
    let half_width = |rounds: u32| {
        let count = f64::from(rounds);
        t_critical(rule.confidence, count - 1.0) * deviation / count.sqrt()
    };
    let goal = if half_width(now) > margin { margin } else { 0.5 * margin };
    let goal = goal.max(TOLD_IN_FOUR_OF_FIVE * interval.ratio.ln().abs()).min(half_width(now));
    if half_width(ROUNDS_ADVISED_MAX) > goal {
        return None;
    }
    // The half-width only falls with more rounds, so the least number is found by halving.
    let (mut low, mut high) = (now, ROUNDS_ADVISED_MAX);
    while low < high {
        let middle = low + (high - low) / 2;
        if half_width(middle) <= goal {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some((low - now).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::paired_ratio;
    use crate::random::Random;

    const RULE: Rule = Rule { same_within: 0.02, confidence: 0.95 };

    fn compare(a: &[f64], b: &[f64]) -> Comparison {
        let interval = paired_ratio(a, b, RULE.confidence);
        Comparison { interval, direction: Direction::HigherIsBetter, barred: None }
    }

    fn judge_one(a: &[f64], b: &[f64]) -> Verdict {
        judge_family(&[compare(a, b)], &RULE)[0]
    }

    /// Five repeats in seconds of two builds, once published as "no significant improvement"
    /// with a change of 4 % in the means: one odd value on each side is all there is.
    #[test]
    fn two_noisy_series_with_an_outlier_each_cant_be_told() {
        let a = [12.35, 12.41, 12.42, 12.33, 12.64];
        let b = [14.53, 12.35, 12.32, 12.3, 13.63];
        let Verdict::CantTell { why: Inconclusive::TooWide, more_rounds: Some(more) } =
            judge_one(&a, &b)
        else {
            panic!("{:?}", judge_one(&a, &b));
        };
        assert!((20..200).contains(&more), "{more}");
    }

    #[test]
    fn the_direction_of_the_metric_decides_between_better_and_worse() {
        let (a, b) = ([2.0, 2.1, 1.9, 2.0, 2.05], [1.0, 1.0, 1.02, 0.99, 1.0]);
        assert_eq!(judge_one(&a, &b), Verdict::Better);
        assert_eq!(judge_one(&b, &a), Verdict::Worse);
        let latency = Comparison { direction: Direction::LowerIsBetter, ..compare(&a, &b) };
        assert_eq!(judge_family(&[latency], &RULE), [Verdict::Worse]);
    }

    #[test]
    fn a_narrow_interval_around_one_is_the_same() {
        let b = [1.0; 6];
        assert_eq!(judge_one(&[1.001, 0.999, 1.002, 0.998, 1.001, 1.0], &b), Verdict::Same);
        assert_eq!(judge_one(&b, &b), Verdict::Same);
    }

    #[test]
    fn a_proven_difference_inside_the_margin_is_the_same_and_beyond_it_is_none() {
        let b = [1.0; 6];
        let one_percent = [0.990, 0.991, 0.989, 0.990, 0.9905, 0.9895];
        assert!(compare(&one_percent, &b).interval.is_some_and(|found| found.high < 1.0));
        assert_eq!(judge_one(&one_percent, &b), Verdict::Same);
        let narrow = Rule { same_within: 0.005, ..RULE };
        assert_eq!(judge_family(&[compare(&one_percent, &b)], &narrow), [Verdict::Worse]);
        // One end beyond the margin is enough.
        let two_percent = one_percent.map(|figure| figure - 0.01);
        assert_eq!(judge_one(&two_percent, &b), Verdict::Worse);
    }

    #[test]
    fn four_rounds_tell_nothing_however_far_apart() {
        let verdict = judge_one(&[10.0, 10.0, 10.1, 10.0], &[1.0; 4]);
        let why = Inconclusive::TooFewRounds;
        assert_eq!(verdict, Verdict::CantTell { why, more_rounds: Some(1) });
    }

    #[test]
    fn what_is_barred_or_unseen_cant_be_told_and_leaves_the_family() {
        let (a, b) = ([1.05, 1.06, 1.0, 1.07, 1.04], [1.0; 5]);
        let alone = judge_one(&a, &b);
        assert_eq!(alone, Verdict::Better);
        let barred = Comparison { barred: Some(Inconclusive::GeneratorBound), ..compare(&a, &b) };
        let unseen = Comparison { interval: None, ..compare(&a, &b) };
        let verdicts = judge_family(&[barred, compare(&a, &b), unseen], &RULE);
        let cant_tell = |why| Verdict::CantTell { why, more_rounds: None };
        assert_eq!(verdicts[0], cant_tell(Inconclusive::GeneratorBound));
        assert_eq!(verdicts[1], alone);
        assert_eq!(verdicts[2], cant_tell(Inconclusive::Unseen));
    }

    #[test]
    fn a_large_family_asks_more_of_each_comparison() {
        let (a, b) = ([1.05, 1.06, 1.0, 1.07, 1.04], [1.0; 5]);
        let noise = compare(&[1.1, 0.9, 1.05, 0.95, 1.02], &b);
        let mut family = vec![noise; 19];
        family.push(compare(&a, &b));
        let last = judge_family(&family, &RULE)[19];
        let why = Inconclusive::MultipleComparisons;
        assert_eq!(last, Verdict::CantTell { why, more_rounds: None });
    }

    #[test]
    fn a_against_a_is_called_different_one_time_in_twenty_per_family() {
        let mut random = Random::new(1);
        // Noise of ±5 % on the log scale.
        let mut noisy = || [0; 6].map(|_| (0.05 * random.normal()).exp());
        for (size, families) in [(1, 4_000), (8, 1_000)] {
            let wrong = (0..families).filter(|_| {
                let family: Vec<Comparison> =
                    (0..size).map(|_| compare(&noisy(), &noisy())).collect();
                let told = |verdict: &Verdict| matches!(verdict, Verdict::Better | Verdict::Worse);
                judge_family(&family, &RULE).iter().any(told)
            });
            let share = wrong.count() as f64 / f64::from(families);
            assert!((0.035..0.065).contains(&share), "{share} in families of {size}");
        }
    }

    #[test]
    fn the_rounds_advised_bring_the_half_width_to_the_goal() {
        // s = 0.05 and a goal of ln 1.02: t(n-1)·s/√n <= 0.0198 first at n = 27.
        let interval = Interval {
            ratio: 1.0,
            low: 0.94,
            high: 1.06,
            rounds: 5,
            p_value: 1.0,
            log_deviation: 0.05,
        };
        assert_eq!(more_rounds(&interval, &RULE), Some(22));
        let silent = Rule { same_within: 0.0, ..RULE };
        assert_eq!(more_rounds(&interval, &silent), None);
    }
}
