//! Whether a requirement held: for one target, the first as a rule, over all its rounds at a point.
//!
//! Judged is what was measured and is printed. Counts and greatest values are facts: one answer
//! over the limit breaks it. A percentile is that of all answers together, and a share is of all
//! operations; both have an interval over rounds, because one stall delays many requests. Any other
//! figure is a mean over rounds with its interval.
//!
//! The figure is reported in any case, but a requirement concludes no more than was seen: it held
//! only if it was seen in every round, and where disturbed rounds decide, only what disturbances
//! can't have brought about stands (`figure` knows what they do to which figure).

mod figure;

use ledger::{PointId, RequirementOutcome, RequirementRow, RunId, Validity};

use self::figure::{Influence, Kind, good_side, is_about_refusals, needs_checks};
use super::answers::refused_before;
use super::distribution::Distribution;
use super::trial::Trial;
use crate::drive::Figure;
use crate::plan::{Arrivals, Comparison, ERRORS, Expression, OF_THOSE_ASKED, Point, Requirement};

use RequirementOutcome::{Broken, CantTell, Held};

/// What a requirement is judged by besides trials.
pub(super) struct Terms<'a> {
    /// The target that is judged, as an index into the point's, and its name.
    pub(super) target: usize,
    pub(super) subject: &'a str,
    pub(super) confidence: f64,
    /// The rounds that an estimate needs.
    pub(super) least_rounds: usize,
    /// Slots that send once they are answered.
    pub(super) closed_slots: u64,
    /// Slots that send at scheduled times, or some time after they were answered.
    pub(super) scheduled_slots: u64,
    /// Whether all requests are due at times that no answer changes.
    pub(super) is_schedule: bool,
}

impl<'a> Terms<'a> {
    /// Those of the first target.
    pub(super) fn at(point: &'a Point, confidence: f64, least_rounds: usize) -> Self {
        let slots = |is_scheduled: bool| {
            let groups = point.clients.iter();
            let waits =
                |arrivals: &Arrivals| matches!(arrivals, Arrivals::Open(_) | Arrivals::Think(_));
            let those = groups.filter(|group| waits(&group.arrivals) == is_scheduled);
            those.map(|group| (group.connections * group.pipeline) as u64).sum()
        };
        Self {
            target: 0,
            subject: &point.targets[0].name,
            confidence,
            least_rounds,
            closed_slots: slots(false),
            scheduled_slots: slots(true),
            is_schedule: {
                let mut groups = point.clients.iter();
                groups.all(|group| matches!(group.arrivals, Arrivals::Open(_)))
            },
        }
    }
}

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

/// Judges a requirement by `trials` of the point's targets.
pub(super) fn judge_requirement(
    requirement: &Requirement,
    trials: &[Trial],
    terms: &Terms<'_>,
) -> Judgement {
    let measured: Vec<&Trial> =
        trials.iter().filter(|one| one.target == terms.target && one.measured_ns > 0).collect();
    let rounds = |of| Rounds::new(requirement, terms, of);
    if !measured.is_empty() && unreported(requirement, &measured).is_some() {
        return rounds(measured).unseen();
    }
    let usable = || -> Vec<&Trial> {
        measured.iter().copied().filter(|one| one.validity != Validity::Invalid).collect()
    };
    let least = terms.least_rounds;
    match Kind::of(requirement) {
        Kind::Count => {
            // One wrong answer while preparing breaks it, too.
            let all = trials.iter().filter(|trial| trial.target == terms.target).collect();
            rounds(all).count()
        }
        // Errors make a trial invalid; how many there are is asked here.
        Kind::Share(outcome) => {
            let proves = proving(requirement);
            rounds(undisturbed(measured, proves, least)).share(outcome)
        }
        Kind::Greatest => rounds(usable()).greatest(),
        Kind::EachRound => rounds(usable()).each_round(),
        Kind::Percentile(figure, part) => {
            rounds(undisturbed(usable(), |_| true, least)).percentile(figure, part)
        }
        Kind::Mean => rounds(undisturbed(usable(), |_| true, least)).mean(),
    }
}

/// Those of the trials that are undisturbed, where `least` of these count; else all of them.
fn undisturbed(trials: Vec<&Trial>, counts: fn(&Trial) -> bool, least: usize) -> Vec<&Trial> {
    let own: Vec<&Trial> = trials.iter().copied().filter(|one| !is_disturbed(one)).collect();
    if own.iter().filter(|trial| counts(trial)).count() >= least { own } else { trials }
}

