//! The first target against each other one, by metric and point, and the verdicts.
//!
//! Targets are paired within rounds, and only where both trials are valid. All comparisons of
//! one metric (points × other targets) are one family for Holm's correction. The run's primary
//! metric carries the run's verdicts and its exit code. The others stand beside them, in the
//! conclusion too, each its own family: their errors are not corrected for the number of metrics,
//! so that of several that are compared one may differ by chance more often than the error says.
//!
//! A run that is one comparison was looked at while it ran: each of its points is judged alone, at
//! the confidence of its last look, and the points share the error (Bonferroni).
//!
//! Where one of two targets was started once and ran on from round to round, what differs from one
//! start of a program to the next is in no interval, so that a difference is one of these two
//! processes: as one of the programs it is *likely* at most.
//!
//! What is likely is a test of its own, besides: nothing looked at it while rounds came, so that it
//! takes place once, at the end, with the whole error, which the comparisons share (Holm). A
//! strict verdict and a likely one may each be wrong as often as their error says, in a family; who
//! takes both for answers errs up to twice as often (`judge`'s `likely` measures both rates).

use std::collections::BTreeMap;

use judge::limits::is_generator_bound;
use judge::{
    Comparison, Direction, Inconclusive, Interval, Likely, LikelyInterval, MIN_ROUNDS, Metric,
    Metrics, NoisyPair, Rule, Unit, Verdict, confidence_at, judge_family, likely, median,
    paired_ratio,
};
use ledger::{ComparisonRow, RunRow};

use crate::trial_summary::{TrialSummary, at_point};

/// The metrics that are compared besides the run's primary one, by their path in JSON.
const COMPARED: &[&str] =
    &["rate_per_s", "latency_ns.p50", "latency_ns.p99", "server.cpu_ns_per_op"];

/// The metrics that a run of one comparison compares besides.
const COMPARED_BESIDES: &[&str] = &["server.rss_bytes"];

/// One comparison, judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// The point.
    pub point: usize,
    /// The first target.
    pub a: usize,
    /// The target it is compared with.
    pub b: usize,
    /// The metric.
    pub metric: Metric,
    /// The ratio a/b with its plain interval; `None` when a value is unseen or zero, or when every
    /// round has an invalid trial.
    pub interval: Option<Interval>,
    /// The verdict on the first target.
    pub verdict: Verdict,
    /// The second rank of the verdict, where there is none and rounds were disturbed, or a target
    /// was started only once.
    pub likely: Option<LikelyCompared>,
    /// On which side of the ratio the true one lies, when only a bound is known.
    pub bound: Option<Bound>,
    /// How many of the interval's rounds are disturbed: where these bar the verdict, the ratio is a
    /// figure of all rounds without an invalid trial.
    pub disturbed_rounds: usize,
    /// Whether the metric is the run's primary one, so that the verdict is the run's.
    pub primary: bool,
    /// The confidence of the interval and of the verdict.
    pub confidence: f64,
    /// The medians over rounds, of the first target and the other.
    pub medians: Option<(f64, f64)>,
}

/// A difference that is likely, from rounds that were disturbed or from one start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LikelyCompared {
    /// The ratio with its interval, and how much was disturbed.
    pub found: Likely,
    /// Whether the first target is the better one; else it is the worse one.
    pub is_better: bool,
    /// Rounds in which a trial was disturbed, of those in the interval.
    pub disturbed_rounds: usize,
}

impl LikelyCompared {
    /// In one word, for programs: `better` or `worse`.
    pub fn code(self) -> &'static str {
        if self.is_better { "better" } else { "worse" }
    }
}

/// The bound that a ratio is when the generator was at its limit with one of the targets
/// and not with the other: that target would show a higher rate and lower latencies to a generator
/// that isn't.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The true ratio is at least this.
    Least,
    /// The true ratio is at most this.
    Most,
}

impl Bound {
    /// In one word, for programs.
    pub fn code(self) -> &'static str {
        match self {
            Bound::Least => "at_least",
            Bound::Most => "at_most",
        }
    }

    /// The bound of this word.
    pub(crate) fn of_code(code: &str) -> Option<Bound> {
        [Bound::Least, Bound::Most].into_iter().find(|bound| bound.code() == code)
    }
}

