//! Whether a requirement held: for the first target, over all its rounds at a point.
//!
//! Judged is what was measured and is printed. Counts and greatest values are facts: one answer
//! over the limit breaks it. A percentile is that of all answers together, and a share is of all
//! operations; both have an interval over rounds, because one stall delays many requests. Any other
//! figure is a mean over rounds with its interval.
//!
//! Disturbances make a service look slower, never faster. So where too few rounds are undisturbed,
//! the disturbed ones can show that a requirement held, and that it was broken they can't.

use judge::Direction;
use ledger::{PointId, RequirementOutcome, RequirementRow, RunId, Validity};

use super::distribution::Distribution;
use super::trial::Trial;
use crate::drive::Figure;
use crate::plan::{Comparison, ERRORS, Expression, OF_THOSE_ASKED, Requirement, percentile};

use RequirementOutcome::{Broken, CantTell, Held};

/// Metrics that are counted, not estimated: one wrong answer in any round is one too many.
const COUNTED: &[&str] = &["wrong", "missing", "misses", "missed", "merged", ERRORS];

/// The greatest of all values, of which one over the limit is one too many.
const GREATEST: &[&str] = &["latency.max", "staleness.max"];

/// What became of a requirement at a point.
#[derive(Debug, PartialEq)]
pub(super) struct Judgement {
    /// The figure over all rounds that it is judged by; `None` is unseen.
    pub(super) value: Option<f64>,
    pub(super) outcome: RequirementOutcome,
    /// The number of those rounds.
    pub(super) rounds: u32,
    /// How many of them were disturbed.
    pub(super) disturbed: u32,
    /// How many of them break it alone.
    pub(super) broken_in: u32,
    /// Why it can't be told.
    pub(super) reason: Option<String>,
}

impl Judgement {
    /// Its row in the ledger.
    pub(super) fn row(
        self,
        run_id: RunId,
        point_id: PointId,
        requirement: &Requirement,
    ) -> RequirementRow {
        RequirementRow {
            run_id,
            point_id,
            expression: requirement.text.clone(),
            value: self.value,
            outcome: self.outcome,
            bound: requirement.bound,
            unit: requirement.unit.map(|unit| unit.word().to_owned()),
            room: self.value.and_then(|value| room(requirement, value)),
            rounds: self.rounds,
            disturbed: self.disturbed,
            broken_in: self.broken_in,
            reason: self.reason,
        }
    }
}

/// The distance from a value to its limit, as a part of the limit; negative where it is broken.
fn room(requirement: &Requirement, value: f64) -> Option<f64> {
    let bound = requirement.bound;
    let room = match requirement.comparison {
        Comparison::Less | Comparison::LessOrEqual => bound - value,
        Comparison::Greater | Comparison::GreaterOrEqual => value - bound,
        Comparison::Equal => return None,
    };
    (bound != 0.0).then(|| room / bound.abs())
}

/// How a figure of several rounds is judged.
enum Kind<'a> {
    /// Added up: a fact.
    Count,
    /// The share of the operations that were asked for.
    Share(&'a str),
    /// The greatest of all values: a fact.
    Greatest,
    /// The part of all values that doesn't lie above it.
    Percentile(Figure, f64),
    /// What a service counts is exact, often nothing, and can't be added up: it has to hold in
    /// every round.
    EachRound,
    /// A mean over rounds.
    Mean,
}

fn kind(requirement: &Requirement) -> Kind<'_> {
    let is_exact = |name: &&str| *name == "least_updates" || name.starts_with("service.");
    let Expression::Name(name) = &requirement.figure else {
        let exact = requirement.figure.names().iter().any(is_exact);
        return if exact { Kind::EachRound } else { Kind::Mean };
    };
    match (name.strip_suffix(OF_THOSE_ASKED), percentile(name)) {
        (Some(outcome), _) => Kind::Share(outcome),
        _ if COUNTED.contains(&&name[..]) => Kind::Count,
        _ if GREATEST.contains(&&name[..]) => Kind::Greatest,
        _ if is_exact(&&name[..]) => Kind::EachRound,
        // That all answers together have exactly some percentile is no question of an interval.
        (_, Some((figure, part))) if requirement.comparison != Comparison::Equal => {
            Kind::Percentile(figure, part)
        }
        _ => Kind::Mean,
    }
}