/// The rounds by which a requirement is judged.
struct Rounds<'a> {
    requirement: &'a Requirement,
    terms: &'a Terms<'a>,
    trials: Vec<&'a Trial>,
    /// The figure of each trial; `None` where it was unseen.
    values: Vec<Option<f64>>,
}

impl<'a> Rounds<'a> {
    fn new(requirement: &'a Requirement, terms: &'a Terms<'a>, trials: Vec<&'a Trial>) -> Self {
        let figure = &requirement.figure;
        let needs_checks = needs_checks(figure);
        let value = |trial: &&Trial| {
            let value = figure.value(&|name| trial.metric(name))?;
            // None wrong of none checked is nothing seen.
            (!needs_checks || value > 0.0 || is_checked(trial)).then_some(value)
        };
        let values = trials.iter().map(value).collect();
        Self { requirement, terms, trials, values }
    }

    /// The figures of the trials of this kind in which it was seen.
    fn seen(&self, of: fn(&Trial) -> bool) -> Vec<f64> {
        let those = self.trials.iter().zip(&self.values).filter(|(trial, _)| of(trial));
        those.filter_map(|(_, value)| *value).collect()
    }

    /// In how many trials of this kind it was unseen.
    fn unseen_in(&self, of: fn(&Trial) -> bool) -> usize {
        self.trials.iter().filter(|trial| of(trial)).count() - self.seen(of).len()
    }

    /// The sum over all rounds. That it holds is only shown by answers of a trial that counts.
    fn count(self) -> Judgement {
        let all = self.seen(|_| true);
        let sum = (!all.is_empty()).then(|| all.iter().sum::<f64>());
        let proves = proving(self.requirement);
        let proving = self.trials.iter().filter(|trial| proves(trial)).count();
        let unseen = self.unseen_in(proves);
        let pairs = self.trials.iter().zip(&self.values);
        let own: f64 = pairs.map(|(trial, value)| self.own(trial, *value)).sum();
        let own = Some(self.requirement.holds(own));
        let is_any_clean = self.trials.iter().any(|trial| proves(trial) && !is_disturbed(trial));
        // What was unseen can only add to it.
        let is_least =
            matches!(self.requirement.comparison, Comparison::Greater | Comparison::GreaterOrEqual);
        let is_final = unseen == 0 || !is_least;
        match sum {
            Some(sum) if is_final && !self.requirement.holds(sum) => self.fact(sum, false, own),
            Some(sum) if !self.requirement.holds(sum + self.refused_outside() as f64) => {
                // Slices are measured again because they were disturbed, which may have done it.
                let why = refused_before(self.refused_outside());
                self.judged(Some(sum), CantTell, Some(why))
            }
            _ if proving == 0 => {
                let nothing = "nothing was measured in a round that counts".to_owned();
                self.judged(None, CantTell, Some(nothing))
            }
            Some(sum) if unseen < proving => match unseen {
                0 => self.fact(sum, true, own.filter(|_| is_any_clean)),
                _ => self.partly_unseen(sum, unseen, proving),
            },
            _ => self.unseen(),
        }
    }

    /// What of a trial's count no disturbance can have brought about: all of an undisturbed one's,
    /// and wrong answers.
    fn own(&self, trial: &Trial, value: Option<f64>) -> f64 {
        let counts_wrong = matches!(&self.requirement.figure,
            Expression::Name(name) if ["wrong", ERRORS].contains(&&name[..]));
        match value {
            Some(value) if !is_disturbed(trial) => value,
            Some(_) if counts_wrong => trial.wrong_answers_in_all() as f64,
            _ => 0.0,
        }
    }

    /// The refusals that are in no figure, of what is required of refusals.
    fn refused_outside(&self) -> u64 {
        let counts = is_about_refusals(&self.requirement.figure);
        let all = self.trials.iter().filter(|_| counts);
        all.map(|trial| trial.refused_outside).sum()
    }

