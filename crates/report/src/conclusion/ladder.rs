//! A ladder in a sentence.

use findings::{Summary, ladder};
use judge::Verdict;

use crate::number;

/// The ladder in a sentence; `None` when the run is none.
pub(super) fn sentence(summary: &Summary) -> Option<String> {
    let steps = ladder(summary);
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
    let name = |target: usize| &summary.targets[target].name;
    let ratio = match whole.first().map(|one| (one.verdict, one.interval)) {
        Some((Verdict::CantTell { why, .. }, _)) => format!("can't be told ({})", why.words()),
        Some((_, Some(interval))) => format!("is {}×", number::ratio(interval.ratio)),
        _ => "is unseen".to_owned(),
    };
    Some(format!(
        "Of {} steps, {}; {} against {} {ratio} ({}).",
        steps.len() - 1,
        parts.join(", "),
        name(last.target),
        name(steps[0].target),
        summary.run.primary_metric,
    ))
}
