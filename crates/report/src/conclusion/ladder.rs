//! A ladder in two sentences.

use findings::{Summary, ladder};

use crate::phrases::many;

/// The ladder in two sentences; `None` when the run is none.
pub(super) fn sentence(summary: &Summary) -> Option<String> {
    let mut steps = ladder(summary);
    steps.retain(|step| summary.targets[step.target].skipped.is_none());
    let last = steps.last().filter(|_| steps.len() > 1)?;
    let mut counts = [0_usize; 4];
    for step in &steps[1..] {
        let place = match step.proposed() {
            Some("keep") => 0,
            Some("back out") => 1,
            Some(_) => 2,
            None => 3,
        };
        counts[place] += 1;
    }
    let words = ["better", "worse", "no different", "can't be told"];
    let parts: Vec<String> = counts
        .iter()
        .zip(words)
        .filter(|(count, _)| **count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let whole = if last.first.is_empty() { &last.before } else { &last.first };
    let whole = match whole.first() {
        Some(one) => crate::against::single(summary, one, None),
        None => "The last one is unseen.".to_owned(),
    };
    let steps = many(steps.len() - 1, "step");
    Some(format!("Of {steps}, {}. {whole}", parts.join(", ")))
}