    fn share(self, outcome: &str) -> Judgement {
        let those = self.trials.iter().zip(&self.values).filter(|(_, value)| value.is_some());
        let counts: Vec<(u64, u64)> =
            those.filter_map(|(trial, _)| trial.of_those_asked(outcome)).collect();
        let Some(interval) = self.share_interval(&counts, f64::INFINITY) else {
            return self.unseen();
        };
        let [low, high] = [interval.low, interval.high];
        let proves = proving(self.requirement);
        let (proving, unseen) = (self.seen(proves).len(), self.unseen_in(proves));
        match self.told_by(low, high) {
            _ if proving < self.terms.least_rounds => self.too_few(interval.share, proving),
            Some(holds) => self.estimate(interval.share, holds, unseen),
            None => {
                let [low, high] = [low, high].map(percent);
                let why = format!("over all rounds it lies between {low} and {high}");
                self.judged(Some(interval.share), CantTell, Some(why))
            }
        }
    }

    fn share_interval(&self, counts: &[(u64, u64)], delay_ns: f64) -> Option<judge::ShareInterval> {
        judge::share_interval(counts, self.at_once(delay_ns), self.terms.confidence)
    }

    /// How many requests one stall of this length delays: all that are outstanding. Of those with a
    /// schedule no more are than become due meanwhile.
    fn at_once(&self, delay_ns: f64) -> u64 {
        let sum = |of: fn(&Trial) -> u64| self.trials.iter().map(|one| of(one)).sum::<u64>() as f64;
        let per_ns = sum(|trial| trial.counts.operations) / sum(|trial| trial.measured_ns).max(1.0);
        // A float beyond all whole numbers becomes the greatest of them.
        let due = (per_ns * delay_ns).ceil() as u64;
        self.terms.closed_slots + self.terms.scheduled_slots.min(due)
    }

    /// The greatest value of all. One over an upper limit breaks it in any round.
    fn greatest(self) -> Judgement {
        let greatest = |of: fn(&Trial) -> bool| self.seen(of).into_iter().reduce(f64::max);
        let Some(value) = greatest(|_| true) else { return self.unseen() };
        let without = greatest(|trial| !is_disturbed(trial));
        let without = without.map(|value| self.requirement.holds(value));
        let holds = self.requirement.holds(value);
        let limits =
            matches!(self.requirement.comparison, Comparison::Less | Comparison::LessOrEqual);
        let (seen, unseen) = (self.seen(|_| true).len(), self.unseen_in(|_| true));
        match (seen, unseen) {
            _ if !holds && limits => self.fact(value, false, without),
            (few, _) if few < self.terms.least_rounds => self.too_few(value, few),
            (_, 0) => self.fact(value, holds, without),
            (_, unseen) => self.partly_unseen(value, unseen, seen + unseen),
        }
    }

    /// Where the figure was unseen in one round nothing can be decided. The value is the mean.
    fn each_round(self) -> Judgement {
        let all = self.seen(|_| true);
        let Some(mean) = mean(&all) else { return self.unseen() };
        let holds = |values: &[f64]| values.iter().all(|value| self.requirement.holds(*value));
        let clean = self.seen(|trial| !is_disturbed(trial));
        let without = (!clean.is_empty()).then(|| holds(&clean));
        match (holds(&all), self.unseen_in(|_| true)) {
            (false, _) => self.fact(mean, false, without),
            (true, 0) => self.fact(mean, true, without),
            (true, unseen) => {
                let rounds = self.trials.len();
                self.partly_unseen(mean, unseen, rounds)
            }
        }
    }

