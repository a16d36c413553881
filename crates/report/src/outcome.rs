//! The outcome of a run, from which the exit code follows.

use judge::{Capacity, Verdict};
use ledger::RequirementOutcome;

use crate::summary::Summary;

/// The outcome of a run, from which the exit code follows. Several may be true at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// A requirement was broken.
    pub requirement_broken: bool,
    /// The first target is worse than another by the primary metric, or a rung of a ladder worse
    /// than the one before it. It is a finding like any
    /// other, unless the user asked to fail on it.
    pub worse: bool,
    /// A verdict of the primary metric or a requirement is inconclusive, or a target that was not
    /// skipped has no valid trial at some point.
    pub cant_tell: bool,
}

impl Outcome {
    /// The exit code: 3 when a requirement is broken (or the first target is worse and
    /// `fail_on_worse`), else 4 when something is inconclusive or invalid, else 0.
    pub fn exit_code(self, fail_on_worse: bool) -> u8 {
        if self.requirement_broken || (fail_on_worse && self.worse) {
            3
        } else if self.cant_tell {
            4
        } else {
            0
        }
    }

    /// The outcome as one lower-case word for JSON: `broken`, `cant_tell` or `fine`.
    pub fn code(self) -> &'static str {
        match self.exit_code(false) {
            3 => "broken",
            4 => "cant_tell",
            _ => "fine",
        }
    }
}

/// The outcome of a run, from which the exit code follows.
pub fn outcome(summary: &Summary) -> Outcome {
    if let Some(capacity) = &summary.capacity {
        let Capacity { held, broken } = capacity.found;
        return Outcome {
            requirement_broken: held.is_none() && broken.is_some(),
            worse: false,
            cant_tell: held.is_none() && broken.is_none(),
        };
    }
    let required = |word| summary.requirements.iter().any(|one| one.row.outcome == word);
    let steps = crate::ladder::ladder(summary);
    // Of a ladder each rung is judged, against the one before it.
    let verdicts: Vec<Verdict> = match steps.is_empty() {
        false => steps.iter().flat_map(|step| &step.before).map(|one| one.verdict).collect(),
        true => {
            let primary = summary.comparisons.iter().filter(|compared| compared.primary);
            primary.map(|one| one.verdict).collect()
        }
    };
    let undecided = verdicts.iter().any(|verdict| matches!(verdict, Verdict::CantTell { .. }));
    // A target that was begun at no point at all is as unjudged as an invalid one.
    let unseen = (0..summary.targets.len()).any(|target| {
        let skipped = target > 0 && summary.targets[target].skipped.is_some();
        let valid = |point: &crate::point_summary::PointSummary| {
            point.of_target(target).is_some_and(|one| one.valid_trials > 0)
        };
        !skipped && !summary.points.iter().all(valid)
    });
    Outcome {
        requirement_broken: required(RequirementOutcome::Broken),
        worse: verdicts.contains(&Verdict::Worse),
        cant_tell: undecided || unseen || required(RequirementOutcome::CantTell),
    }
}