/// Judges a requirement by `trials` of the point's targets. `subject` is the first target's name;
/// what is estimated needs `least_rounds` rounds.
pub(super) fn judge_requirement(
    requirement: &Requirement,
    subject: &str,
    trials: &[Trial],
    confidence: f64,
    least_rounds: usize,
) -> Judgement {
    let measured: Vec<&Trial> =
        trials.iter().filter(|trial| trial.target == 0 && trial.measured_ns > 0).collect();
    let rounds = |of| Rounds::new(requirement, subject, of, confidence, least_rounds);
    if !measured.is_empty() && unreported(requirement, &measured).is_some() {
        return rounds(measured).unseen();
    }
    let valid = |validity: &[Validity]| {
        let these = measured.iter().copied().filter(|trial| validity.contains(&trial.validity));
        these.collect::<Vec<&Trial>>()
    };
    let usable = || valid(&[Validity::Valid, Validity::Disturbed]);
    let clean = valid(&[Validity::Valid]);
    let estimated = if clean.len() >= least_rounds { clean } else { usable() };
    match kind(requirement) {
        Kind::Count => {
            // One wrong answer while preparing breaks it, too.
            let all = trials.iter().filter(|trial| trial.target == 0).collect();
            rounds(all).count()
        }
        // Wrong answers make a trial invalid; how many there are is asked here.
        Kind::Share(outcome) => rounds(measured).share(outcome),
        Kind::Greatest => rounds(usable()).greatest(),
        Kind::EachRound => rounds(usable()).each_round(),
        Kind::Percentile(figure, part) => rounds(estimated).percentile(figure, part),
        Kind::Mean => rounds(estimated).mean(),
    }
}

/// The rounds by which a requirement is judged.
struct Rounds<'a> {
    requirement: &'a Requirement,
    subject: &'a str,
    trials: Vec<&'a Trial>,
    /// The figure of each trial in which it was seen.
    values: Vec<f64>,
    confidence: f64,
    least: usize,
}

impl<'a> Rounds<'a> {
    fn new(
        requirement: &'a Requirement,
        subject: &'a str,
        trials: Vec<&'a Trial>,
        confidence: f64,
        least: usize,
    ) -> Self {
        let value = |trial: &&Trial| requirement.figure.value(&|name| trial.metric(name));
        let values = trials.iter().filter_map(value).collect();
        Self { requirement, subject, trials, values, confidence, least }
    }

    /// The sum over all rounds. That it holds is only shown by answers of a trial that counts.
    fn count(self) -> Judgement {
        let proves = self.trials.iter().any(|trial| proves(trial));
        let sum = (!self.values.is_empty()).then(|| self.values.iter().sum());
        match sum {
            Some(sum) if !self.requirement.holds(sum) => self.judged(Some(sum), Broken, None),
            Some(sum) if proves => self.judged(Some(sum), Held, None),
            _ if proves => self.unseen(),
            _ => {
                let nothing = "nothing was measured in a round that counts".to_owned();
                self.judged(None, CantTell, Some(nothing))
            }
        }
    }

    fn share(self, outcome: &str) -> Judgement {
        let counts: Vec<(u64, u64)> =
            self.trials.iter().filter_map(|trial| trial.of_those_asked(outcome)).collect();
        let Some(interval) = judge::share_interval(&counts, self.confidence) else {
            return self.unseen();
        };
        let ends = [interval.low, interval.high].map(|end| self.requirement.holds(end));
        let value = Some(interval.share);
        let proving = self.trials.iter().filter(|trial| proves(trial)).count();
        match ends {
            _ if proving < self.least => self.too_few(value, proving),
            [low, high] if low == high => self.judged(value, told(low), None),
            _ => {
                let [low, high] = [interval.low, interval.high].map(percent);
                let why = format!("over all rounds it lies between {low} and {high}");
                self.judged(value, CantTell, Some(why))
            }
        }
    }

    /// The greatest value of all. One over an upper limit breaks it in any round.
    fn greatest(self) -> Judgement {
        let Some(greatest) = self.values.iter().copied().reduce(f64::max) else {
            return self.unseen();
        };
        let holds = self.requirement.holds(greatest);
        let limits =
            matches!(self.requirement.comparison, Comparison::Less | Comparison::LessOrEqual);
        match self.values.len() {
            few if few < self.least && (holds || !limits) => self.too_few(Some(greatest), few),
            _ => self.judged(Some(greatest), told(holds), None),
        }
    }