impl Compared {
    /// The target that a busy generator held back; `None` when the ratio is no bound.
    pub fn held_back(&self) -> Option<usize> {
        let is_a = (self.bound? == Bound::Least) == is_lowered(&self.metric)?;
        Some(if is_a { self.a } else { self.b })
    }
}

/// Whether a busy generator lowers a figure (rates) or raises it (times); `None` for the others.
fn is_lowered(metric: &Metric) -> Option<bool> {
    match metric.unit {
        _ if !metric.spoiled_by_busy_generator => None,
        Unit::PerSecond | Unit::BytesPerSecond => Some(true),
        Unit::Nanoseconds => Some(false),
        Unit::Bytes | Unit::Count | Unit::Fraction | Unit::Number => None,
    }
}

/// The parameters and looks of a run that is one comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Contest {
    /// The parameters.
    pub row: ComparisonRow,
    /// Valid rounds at each look, by point.
    pub looks: Vec<Vec<u32>>,
}

impl Contest {
    /// The confidence of what is tested once, at the end of all rounds: each point has its share
    /// of the error.
    fn confidence_at_the_end(&self) -> f64 {
        1.0 - self.error_of_a_point()
    }

    fn error_of_a_point(&self) -> f64 {
        self.row.error / self.looks.len().max(1) as f64
    }

    /// The confidence at which a point is judged after this many valid rounds: that of its last
    /// look, which is now if more came since.
    pub fn confidence(&self, point: usize, rounds: usize) -> f64 {
        let error = self.error_of_a_point();
        let mut looks = self.looks.get(point).cloned().unwrap_or_default();
        let rounds = u32::try_from(rounds).unwrap_or(u32::MAX).min(self.row.rounds_most);
        if looks.last().is_none_or(|last| *last < rounds) && rounds > 0 {
            looks.push(rounds);
        }
        confidence_at(&looks, self.row.rounds_most, error).unwrap_or(1.0 - error)
    }
}

/// All comparisons of a run, by metric, point and other target.
pub(crate) fn compare(
    run: &RunRow,
    metrics: &Metrics,
    contest: Option<&Contest>,
    (targets, points): (usize, usize),
    started_once: &[usize],
    trials: &[TrialSummary],
) -> Vec<Compared> {
    let primary = metrics.named(&run.primary_metric);
    let pairs: Vec<Pairing<'_>> = (0..points)
        .flat_map(|point| (1..targets).map(move |b| (point, b)))
        .filter_map(|(point, b)| Pairing::of((point, 0, b), started_once, trials))
        .collect();
    let confidence = |pairing: &Pairing<'_>| match contest {
        Some(contest) => Confidence {
            strict: contest.confidence(pairing.point, pairing.valid.len()),
            likely: contest.confidence_at_the_end(),
        },
        None => Confidence::of_all(run.confidence),
    };
    let confidences: Vec<Confidence> = pairs.iter().map(confidence).collect();
    let mut compared = Vec::new();
    for metric in compared_metrics(metrics, primary, contest.is_some()) {
        let is_primary = primary == Some(metric);
        if contest.is_none() {
            let confidence = Confidence::of_all(run.confidence);
            compared.extend(judged(run, metric, &pairs, confidence, is_primary));
            continue;
        }
        for (pairing, confidence) in pairs.iter().zip(&confidences) {
            let alone = std::slice::from_ref(pairing);
            compared.extend(judged(run, metric, alone, *confidence, is_primary));
        }
    }
    compared
}

/// Comparisons of the primary metric of any two targets, each a point, a and b, as one family.
pub(crate) fn compare_pairs(
    run: &RunRow,
    metrics: &Metrics,
    pairs: &[(usize, usize, usize)],
    started_once: &[usize],
    trials: &[TrialSummary],
) -> Vec<Compared> {
    let Some(metric) = metrics.named(&run.primary_metric) else { return Vec::new() };
    let pairs: Vec<Pairing<'_>> =
        pairs.iter().filter_map(|place| Pairing::of(*place, started_once, trials)).collect();
    judged(run, metric, &pairs, Confidence::of_all(run.confidence), true)
}

