//! The looks of a comparison, and whether it may stop after one. Only planned looks may stop it
//! (see `judge`'s looks).

use judge::{Comparison, Interval, Metric, Rule, Verdict};

use super::stopping::paired;
use super::trial::Trial;
use crate::plan::Plan;

/// The looks of a comparison.
pub(super) struct LookSchedule {
    primary: Metric,
    same_within: f64,
    until: Option<f64>,
    /// The error that each point may make: the run's, divided among its points.
    error: f64,
    most: u32,
    schedule: Vec<u32>,
    points: Vec<AtPoint>,
}

#[derive(Default)]
struct AtPoint {
    looks: Vec<u32>,
    is_decided: bool,
}

/// What a look showed.
pub(super) struct Look {
    /// Rounds in which both targets were valid.
    pub(super) rounds: u32,
    /// A message about the rounds still to come.
    pub(super) note: Option<String>,
}

impl LookSchedule {
    /// `None` when the plan is no comparison.
    pub(super) fn of(plan: &Plan) -> Option<Self> {
        let rounds = &plan.rounds;
        let sequence = rounds.sequence.as_ref()?;
        Some(Self {
            primary: rounds.primary.clone(),
            same_within: rounds.same_within.fraction,
            until: sequence.until,
            error: sequence.error / plan.points.len() as f64,
            most: rounds.at_most,
            schedule: judge::looks(rounds.at_most),
            points: plan.points.iter().map(|_| AtPoint::default()).collect(),
        })
    }

    /// Whether a point needs no more rounds.
    pub(super) fn is_decided(&self, point: usize) -> bool {
        self.points[point].is_decided
    }

    /// Judges the point if a look is planned at its number of valid rounds.
    pub(super) fn look(&mut self, point: usize, trials: &[Trial], is_last: bool) -> Option<Look> {
        let (a, b) = paired(trials, 0, 1, &self.primary.suite);
        let rounds = u32::try_from(a.len()).ok().filter(|rounds| *rounds > 1)?;
        let here = &mut self.points[point];
        let is_new = here.looks.last().is_none_or(|last| *last < rounds);
        if !is_new || !(is_last || self.schedule.contains(&rounds)) {
            return None;
        }
        here.looks.push(rounds);
        let confidence = judge::confidence_at(&here.looks, self.most, self.error)?;
        let interval = judge::paired_ratio(&a, &b, confidence)?;
        let rule = Rule { same_within: self.same_within, confidence };
        let (interval, direction) = (Some(interval), self.primary.direction);
        let comparison = Comparison { interval, direction, barred: None };
        let verdict = judge::judge_family(&[comparison], &rule)[0];
        let interval = interval?;
        let is_tight = self.until.is_none_or(|until| interval.high / interval.ratio - 1.0 <= until);
        here.is_decided = is_tight && !matches!(verdict, Verdict::CantTell { .. });
        let note = (here.looks.len() == 1 && !here.is_decided).then(|| self.first_look(&interval));
        Some(Look { rounds, note: note.flatten() })
    }

    /// The smallest difference that all rounds can show, from the variance of the first.
    fn first_look(&self, interval: &Interval) -> Option<String> {
        let last = judge::confidence_at(&self.schedule, self.most, self.error)?;
        let least = judge::smallest_difference(interval.log_deviation, self.most, 1.0 - last)?;
        Some(format!(
            "after {} rounds: {} rounds would show a difference of {:.2} % nine times out of ten",
            interval.rounds,
            self.most,
            (least - 1.0) * 100.0
        ))
    }
}
