//! A ladder: each rung against the one before and against the first, the decisions, and where
//! its CPU time goes.
//!
//! All comparisons of the primary metric (rungs × points, against the one before and against the
//! first) are one family for Holm's correction.

use std::collections::BTreeMap;

use ledger::{Decision, ProfileRow, RungRow, TargetRow};

use crate::compare::Compared;
use crate::summary::Summary;

/// One rung.
#[derive(Debug)]
pub struct Step<'a> {
    /// Its target.
    pub target: usize,
    /// Its description and decision.
    pub row: &'a RungRow,
    /// Against the rung before and against the first one, by point; empty for the first rung, and
    /// `first` also for the second, whose rung before is the first.
    pub before: Vec<Compared>,
    /// Against the first one.
    pub first: Vec<Compared>,
    /// Where its CPU time goes; `None` when it wasn't profiled.
    pub profile: Option<Profile>,
}

/// Where the CPU time of a rung goes, over several profiles.
#[derive(Debug, PartialEq)]
pub struct Profile {
    /// Their number.
    pub times: usize,
    /// Whether all of them have the same function at their head, and it takes about as much in
    /// each. Otherwise nothing should be concluded from it.
    pub is_stable: bool,
    /// The functions at the head, by their mean share.
    pub functions: Vec<FunctionShare>,
}

/// One function over several profiles. A profile without it counts as none of its time.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionShare {
    /// Its name.
    pub name: String,
    /// Its mean share of the samples.
    pub mean: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub most: f64,
}

/// Functions shown of a profile.
const FUNCTIONS_SHOWN: usize = 5;

/// A share that differs by more than this part of its mean from profile to profile is not stable.
const MAX_SPREAD: f64 = 0.5;

/// Profiles under which nothing is called stable: two may agree by chance.
const MIN_PROFILES: usize = 3;

impl FunctionShare {
    /// Whether it takes about as much in each profile.
    pub fn is_stable(&self) -> bool {
        self.least > 0.0 && self.most - self.least <= MAX_SPREAD * self.mean
    }
}

impl Step<'_> {
    /// The decision that the verdicts against the rung before (or the first) suggest, as long as
    /// none was made; `None` for the first rung and where they disagree or are inconclusive.
    pub fn proposed(&self) -> Option<&'static str> {
        let codes: Vec<&str> = self.before.iter().map(|one| one.verdict.code()).collect();
        let any = |code: &str| codes.contains(&code);
        match (any("better"), any("worse")) {
            (true, false) => Some("keep"),
            (false, true) => Some("back out"),
            (false, false) if !codes.is_empty() && codes.iter().all(|code| *code == "same") => {
                Some("no difference")
            }
            _ => None,
        }
    }

    /// The decision, with its reason.
    pub fn decided(&self) -> Option<(Decision, &str)> {
        Some((self.row.decision?, self.row.reason.as_deref().unwrap_or_default()))
    }
}

/// The comparisons of a ladder, each a point, a and b: every rung that is measured at every point
/// against the one before and, from the third on, the first.
pub(crate) fn rung_pairs(measured: &[usize], points: usize) -> Vec<(usize, usize, usize)> {
    let mut pairs = Vec::new();
    for (index, target) in measured.iter().enumerate().skip(1) {
        for point in 0..points {
            pairs.push((point, *target, measured[index - 1]));
            if index > 1 {
                pairs.push((point, *target, measured[0]));
            }
        }
    }
    pairs
}

/// The targets of those rungs that are measured: one that was skipped, or not tried, is none.
pub(crate) fn measured(rungs: &[(usize, RungRow)], targets: &[TargetRow]) -> Vec<usize> {
    let all = rungs.iter().map(|(target, _)| *target);
    all.filter(|target| targets[*target].skipped.is_none()).collect()
}

/// The rungs of a run, in their order; empty when it is no ladder.
pub fn ladder(summary: &Summary) -> Vec<Step<'_>> {
    let rungs = &summary.rungs;
    let compared = &summary.rung_comparisons;
    let measured = measured(rungs, &summary.targets);
    let against = |a: usize, b: Option<usize>| -> Vec<Compared> {
        let wanted = |one: &&Compared| one.a == a && Some(one.b) == b;
        compared.iter().filter(wanted).cloned().collect()
    };
    let step = |index: usize| {
        let (target, row) = &rungs[index];
        let place = measured.iter().position(|one| one == target);
        let before = place.and_then(|place| place.checked_sub(1)).map(|before| measured[before]);
        let first = place.filter(|place| *place > 1).map(|_| measured[0]);
        Step {
            target: *target,
            row,
            before: against(*target, before),
            first: against(*target, first),
            profile: profile(&summary.profiles, *target),
        }
    };
    (0..rungs.len()).map(step).collect()
}

fn profile(all: &[(usize, ProfileRow)], target: usize) -> Option<Profile> {
    let mut profiles: BTreeMap<u32, Vec<&ProfileRow>> = BTreeMap::new();
    for (_, row) in all.iter().filter(|(of, _)| *of == target) {
        profiles.entry(row.ordinal).or_default().push(row);
    }
    let times = profiles.len();
    let mut shares: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for row in profiles.values().flatten() {
        shares.entry(&row.function).or_default().push(row.share);
    }
    let share = |(name, seen): (&&str, &Vec<f64>)| FunctionShare {
        name: (*name).to_owned(),
        mean: seen.iter().sum::<f64>() / times as f64,
        least: match seen.len() == times {
            true => seen.iter().copied().fold(f64::INFINITY, f64::min),
            false => 0.0,
        },
        most: seen.iter().copied().fold(0.0, f64::max),
    };
    let mut functions: Vec<FunctionShare> = shares.iter().map(share).collect();
    functions.sort_by(|a, b| b.mean.total_cmp(&a.mean));
    let head = functions.first()?;
    let heads = profiles.values().filter_map(|rows| {
        rows.iter().max_by(|a, b| a.share.total_cmp(&b.share)).map(|row| &row.function)
    });
    let agree = heads.clone().all(|name| *name == head.name);
    let is_stable = times >= MIN_PROFILES && agree && head.is_stable();
    functions.truncate(FUNCTIONS_SHOWN);
    Some(Profile { times, is_stable, functions })
}