    /// A percentile lies below a limit when no more than the rest of all values lie above that: the
    /// interval of this share decides, as order statistics do where values are independent.
    fn percentile(self, figure: Figure, part: f64) -> Judgement {
        let all = || self.trials.iter().map(|trial| trial.distribution(figure));
        let unseen = all().filter(|one| one.is_empty()).count();
        if unseen == self.trials.len() {
            // Programs may report percentiles of their own, one a round.
            return self.mean();
        }
        let (bound, allowed) = (self.requirement.bound, 1.0 - part);
        let share = |is: &dyn Fn(f64) -> bool| {
            let count = |one: &Distribution| (one.count(|value| is(value as f64)), one.len());
            self.share_interval(&all().map(count).collect::<Vec<_>>(), bound)
        };
        let (above, reach) = (share(&|value| value > bound), share(&|value| value >= bound));
        let Some((above, reach)) = above.zip(reach) else { return self.unseen() };
        let value = Distribution::quantile_of_all(all(), part).map_or(0.0, |ns| ns as f64);
        let seen = self.trials.len() - unseen;
        let both = |low: bool, high: bool| (low == high).then_some(low);
        let (told, shown) = match self.requirement.comparison {
            Comparison::Less => (both(reach.low <= allowed, reach.high <= allowed), reach),
            Comparison::LessOrEqual => (both(above.low <= allowed, above.high <= allowed), above),
            Comparison::Greater => (both(above.low > allowed, above.high > allowed), above),
            Comparison::GreaterOrEqual => (both(reach.low > allowed, reach.high > allowed), reach),
            // It is another for sure where it lies above the bound or below it.
            Comparison::Equal => {
                ((above.low > allowed || reach.high < allowed).then_some(false), above)
            }
        };
        match told {
            _ if seen < self.terms.least_rounds => self.too_few(value, seen),
            Some(false) if unseen == 0 && self.is_broken_undisturbed(figure, allowed) => {
                self.judged(Some(value), Broken, None)
            }
            Some(holds) => self.estimate(value, holds, unseen),
            None => {
                let why = self.undecided(&shown, allowed);
                self.judged(Some(value), CantTell, Some(why))
            }
        }
    }

    /// Whether an upper limit on a percentile of latencies is broken though rounds were disturbed:
    /// more answers than are `allowed` to lie above it do so by more than the disturbance can
    /// have delayed any of them ([`judge::margin`]).
    fn is_broken_undisturbed(&self, figure: Figure, allowed: f64) -> bool {
        let is_upper =
            matches!(self.requirement.comparison, Comparison::Less | Comparison::LessOrEqual);
        if !is_upper || figure != Figure::Latency || !self.terms.is_schedule {
            return false;
        }
        let limit_ns = self.requirement.bound as u64;
        let count = |trial: &&Trial| {
            let all = trial.distribution(figure);
            let above = trial.margin(limit_ns).map(|margin_ns| {
                all.count(|value| value as f64 > self.requirement.bound + margin_ns as f64)
            });
            // Where a disturbance can have delayed any answer, none is surely late.
            (above.unwrap_or(0), all.len())
        };
        let counts: Vec<_> = self.trials.iter().map(count).collect();
        let share = self.share_interval(&counts, self.requirement.bound);
        share.is_some_and(|share| share.low > allowed)
    }

    /// Why the share of answers above a limit decides nothing.
    fn undecided(&self, above: &judge::ShareInterval, allowed: f64) -> String {
        let [low, high, allowed] = [above.low, above.high, allowed].map(percent);
        match above.share > 0.0 {
            true => {
                format!("between {low} and {high} of the answers lie above it, and {allowed} may")
            }
            false => format!(
                "none of the answers lies above it; as one stall delays the {} outstanding at \
                 once, their number leaves room for {high}, and {allowed} may: measure longer",
                self.at_once(self.requirement.bound)
            ),
        }
    }

    fn mean(self) -> Judgement {
        let values = self.seen(|_| true);
        let (seen, unseen) = (values.len(), self.unseen_in(|_| true));
        let Some(plain_mean) = mean(&values) else { return self.unseen() };
        if seen < self.terms.least_rounds {
            return self.too_few(plain_mean, seen);
        }
        let holding = values.iter().filter(|value| self.requirement.holds(**value)).count();
        let is_equal = self.requirement.comparison == Comparison::Equal;
        let interval = judge::series_interval(&values, self.terms.confidence);
        // What is nothing in a round, or less, has no logarithm and so no interval, and an interval
        // can't show that something is equal: all rounds have to agree.
        let Some(interval) = interval.filter(|_| !(is_equal && holding == seen)) else {
            let below = values.iter().filter(|value| **value < self.requirement.bound).count();
            return match holding {
                all if all == seen => self.estimate(plain_mean, true, unseen),
                0 if !is_equal || [0, seen].contains(&below) => {
                    self.estimate(plain_mean, false, unseen)
                }
                _ => self.judged(Some(plain_mean), CantTell, Some("rounds differ".to_owned())),
            };
        };
        match self.told_by(interval.low, interval.high) {
            Some(holds) => self.estimate(interval.mean, holds, unseen),
            None => {
                let why = "the limit lies within the interval over rounds".to_owned();
                self.judged(Some(interval.mean), CantTell, Some(why))
            }
        }
    }