    /// Where the figure was unseen in one round nothing can be decided. The value is the mean.
    fn each_round(self) -> Judgement {
        let Some(mean) = mean(&self.values) else { return self.unseen() };
        let unseen = self.trials.len() - self.values.len();
        match self.values.iter().all(|value| self.requirement.holds(*value)) {
            false => self.judged(Some(mean), Broken, None),
            true if unseen == 0 => self.judged(Some(mean), Held, None),
            true => {
                let why = format!("it was unseen in {unseen} of {} rounds", self.trials.len());
                self.judged(Some(mean), CantTell, Some(why))
            }
        }
    }

    /// A percentile lies below a limit when no more than the rest of all values lie above that: the
    /// interval of this share decides, as order statistics do where values are independent.
    fn percentile(self, figure: Figure, part: f64) -> Judgement {
        let all = || self.trials.iter().map(|trial| trial.distribution(figure));
        if all().any(Distribution::is_empty) {
            // Programs may report percentiles of their own, one a round.
            return self.mean();
        }
        let Requirement { comparison, bound, .. } = self.requirement;
        let is_above = |value: u64| match comparison {
            Comparison::Less | Comparison::GreaterOrEqual => value as f64 >= *bound,
            _ => value as f64 > *bound,
        };
        let counts: Vec<_> = all().map(|one| (one.count(is_above), one.len())).collect();
        let Some(above) = judge::share_interval(&counts, self.confidence) else {
            return self.unseen();
        };
        let value = Distribution::quantile_of_all(all(), part).map(|ns| ns as f64);
        let allowed = 1.0 - part;
        let limits = matches!(comparison, Comparison::Less | Comparison::LessOrEqual);
        let ends = [above.low, above.high].map(|share| (share <= allowed) == limits);
        match ends {
            _ if counts.len() < self.least => self.too_few(value, counts.len()),
            [low, high] if low == high => self.judged_by_estimate(value, low),
            _ => {
                let [low, high] = [above.low, above.high].map(percent);
                let why = format!(
                    "between {low} and {high} of the answers lie above it, and {} may",
                    percent(allowed)
                );
                self.judged(value, CantTell, Some(why))
            }
        }
    }

    fn mean(self) -> Judgement {
        let seen = self.values.len();
        let Some(plain_mean) = mean(&self.values) else { return self.unseen() };
        let Some(interval) = judge::series_interval(&self.values, self.confidence) else {
            return self.without_interval(plain_mean);
        };
        let value = Some(interval.mean);
        let ends = [interval.low, interval.high].map(|end| self.requirement.holds(end));
        match ends {
            _ if seen < self.least => self.too_few(value, seen),
            [low, high] if low == high => self.judged_by_estimate(value, low),
            _ => {
                let why = "the limit lies within the interval over rounds".to_owned();
                self.judged(value, CantTell, Some(why))
            }
        }
    }

    /// What is nothing in a round, or less, has no logarithm and so no interval: all rounds have to
    /// agree.
    fn without_interval(self, mean: f64) -> Judgement {
        let seen = self.values.len();
        let holding = self.values.iter().filter(|value| self.requirement.holds(**value)).count();
        match holding {
            _ if seen < self.least => self.too_few(Some(mean), seen),
            0 => self.judged_by_estimate(Some(mean), false),
            all if all == seen => self.judged_by_estimate(Some(mean), true),
            _ => self.judged(Some(mean), CantTell, Some("rounds differ".to_owned())),
        }
    }

    /// An outcome that an interval has decided. Disturbances make no figure better, so that one
    /// which holds all the same holds; whether one is broken without them is unknown.
    fn judged_by_estimate(self, value: Option<f64>, holds: bool) -> Judgement {
        let disturbed = self.disturbed();
        if disturbed == 0 || (holds && self.is_towards_better()) {
            return self.judged(value, told(holds), None);
        }
        let why = format!("{disturbed} of {} rounds were disturbed", self.trials.len());
        self.judged(value, CantTell, Some(why))
    }

    fn disturbed(&self) -> usize {
        self.trials.iter().filter(|trial| trial.validity == Validity::Disturbed).count()
    }

