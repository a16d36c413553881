//! The sentences of a run that is one comparison: its verdict, evidence, and caveats.

use findings::{Compared, Contest, Summary};
use judge::smallest_difference;

use crate::against::{InFull, single};
use crate::number::{percent, ratio, whole_percent};

/// The comparison in a few sentences, the verdict first.
pub(crate) fn sentences(summary: &Summary, contest: &Contest) -> Vec<String> {
    let primary: Vec<&Compared> = summary.comparisons.iter().filter(|one| one.primary).collect();
    let mut lines = Vec::new();
    for compared in &primary {
        let place = match summary.points.len() {
            1 => String::new(),
            _ => {
                format!("{}: ", crate::escape::one_line(&summary.points[compared.point].row.label))
            }
        };
        lines.push(format!("{place}{}", sentence(summary, contest, compared)));
    }
    if primary.is_empty() {
        lines.push("Can't tell: no round has both targets.".to_owned());
        return lines;
    }
    lines.push(evidence(contest));
    lines.extend(compilers(summary, contest));
    lines
}

/// The caveat that two versions of a compiler made the two programs, unless they are
/// the question. Programs of two languages differ in more than that.
fn compilers(summary: &Summary, contest: &Contest) -> Option<String> {
    let of = |target: usize| {
        let facts = summary.facts.get(target)?;
        facts.iter().find(|(name, _)| name == "compiler").map(|(_, value)| value.as_str())
    };
    let (a, b) = (of(0)?, of(1)?);
    let is_rust = |compilers: &str| compilers.contains("rustc");
    let differ = a != b && is_rust(a) == is_rust(b);
    let doubted = differ && contest.row.factor.as_deref() != Some("compiler");
    doubted.then(|| {
        format!(
            "Different compilers made the two programs, so a difference may be theirs: {a}, and \
             {b}; say --factor compiler if that is the question."
        )
    })
}

/// `now has a 2.0 % higher rate than base by compiler (102k/s against 100k/s; between 1.8 and 2.2 %
/// higher, 7 rounds).`
fn sentence(summary: &Summary, contest: &Contest, compared: &Compared) -> String {
    let factor = contest.row.factor.as_ref();
    let by = factor.map_or(String::new(), |factor| format!(" by {factor}"));
    let could_show = could_show(contest, compared);
    single(summary, compared, Some(&InFull { by, could_show }))
}

/// `2.1 % more`, `0.4 % less`, `3.10×`.
pub(crate) fn change(middle: f64) -> String {
    match middle {
        r if !(2.0 / 3.0..1.5).contains(&r) => format!("{}×", ratio(r)),
        r if r >= 1.0 => format!("{} more", percent(r - 1.0)),
        r => format!("{} less", percent(1.0 - r)),
    }
}

/// The smallest detectable difference, for an inconclusive verdict.
fn could_show(contest: &Contest, compared: &Compared) -> Option<String> {
    let interval = compared.interval.filter(|_| compared.disturbed_rounds == 0)?;
    let rounds = u32::try_from(interval.rounds).ok()?;
    let least = smallest_difference(interval.log_deviation, rounds, 1.0 - compared.confidence)?;
    let is_one_of_several = contest.row.rounds_most > 1;
    is_one_of_several.then(|| format!("these rounds could show {}", percent(least - 1.0)))
}

/// The number of looks, and the error rate of such verdicts.
fn evidence(contest: &Contest) -> String {
    let looks: usize = contest.looks.iter().map(Vec::len).sum();
    let times = match looks {
        0 | 1 => "once".to_owned(),
        2 => "twice".to_owned(),
        looks => format!("{looks} times"),
    };
    let error = whole_percent(contest.row.error);
    let said = match (contest.row.least_shown, &contest.row.least_shown_from) {
        (Some(least), Some(from)) => {
            format!(" Said beforehand, from {from}: {} can be shown.", percent(least))
        }
        _ => String::new(),
    };
    format!("Looked at {times}; at most {error} of such verdicts call a difference wrongly.{said}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_changes_are_percentages_and_large_ones_are_factors() {
        assert_eq!(
            [change(1.021), change(0.996), change(3.1)],
            ["2.1 % more", "0.40 % less", "3.10×"]
        );
    }
}
