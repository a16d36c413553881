//! The limits reached, for programs.

use findings::LimitsSummary;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct LimitJson<'a> {
    code: &'a str,
    name: &'a str,
    trials: usize,
    first_in: usize,
    judged_trials: usize,
    strength: f64,
    evidence: &'a str,
    advice: Option<&'static str>,
}

/// The first limit, in one word; null when nothing was judged.
pub(super) fn limit(limits: &LimitsSummary) -> Option<&str> {
    let first = limits.first().map_or("none", |first| &first.code);
    (limits.trials > 0).then_some(first)
}

/// Every limit that was reached.
pub(super) fn limits(limits: &LimitsSummary) -> Vec<LimitJson<'_>> {
    let limit = |at: usize| {
        let one = &limits.reached[at];
        LimitJson {
            code: &one.code,
            name: one.name(),
            trials: one.trials,
            first_in: one.first_in,
            judged_trials: limits.trials,
            strength: one.strength,
            evidence: &one.evidence,
            advice: one.limit().map(|limit| limit.advice),
        }
    };
    (0..limits.reached.len()).map(limit).collect()
}