    /// The outcome on which the whole interval agrees. None shows that something is equal.
    fn told_by(&self, low: f64, high: f64) -> Option<bool> {
        let Requirement { comparison, bound, .. } = self.requirement;
        match comparison {
            Comparison::Equal => (*bound < low || high < *bound).then_some(false),
            _ => {
                let [low, high] = [low, high].map(|end| self.requirement.holds(end));
                (low == high).then_some(low)
            }
        }
    }

    /// An outcome that an interval has decided.
    fn estimate(self, value: f64, holds: bool, unseen: usize) -> Judgement {
        if unseen > 0 {
            let rounds = self.trials.len();
            return self.partly_unseen(value, unseen, rounds);
        }
        self.fact(value, holds, None)
    }

    /// An outcome, if disturbances can't have brought it about. `without` is the outcome without
    /// what they may have done; `None` where nothing is left.
    fn fact(self, value: f64, holds: bool, without: Option<bool>) -> Judgement {
        let disturbed = self.disturbed();
        if disturbed == 0 || without == Some(holds) || self.stands(holds) {
            return self.judged(Some(value), if holds { Held } else { Broken }, None);
        }
        let why = match (holds, without) {
            (false, Some(true)) => "only disturbed rounds break it".to_owned(),
            _ => format!("{disturbed} of {} rounds were disturbed", self.trials.len()),
        };
        self.judged(Some(value), CantTell, Some(why))
    }

    /// Whether disturbances can't have brought this outcome about.
    fn stands(&self, holds: bool) -> bool {
        match Influence::on(&self.requirement.figure) {
            Influence::None => true,
            Influence::Worsens => good_side(self.requirement) == Some(holds),
            Influence::Either => false,
        }
    }

    fn disturbed(&self) -> usize {
        self.trials.iter().filter(|trial| is_disturbed(trial)).count()
    }

    fn too_few(self, value: f64, rounds: usize) -> Judgement {
        let least = self.terms.least_rounds;
        let why = format!("{rounds} of the {least} rounds that it needs were measured");
        self.judged(Some(value), CantTell, Some(why))
    }

    fn partly_unseen(self, value: f64, unseen: usize, rounds: usize) -> Judgement {
        let why = format!("it was unseen in {unseen} of {rounds} rounds");
        self.judged(Some(value), CantTell, Some(why))
    }

    fn unseen(self) -> Judgement {
        let lacks_checks = needs_checks(&self.requirement.figure)
            && self.trials.iter().any(|trial| !is_checked(trial));
        let why = match unreported(self.requirement, &self.trials) {
            _ if self.trials.is_empty() => format!("no round of {} counts", self.terms.subject),
            _ if lacks_checks => "no answer was checked".to_owned(),
            Some(name) => format!("{name} was not reported by {}", self.terms.subject),
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
        let broken = self.values.iter().flatten().filter(|one| !self.requirement.holds(**one));
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

/// Which trials can show that a count holds: those in which answers were checked. One that is
/// invalid for another reason than errors measured something else, and a refusal shows only what is
/// required of refusals: one that does nothing is never wrong.
fn proving(requirement: &Requirement) -> fn(&Trial) -> bool {
    fn proves(trial: &Trial) -> bool {
        let is_measured = trial.measured_ns > 0 && trial.counts.operations > 0;
        let has_broken = trial.counts.broken > 0 && !trial.has_failed();
        let has_errors = trial.counts.wrong > 0 || has_broken;
        is_measured && (trial.validity != Validity::Invalid || has_errors)
    }
    match is_about_refusals(&requirement.figure) {
        true => |trial| proves(trial) || (trial.measured_ns > 0 && trial.counts.refused > 0),
        false => proves,
    }
}

/// Whether any of its answers were checked, if there were any.
fn is_checked(trial: &Trial) -> bool {
    trial.counts.operations == 0 || trial.counts.operations > trial.counts.unchecked
}

fn is_disturbed(trial: &Trial) -> bool {
    trial.validity == Validity::Disturbed
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// A share with two digits: `0.85 %`.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent <= 0.0 {
        return "0 %".to_owned();
    }
    let digits = (1.0 - percent.log10().floor()).clamp(0.0, 6.0) as usize;
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
mod disturbed_tests;
#[cfg(test)]
mod tests;