    /// Whether it asks for the good side of a metric, such as a latency below a limit.
    fn is_towards_better(&self) -> bool {
        let Expression::Name(name) = &self.requirement.figure else { return false };
        let direction = judge::metric_named(name).map(|metric| metric.direction);
        let direction = direction.or(percentile(name).map(|_| Direction::LowerIsBetter));
        match self.requirement.comparison {
            Comparison::Less | Comparison::LessOrEqual => {
                direction == Some(Direction::LowerIsBetter)
            }
            Comparison::Greater | Comparison::GreaterOrEqual => {
                direction == Some(Direction::HigherIsBetter)
            }
            Comparison::Equal => false,
        }
    }

    fn too_few(self, value: Option<f64>, rounds: usize) -> Judgement {
        let why = format!("{rounds} of the {} rounds that it needs were measured", self.least);
        self.judged(value, CantTell, Some(why))
    }

    fn unseen(self) -> Judgement {
        let why = match unreported(self.requirement, &self.trials) {
            _ if self.trials.is_empty() => format!("no round of {} counts", self.subject),
            Some(name) => format!("{name} was not reported by {}", self.subject),
            None => "no number comes of it".to_owned(),
        };
        self.judged(None, CantTell, Some(why))
    }

    fn judged(
        self,
        value: Option<f64>,
        outcome: RequirementOutcome,
        reason: Option<String>,
    ) -> Judgement {
        let broken = self.values.iter().filter(|value| !self.requirement.holds(**value));
        // No run has more rounds than that.
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let (rounds, broken_in) = (number(self.trials.len()), number(broken.count()));
        let disturbed = number(self.disturbed());
        Judgement { value, outcome, rounds, disturbed, broken_in, reason }
    }
}

/// The part of the figure that no trial has a value of.
fn unreported<'a>(requirement: &'a Requirement, trials: &[&Trial]) -> Option<&'a str> {
    let unseen = |name: &&str| trials.iter().all(|trial| trial.metric(name).is_none());
    let name = requirement.figure.names().into_iter().find(unseen)?;
    Some(name.strip_suffix(OF_THOSE_ASKED).unwrap_or(name))
}

/// Whether a trial can show that a count holds: answers were checked while it was measured. One
/// that is invalid for another reason than wrong answers measured something else.
fn proves(trial: &Trial) -> bool {
    let is_measured = trial.measured_ns > 0 && trial.counts.operations > 0;
    is_measured && (trial.validity != Validity::Invalid || trial.counts.wrong > 0)
}

fn told(holds: bool) -> RequirementOutcome {
    if holds { Held } else { Broken }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// A share with two digits: `0.85 %`.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let digits = (1.0 - percent.max(1e-9).log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{percent:.digits$} %")
}

