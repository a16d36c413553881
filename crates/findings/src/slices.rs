//! The slices of trials: those measured again, and drift, whether a target got slower
//! or faster from the first to the last.

use judge::{Comparison, Direction, Interval, Rule, Verdict, judge_family, paired_ratio};
use ledger::{RunRow, SliceRow, TrialRow, Validity};

/// The rate in the last third of the slices against that in the first, over rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// The rate of the last third ÷ that of the first.
    pub interval: Interval,
    /// Whether the last third is better or worse; judged over all targets and points of the run.
    pub verdict: Verdict,
}

impl Drift {
    /// Whether a drift was found.
    pub fn is_found(&self) -> bool {
        matches!(self.verdict, Verdict::Better | Verdict::Worse)
    }
}

/// The counted slices of a trial, and the number of those set aside and measured again.
///
/// The lab sets disturbed slices aside as long as it may, and counts them from then on. So those
/// set aside are the first disturbed ones, as many as the measured time leaves out.
pub(crate) fn counted<'a>(trial: &TrialRow, slices: &[&'a SliceRow]) -> (Vec<&'a SliceRow>, usize) {
    let all_ns: u64 = slices.iter().map(|slice| slice.duration_ns).sum();
    let mut left_out_ns = all_ns.saturating_sub(trial.measured_ns);
    let mut again = 0;
    let kept = slices.iter().copied().filter(|slice| {
        let aside = slice.validity == Validity::Disturbed
            && slice.duration_ns > 0
            && slice.duration_ns <= left_out_ns;
        if aside {
            left_out_ns -= slice.duration_ns;
            again += 1;
        }
        !aside
    });
    (kept.collect(), again)
}

/// The rates of the first and the last third of a trial's counted slices; `None` when there are
/// fewer than three.
pub(crate) fn thirds(counted: &[&SliceRow]) -> Option<(f64, f64)> {
    let third = counted.len() / 3;
    let rate = |slices: &[&SliceRow]| {
        let operations: u64 = slices.iter().map(|slice| slice.operations).sum();
        let duration_ns: u64 = slices.iter().map(|slice| slice.duration_ns).sum();
        operations as f64 * 1e9 / duration_ns as f64
    };
    (third > 0).then(|| (rate(&counted[..third]), rate(&counted[counted.len() - third..])))
}

/// Judges the drift of each target at each point: `rounds` holds a list per target and point of
/// the [`thirds`] of its valid trials. `None` where it wasn't sliced finely enough.
pub(crate) fn drifts(run: &RunRow, rounds: &[Vec<(f64, f64)>]) -> Vec<Option<Drift>> {
    let rule = Rule { same_within: run.same_within, confidence: run.confidence };
    let intervals = rounds.iter().map(|rounds| {
        let (first, last): (Vec<f64>, Vec<f64>) = rounds.iter().copied().unzip();
        paired_ratio(&last, &first, rule.confidence)
    });
    let direction = Direction::HigherIsBetter;
    let family: Vec<Comparison> =
        intervals.map(|interval| Comparison { interval, direction, barred: None }).collect();
    let judged = judge_family(&family, &rule);
    let drift = |(one, verdict): (&Comparison, Verdict)| {
        one.interval.map(|interval| Drift { interval, verdict })
    };
    family.iter().zip(judged).map(drift).collect()
}
