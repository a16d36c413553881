//! The outcome of a run, from which the exit code follows.

use judge::{Capacity, Verdict};
use ledger::{ProbeRow, RequirementOutcome};

use crate::capacity::CapacitySummary;
use crate::compare::Compared;
use crate::point_summary::{PointSummary, TargetSummary};
use crate::summary::Summary;
use crate::trial_summary::TrialSummary;

/// The outcome of a run, from which the exit code follows. Several may be true at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// A target that was not skipped could not be measured: it failed in each of its trials, even
    /// if it answered before.
    pub unmeasured: bool,
    /// A requirement was broken.
    pub requirement_broken: bool,
    /// The first target is worse than another by the primary metric, or a rung of a ladder worse
    /// than the one before it. It is a finding like any
    /// other, unless the user asked to fail on it.
    pub worse: bool,
    /// A verdict of the primary metric or a requirement is inconclusive, or a target that was not
    /// skipped has no valid trial at some point.
    pub cant_tell: bool,
    /// Nothing but verdicts is inconclusive, and each of those is likely.
    pub is_likely: bool,
    /// The first target is likely worse than another.
    pub likely_worse: bool,
}

impl Outcome {
    /// The same where what is likely is as good as a verdict.
    pub fn accepting_likely(self) -> Outcome {
        Outcome {
            cant_tell: self.cant_tell && !self.is_likely,
            worse: self.worse || self.likely_worse,
            ..self
        }
    }

    /// The exit code: 1 when a target could not be measured, else 3 when a requirement is broken
    /// (or the first target is worse and `fail_on_worse`), else 4 when something is inconclusive
    /// or invalid, else 0.
    pub fn exit_code(self, fail_on_worse: bool) -> u8 {
        if self.unmeasured {
            1
        } else if self.requirement_broken || (fail_on_worse && self.worse) {
            3
        } else if self.cant_tell {
            4
        } else {
            0
        }
    }

    /// The outcome as one lower-case word for JSON: `unmeasured`, `broken`, `cant_tell` or `fine`.
    pub fn code(self) -> &'static str {
        match self.exit_code(false) {
            1 => "unmeasured",
            3 => "broken",
            4 => "cant_tell",
            _ => "fine",
        }
    }
}

/// The outcome of a run, from which the exit code follows.
pub fn outcome(summary: &Summary) -> Outcome {
    if let Some(capacity) = &summary.capacity {
        return of_capacity(summary, capacity);
    }
    let required = |word| summary.requirements.iter().any(|one| one.row.outcome == word);
    let steps = crate::ladder::ladder(summary);
    // Of a ladder each rung is judged, against the one before it.
    let judged: Vec<&Compared> = match steps.is_empty() {
        false => steps.iter().flat_map(|step| &step.before).collect(),
        true => summary.comparisons.iter().filter(|compared| compared.primary).collect(),
    };
    let is_undecided = |one: &&&Compared| matches!(one.verdict, Verdict::CantTell { .. });
    let undecided: Vec<&&Compared> = judged.iter().filter(is_undecided).collect();
    // A target that was begun at no point at all is as unjudged as an invalid one.
    let lacks = |count: fn(&TargetSummary) -> usize| {
        (0..summary.targets.len()).any(|target| {
            let skipped = target > 0 && summary.targets[target].skipped.is_some();
            let has = |point: &PointSummary| point.of_target(target).is_some_and(|t| count(t) > 0);
            !skipped && !summary.points.iter().all(has)
        })
    };
    let unseen = lacks(|target| target.valid_trials);
    let unusable = lacks(|target| target.valid_trials + target.disturbed_trials);
    let unclear = required(RequirementOutcome::CantTell);
    let likely = |one: &&Compared| one.likely.is_some_and(|likely| !likely.is_better);
    Outcome {
        unmeasured: (0..summary.targets.len()).any(|target| has_failed(summary, target)),
        requirement_broken: required(RequirementOutcome::Broken),
        worse: judged.iter().any(|one| one.verdict == Verdict::Worse),
        cant_tell: !undecided.is_empty() || unseen || unclear,
        is_likely: !undecided.is_empty()
            && undecided.iter().all(|one| one.likely.is_some())
            && !unusable
            && !unclear,
        likely_worse: judged.iter().any(likely),
    }
}

/// Whether a target failed in all of its trials. What it answered before is no figure: a gate has
/// to stop a program that dies under the load as it stops one that doesn't start.
pub fn has_failed(summary: &Summary, target: usize) -> bool {
    let failed = |trial: &TrialSummary| trial.row.failed_at.is_some() && !trial.is_usable();
    let mut own = summary.trials.iter().filter(|trial| trial.target == target).peekable();
    own.peek().is_some() && own.all(failed)
}

/// The outcome of a search for the highest load. Loads beyond the answer break requirements, as
/// they are meant to; at the answer every one has to hold, and without a load that broke, one that
/// stayed unclear above the answer leaves it open.
fn of_capacity(summary: &Summary, capacity: &CapacitySummary) -> Outcome {
    let Capacity { held, broken } = capacity.found;
    let with = |load: Option<f64>| {
        let probe = capacity.probes.iter().find(|(_, probe)| Some(probe.load) == load);
        let point = probe.map(|(point, _)| *point);
        summary.requirements.iter().filter(move |one| Some(one.point) == point)
    };
    let at_answer = |word| with(held).any(|one| one.row.outcome == word);
    let is_open = |probe: &ProbeRow| {
        probe.outcome == RequirementOutcome::CantTell && held.is_none_or(|held| probe.load > held)
    };
    let has_end = broken.is_some() || !capacity.probes.iter().any(|(_, probe)| is_open(probe));
    Outcome {
        unmeasured: (0..summary.targets.len()).any(|target| has_failed(summary, target)),
        requirement_broken: (held.is_none() && broken.is_some())
            || at_answer(RequirementOutcome::Broken),
        cant_tell: (held.is_none() && broken.is_none())
            || !has_end
            || at_answer(RequirementOutcome::CantTell),
        ..Outcome::default()
    }
}