/// The first of the conditions under which a run is not worth going on with that a trial meets.
pub(super) fn reason_to_abort(conditions: &[Requirement], trials: &[Trial]) -> Option<String> {
    trials.iter().find_map(|trial| {
        let meets = |condition: &&Requirement| {
            let value = condition.figure.value(&|name| trial.metric(name));
            value.is_some_and(|value| condition.holds(value))
        };
        conditions.iter().find(meets).map(|condition| condition.text.clone())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::empty_histogram;
    use crate::plan::Comparison::{Equal, GreaterOrEqual, Less};

    const MS: u64 = 1_000_000;

    fn requirement(name: &str, comparison: Comparison, bound: f64) -> Requirement {
        let figure = Expression::Name(name.to_owned());
        Requirement { text: name.to_owned(), figure, unit: None, comparison, bound }
    }

    fn judged(requirement: &Requirement, trials: &[Trial]) -> Judgement {
        judge_requirement(requirement, "ours", trials, 0.95, judge::MIN_ROUNDS)
    }

    fn measured(round: u32) -> Trial {
        let mut trial = Trial::begin(0, round, 0);
        trial.measured_ns = 1;
        trial.counts.operations = 10_000;
        trial
    }

    /// Trials in which rounds show these values.
    fn showing(name: &'static str, values: &[Option<f64>]) -> Vec<Trial> {
        let of = |(round, value): (u32, &Option<f64>)| {
            let mut trial = measured(round);
            trial.set_metrics(value.map(|value| (name.into(), value)).into_iter().collect());
            trial
        };
        (1..).zip(values).map(of).collect()
    }

    /// Trials of 10,000 answers in 1 ms each, of which `of_rounds` took `slow_ns`.
    fn with_slow_answers(slow_ns: u64, of_rounds: &[u64]) -> Vec<Trial> {
        let of = |(round, slow): (u32, &u64)| {
            let mut histogram = empty_histogram();
            histogram.record_n(MS, 10_000 - slow).unwrap();
            histogram.record_n(slow_ns, *slow).unwrap();
            let max = if *slow > 0 { slow_ns } else { MS };
            let mut trial = measured(round);
            trial.set_metrics(vec![("latency.max".into(), max as f64)]);
            trial.with_latencies(&histogram)
        };
        (1..).zip(of_rounds).map(of).collect()
    }

    #[test]
    fn counts_of_nothing_hold_unless_they_were_not_seen() {
        let outcome = |name, comparison, bound, values: &[Option<f64>]| {
            judged(&requirement(name, comparison, bound), &showing(name, values)).outcome
        };
        let missed = |values: &[Option<f64>]| outcome("missed", Equal, 0.0, values);
        assert_eq!(missed(&[Some(0.0); 5]), Held);
        assert_eq!(missed(&[Some(0.0), Some(1.0)]), Broken);
        assert_eq!(missed(&[None; 5]), CantTell);
        let least = |values: &[Option<f64>]| outcome("least_updates", GreaterOrEqual, 1.0, values);
        assert_eq!(least(&[Some(3.0), Some(1.0)]), Held);
        assert_eq!(least(&[Some(3.0), Some(0.0)]), Broken);
        assert_eq!(least(&[Some(3.0), None]), CantTell);
    }

    #[test]
    fn nothing_wrong_holds_only_where_something_was_measured() {
        let none_wrong = requirement("wrong", Equal, 0.0);
        let mut trials = showing("wrong", &[Some(0.0); 5]);
        assert_eq!(judged(&none_wrong, &trials).outcome, Held);
        trials.iter_mut().for_each(|trial| trial.validity = Validity::Disturbed);
        assert_eq!(judged(&none_wrong, &trials).outcome, Held, "its answers were checked");
        trials.iter_mut().for_each(|trial| trial.invalidate("it died"));
        let judgement = judged(&none_wrong, &trials);
        assert_eq!((judgement.outcome, judgement.value), (CantTell, None));
        // An answer that was wrong before measuring began is one all the same.
        trials[2].wrong_outside = 1;
        assert_eq!(judged(&none_wrong, &trials).outcome, Broken);
    }

    #[test]
    fn one_answer_over_the_limit_breaks_a_requirement_on_the_greatest() {
        let limit = requirement("latency.max", Less, 300e6);
        let judgement = judged(&limit, &with_slow_answers(502 * MS, &[0, 0, 1, 0, 0, 0]));
        assert_eq!((judgement.outcome, judgement.value), (Broken, Some(502e6)));
        assert_eq!((judgement.broken_in, judgement.rounds), (1, 6));
        // A stall of 200 ms every 2 s stays within it.
        let stalls = with_slow_answers(201 * MS, &[30, 25, 30, 28, 31, 27]);
        assert_eq!(judged(&limit, &stalls).outcome, Held);
        assert_eq!(judged(&limit, &with_slow_answers(502 * MS, &[1])).outcome, Broken);
        assert_eq!(judged(&limit, &stalls[..1]).outcome, CantTell, "one round shows little");
        assert_eq!(judged(&limit, &[]).outcome, CantTell);
    }

    #[test]
    fn a_percentile_is_that_of_all_answers_whatever_rounds_show_on_average() {
        let limit = requirement("latency.p99", Less, 100e6);
        // Most rounds have a p99 of 1 ms, and 3 % of all answers take 445 ms.
        let uneven = with_slow_answers(445 * MS, &[90, 0, 90, 0, 90, 5_000, 0, 90, 0, 90, 0, 90]);
        let judgement = judged(&limit, &uneven);
        assert_eq!(judgement.outcome, CantTell, "one round has nearly all of them");
        let near = |value: Option<f64>, ms: f64| (value.unwrap() / 1e6 / ms - 1.0).abs() < 0.001;
        assert!(near(judgement.value, 445.0), "{judgement:?}");
        assert_eq!((judgement.broken_in, judgement.rounds), (1, 12));
        assert!(judgement.reason.unwrap().contains("of the answers lie above it, and 1.0 % may"));
        let broken = judged(&limit, &with_slow_answers(445 * MS, &[250, 300, 280, 260, 310]));
        assert_eq!((broken.outcome, broken.broken_in), (Broken, 5));
        let held = judged(&limit, &with_slow_answers(445 * MS, &[30, 20, 28, 26, 31]));
        assert!(held.outcome == Held && near(held.value, 1.0), "{held:?}");
        let tail = requirement("latency.p99.9", Less, 100e6);
        let tail = judged(&tail, &with_slow_answers(445 * MS, &[30, 20, 28, 26, 31]));
        assert_eq!(tail.outcome, Broken);
    }

    #[test]
    fn disturbed_rounds_can_show_that_it_held_and_not_that_it_was_broken() {
        let limit = requirement("latency.p99", Less, 100e6);
        let disturb = |mut trials: Vec<Trial>| {
            trials.iter_mut().for_each(|trial| trial.validity = Validity::Disturbed);
            trials
        };
        let held = judged(&limit, &disturb(with_slow_answers(45 * MS, &[300; 5])));
        assert_eq!((held.outcome, held.disturbed), (Held, 5));
        let over = disturb(with_slow_answers(445 * MS, &[300; 5]));
        let judgement = judged(&limit, &over);
        assert_eq!(judgement.outcome, CantTell);
        assert_eq!(judgement.reason.unwrap(), "5 of 5 rounds were disturbed");
        let mut with_clean = with_slow_answers(45 * MS, &[300; 5]);
        with_clean.extend(over);
        let judgement = judged(&limit, &with_clean);
        assert_eq!((judgement.outcome, judgement.rounds), (Held, 5), "the clean ones suffice");
        let reversed = requirement("latency.p99", GreaterOrEqual, 10e6);
        let reversed = judged(&reversed, &disturb(with_slow_answers(45 * MS, &[300; 5])));
        assert_eq!(reversed.outcome, CantTell, "a disturbance may be what makes it hold");
    }

    #[test]
    fn room_is_a_part_of_the_limit() {
        let of = |comparison, value| room(&requirement("latency.p99", comparison, 100.0), value);
        assert_eq!((of(Less, 45.0), of(Less, 150.0)), (Some(0.55), Some(-0.5)));
        assert_eq!((of(GreaterOrEqual, 150.0), of(Equal, 100.0)), (Some(0.5), None));
        assert_eq!(room(&requirement("missing", Less, 0.0), 1.0), None);
    }

    #[test]
    fn errors_are_a_share_of_what_was_asked_for() {
        let with = |wrong: &[u64]| -> Vec<Trial> {
            let of = |(round, wrong): (u32, &u64)| {
                let mut trial = measured(round);
                (trial.counts.wrong, trial.counts.missing) = (*wrong, 10);
                trial.counts.operations = 9_990;
                trial.judge_answers(&[], None);
                trial
            };
            (1..).zip(wrong).map(of).collect()
        };
        let few = requirement("errors of those asked", Less, 0.01);
        let judgement = judged(&few, &with(&[40, 50, 30, 45, 35]));
        assert_eq!(judgement.outcome, Held, "wrong answers spoil the speed, not their count");
        assert!((judgement.value.unwrap() - 0.005).abs() < 1e-12);
        assert_eq!(judged(&few, &with(&[140, 150, 130, 145, 135])).outcome, Broken);
        assert_eq!(judged(&few, &with(&[400, 0, 0, 0, 0])).outcome, CantTell);
        assert_eq!(judged(&few, &with(&[1])).outcome, CantTell, "one round shows little");
        let wrong = judged(&requirement("wrong of those asked", Less, 0.001), &with(&[0; 5]));
        assert_eq!((wrong.outcome, wrong.value), (Held, Some(0.0)));
    }

    #[test]
    fn a_figure_that_is_nothing_in_some_round_needs_rounds_that_agree() {
        let rate = requirement("rate_per_s", Comparison::Greater, 100.0);
        let of = |values: &[Option<f64>]| judged(&rate, &showing("rate_per_s", values));
        assert_eq!(of(&[Some(0.0); 5]).outcome, Broken);
        assert_eq!(
            of(&[Some(0.0), Some(200.0), Some(200.0), Some(200.0), Some(200.0)]).outcome,
            CantTell
        );
        let unseen = of(&[None; 5]);
        assert_eq!(unseen.reason.unwrap(), "rate_per_s was not reported by ours");
    }
}