/// The metrics compared, the primary one first: some of the table, and every reported figure.
fn compared_metrics<'a>(
    metrics: &'a Metrics,
    primary: Option<&Metric>,
    all: bool,
) -> Vec<&'a Metric> {
    let besides = if all { COMPARED_BESIDES } else { &[] };
    let wanted = |metric: &&Metric| {
        let name = &*metric.json;
        let is_usual = COMPARED.contains(&name) || besides.contains(&name);
        is_usual || metric.sql.is_none() || primary == Some(metric)
    };
    let mut compared: Vec<&Metric> = metrics.iter().filter(wanted).collect();
    compared.sort_by_key(|metric| primary != Some(metric));
    compared
}

/// The confidence of a family of comparisons: of strict verdicts, and of likely ones.
#[derive(Clone, Copy)]
struct Confidence {
    strict: f64,
    likely: f64,
}

impl Confidence {
    fn of_all(confidence: f64) -> Self {
        Self { strict: confidence, likely: confidence }
    }
}

/// One family of comparisons.
fn judged(
    run: &RunRow,
    metric: &Metric,
    pairs: &[Pairing<'_>],
    confidence: Confidence,
    primary: bool,
) -> Vec<Compared> {
    let Confidence { strict: confidence, likely } = confidence;
    let rule = Rule { same_within: run.same_within, confidence };
    let family: Vec<Comparison> =
        pairs.iter().map(|pairing| pairing.comparison(metric, &rule)).collect();
    let verdicts = judge_family(&family, &rule);
    let likely = likely_of_family(metric, pairs, &verdicts, likely);
    // A proven difference that the suite calls equal is the same; a likely one is none either.
    let margin = run.same_within.max(0.0).ln_1p();
    let is_more = |found: &LikelyCompared| {
        let LikelyInterval { low, high, .. } = found.found.interval;
        high.ln() > margin || low.ln() < -margin
    };
    let likely = likely.into_iter().map(|found| found.filter(is_more));
    let rows = pairs.iter().zip(&family).zip(verdicts).zip(likely);
    let compared = |(((pairing, comparison), verdict), likely): (
        ((&Pairing<'_>, &Comparison), Verdict),
        Option<LikelyCompared>,
    )| {
        let (verdict, likely) = match pairing.of_one_start(verdict, comparison.interval) {
            Some(found) => {
                let why = Inconclusive::OneStart;
                (Verdict::CantTell { why, more_rounds: None }, Some(found))
            }
            None => (verdict, likely),
        };
        Compared {
            point: pairing.point,
            a: pairing.a,
            b: pairing.b,
            metric: metric.clone(),
            interval: comparison.interval,
            verdict,
            likely,
            bound: pairing.bound(metric),
            disturbed_rounds: pairing.shown().len() - pairing.valid.len(),
            primary,
            confidence,
            medians: pairing.medians(metric),
        }
    };
    rows.map(compared).collect()
}

/// What is likely of each comparison of a family, which share the error by Holm's rule: the more
/// of them are significant, the more of it is left for each of the others.
fn likely_of_family(
    metric: &Metric,
    pairs: &[Pairing<'_>],
    verdicts: &[Verdict],
    confidence: f64,
) -> Vec<Option<LikelyCompared>> {
    let mut told = 0;
    loop {
        let left = pairs.len().saturating_sub(told).max(1);
        let shared = 1.0 - (1.0 - confidence) / left as f64;
        let both = pairs.iter().zip(verdicts);
        let found: Vec<_> =
            both.map(|(pairing, verdict)| pairing.likely(metric, *verdict, shared)).collect();
        let now = found.iter().flatten().count();
        if now <= told {
            return found;
        }
        told = now;
    }
}

/// The trials of the first target and another at one point, by round.
struct Pairing<'a> {
    point: usize,
    a: usize,
    b: usize,
    /// Rounds in which both were tried.
    rounds: usize,
    /// Whether one of them was started only once.
    is_one_start: bool,
    /// Those of them in which both are valid.
    valid: Vec<(&'a TrialSummary, &'a TrialSummary)>,
    /// Those in which neither is invalid: a disturbed trial has right figures of a noisy time.
    usable: Vec<(&'a TrialSummary, &'a TrialSummary)>,
}

impl<'a> Pairing<'a> {
    /// `None` when no round tried both: a skipped target is not compared.
    fn of(
        (point, a, b): (usize, usize, usize),
        started_once: &[usize],
        trials: &'a [TrialSummary],
    ) -> Option<Pairing<'a>> {
        let of_target = |target: usize| {
            let here = at_point(trials, point).iter().filter(move |one| one.target == target);
            here.map(|trial| (trial.round, trial)).collect::<BTreeMap<_, _>>()
        };
        let (firsts, others) = (of_target(a), of_target(b));
        let both: Vec<_> =
            firsts.iter().filter_map(|(round, a)| Some((*a, *others.get(round)?))).collect();
        if both.is_empty() {
            return None;
        }
        let rounds = both.len();
        let is_one_start = started_once.contains(&a) || started_once.contains(&b);
        let both_are = |is: fn(&TrialSummary) -> bool| {
            both.iter().copied().filter(|(a, b)| is(a) && is(b)).collect()
        };
        let valid = both_are(TrialSummary::is_valid);
        let usable = both_are(TrialSummary::is_usable);
        Some(Pairing { point, a, b, rounds, is_one_start, valid, usable })
    }

    /// A difference of two processes of which one was started only once, as one of the programs.
    fn of_one_start(&self, verdict: Verdict, interval: Option<Interval>) -> Option<LikelyCompared> {
        let is_better = match verdict {
            Verdict::Better => true,
            Verdict::Worse => false,
            Verdict::Same | Verdict::CantTell { .. } => return None,
        };
        let Interval { ratio, low, high, rounds, .. } = interval.filter(|_| self.is_one_start)?;
        let interval = LikelyInterval { ratio, low, high, rounds };
        let found = Likely { interval, least_disturbance: 0.0, most_disturbance: 0.0 };
        Some(LikelyCompared { found, is_better, disturbed_rounds: 0 })
    }

    /// The difference that is likely where the clean rounds show none.
    fn likely(&self, metric: &Metric, verdict: Verdict, confidence: f64) -> Option<LikelyCompared> {
        let Verdict::CantTell { why, .. } = verdict else { return None };
        let is_noise = matches!(
            why,
            Inconclusive::DisturbedRounds
                | Inconclusive::InvalidTrials
                | Inconclusive::TooFewRounds
                | Inconclusive::TooWide
                | Inconclusive::MultipleComparisons
        );
        let disturbed = self.usable.iter().filter(|(a, b)| !(a.is_valid() && b.is_valid()));
        let disturbed_rounds = disturbed.count();
        let is_barred = barred_by_load(metric, &self.usable).is_some();
        if !is_noise || disturbed_rounds == 0 || is_barred {
            return None;
        }
        let pair = |(a, b): &(&TrialSummary, &TrialSummary)| {
            if a.has_unmeasured_cause() || b.has_unmeasured_cause() {
                return None;
            }
            let (disturbance_a, disturbance_b) = a.disturbance()?.compared_with(b.disturbance()?);
            let (a, b) = (a.figures.value(metric)?, b.figures.value(metric)?);
            Some(NoisyPair { a, b, disturbance_a, disturbance_b })
        };
        let pairs: Option<Vec<NoisyPair>> = self.usable.iter().map(pair).collect();
        let found = likely(&pairs?, confidence)?;
        let is_more = found.interval.ratio > 1.0;
        let is_better = is_more == (metric.direction == Direction::HigherIsBetter);
        Some(LikelyCompared { found, is_better, disturbed_rounds })
    }

    /// The rounds that figures are of: the valid ones, or those that disturbances bar from a
    /// verdict, too.
    fn shown(&self) -> &[(&'a TrialSummary, &'a TrialSummary)] {
        match self.unfit() {
            Some(Inconclusive::DisturbedRounds) => &self.usable,
            _ => &self.valid,
        }
    }

    /// Whether too few rounds are valid, and what most others are.
    fn unfit(&self) -> Option<Inconclusive> {
        let enough_but_for_validity = self.rounds >= MIN_ROUNDS && self.valid.len() < MIN_ROUNDS;
        let disturbed = self.usable.len() - self.valid.len();
        let invalid = self.rounds - self.usable.len();
        (self.valid.is_empty() || enough_but_for_validity).then_some(match disturbed > invalid {
            true => Inconclusive::DisturbedRounds,
            false => Inconclusive::InvalidTrials,
        })
    }

    /// The figures of both targets in every round that is shown; `None` when one is unseen.
    fn values(&self, metric: &Metric) -> Option<(Vec<f64>, Vec<f64>)> {
        let both = |(a, b): &(&TrialSummary, &TrialSummary)| {
            Some((a.figures.value(metric)?, b.figures.value(metric)?))
        };
        self.shown().iter().map(both).collect()
    }

    fn medians(&self, metric: &Metric) -> Option<(f64, f64)> {
        let (a, b) = self.values(metric)?;
        median(&a).zip(median(&b))
    }

    fn comparison(&self, metric: &Metric, rule: &Rule) -> Comparison {
        let values = self.values(metric);
        let interval = values.and_then(|(a, b)| paired_ratio(&a, &b, rule.confidence));
        let bound = self.bound(metric);
        let is_settled = interval.is_some_and(|interval| settles(bound, &interval, rule));
        let barred = self.barred(metric).filter(|_| !is_settled);
        Comparison { interval, direction: metric.direction, barred }
    }

    fn barred(&self, metric: &Metric) -> Option<Inconclusive> {
        if let Some(why) = self.unfit() {
            return Some(why);
        }
        barred_by_load(metric, &self.valid)
    }

    /// On which side of the measured ratio the true one lies, when a busy generator held back only
    /// one of the two.
    fn bound(&self, metric: &Metric) -> Option<Bound> {
        let is_by_load = self.barred(metric) == Some(Inconclusive::GeneratorBound);
        let lowered = is_lowered(metric).filter(|_| is_by_load)?;
        match generator_bound(&self.valid) {
            (true, false) => Some(if lowered { Bound::Least } else { Bound::Most }),
            (false, true) => Some(if lowered { Bound::Most } else { Bound::Least }),
            _ => None,
        }
    }
}

/// Whether a bound alone says which is better: it lies beyond what the run calls the same. A target
/// that was held back and is better all the same would be better still.
fn settles(bound: Option<Bound>, interval: &Interval, rule: &Rule) -> bool {
    let margin = rule.same_within.max(0.0).ln_1p();
    match bound {
        Some(Bound::Least) => interval.low.ln() > margin,
        Some(Bound::Most) => interval.high.ln() < -margin,
        None => false,
    }
}

/// The load's own reason for which these rounds can't be compared: a backlog that grew in any of
/// them, or a generator that was busy in the median of them. How busy it was has to be seen in
/// each: what isn't known is not idle.
fn barred_by_load(
    metric: &Metric,
    rounds: &[(&TrialSummary, &TrialSummary)],
) -> Option<Inconclusive> {
    let (a, b) = generator_bound(rounds);
    let overloaded = rounds.iter().any(|(a, b)| a.row.overloaded || b.row.overloaded);
    if overloaded && metric.json.starts_with("latency_ns.") {
        return Some(Inconclusive::Overloaded);
    }
    let is_unseen = |trial: &TrialSummary| trial.row.generator_busy.is_none();
    match metric.spoiled_by_busy_generator {
        true if a || b => Some(Inconclusive::GeneratorBound),
        true if rounds.iter().any(|(a, b)| is_unseen(a) || is_unseen(b)) => {
            Some(Inconclusive::Unseen)
        }
        _ => None,
    }
}

/// Whether the generator was at its limit with either target, in the median of its trials.
fn generator_bound(rounds: &[(&TrialSummary, &TrialSummary)]) -> (bool, bool) {
    let bound = |of: fn(&(&TrialSummary, &TrialSummary)) -> Option<f64>| {
        let busy = median(&rounds.iter().filter_map(of).collect::<Vec<_>>());
        busy.is_some_and(is_generator_bound)
    };
    (bound(|(a, _)| a.row.generator_busy), bound(|(_, b)| b.row.generator_busy))
}
