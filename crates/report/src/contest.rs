//! The sentences of a run that is one comparison: its verdict, evidence, and caveats.

use findings::{Compared, Contest, Summary};
use judge::{Verdict, smallest_difference};

use crate::number::{count, percent, ratio, whole_percent};
use crate::phrases::value;

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

/// `now is worse than base: server.cpu_ns_per_op 2.1 % more [1.5 % more, 2.7 % more], 18 rounds.`
fn sentence(summary: &Summary, contest: &Contest, compared: &Compared) -> String {
    let a = &summary.targets[compared.a].name;
    let b = &summary.targets[compared.b].name;
    let by = match &contest.row.factor {
        Some(factor) => format!(" by {factor}"),
        None => String::new(),
    };
    let figures = figures(compared);
    match compared.verdict {
        Verdict::Better => format!("{a} is better than {b}{by}: {figures}."),
        Verdict::Worse => format!("{a} is worse than {b}{by}: {figures}."),
        Verdict::Same => {
            let within = whole_percent(summary.run.same_within);
            format!("{a} and {b} are the same within ±{within}: {figures}.")
        }
        Verdict::CantTell { why, more_rounds } => {
            let more = match more_rounds {
                Some(1) => "; about 1 more round would tell".to_owned(),
                Some(more) => {
                    format!("; about {} more rounds would tell", count(u64::from(more)))
                }
                None => String::new(),
            };
            let could = could_show(contest, compared);
            let likely = crate::phrases::likely(summary, compared);
            let likely = likely.map_or(String::new(), |words| format!("; {words}"));
            format!(
                "It can't be told whether {a} is better than {b} ({}): \
                 {figures}{more}{could}{likely}.",
                why.words()
            )
        }
    }
}

/// `rate_per_s 2.1 % more [1.5 % more, 2.7 % more], 18 rounds`.
fn figures(compared: &Compared) -> String {
    let name = &compared.metric.suite;
    let Some(interval) = compared.interval else { return format!("{name} unseen") };
    let rounds = match interval.rounds {
        1 => "1 round".to_owned(),
        rounds => format!("{rounds} rounds"),
    };
    let rounds = match compared.disturbed_rounds {
        0 => rounds,
        disturbed => format!("{rounds}, {disturbed} of them disturbed"),
    };
    let bound = crate::phrases::bound(compared);
    if !interval.high.is_finite() {
        return format!("{name} {bound}{}, {rounds}", change(interval.ratio));
    }
    format!("{name} {bound}{}, {rounds}", changes(interval.ratio, interval.low, interval.high))
}

/// A ratio with its interval, in per cent when it is near 1.
pub(crate) fn changes(middle: f64, low: f64, high: f64) -> String {
    if (2.0 / 3.0..1.5).contains(&middle) {
        return format!("{} [{}, {}]", change(middle), signed(low), signed(high));
    }
    format!("{}× [{}, {}]", ratio(middle), ratio(low), ratio(high))
}

/// `2.1 % more`, `0.4 % less`, `3.10×`.
pub(crate) fn change(middle: f64) -> String {
    match middle {
        r if !(2.0 / 3.0..1.5).contains(&r) => format!("{}×", ratio(r)),
        r if r >= 1.0 => format!("{} more", percent(r - 1.0)),
        r => format!("{} less", percent(1.0 - r)),
    }
}

fn signed(ratio: f64) -> String {
    let difference = ratio - 1.0;
    let sign = if difference < 0.0 { "−" } else { "+" };
    format!("{sign}{}", percent(difference.abs()))
}

/// The smallest detectable difference, for an inconclusive verdict.
fn could_show(contest: &Contest, compared: &Compared) -> String {
    let least = || {
        let interval = compared.interval.filter(|_| compared.disturbed_rounds == 0)?;
        let rounds = u32::try_from(interval.rounds).ok()?;
        smallest_difference(interval.log_deviation, rounds, 1.0 - compared.confidence)
    };
    match least() {
        Some(least) if contest.row.rounds_most > 1 => {
            format!("; these rounds could show {}", percent(least - 1.0))
        }
        _ => String::new(),
    }
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

/// The table of one point: a line per metric, with the results of other methods.
pub(crate) fn table(summary: &Summary, point: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for compared in summary.comparisons_at(point) {
        let Some(interval) = compared.interval else { continue };
        let beside = compared.beside;
        let (a, b) = beside.medians.map_or_else(
            || ("unseen".to_owned(), "unseen".to_owned()),
            |(a, b)| (value(a, &compared.metric), value(b, &compared.metric)),
        );
        let of_medians = beside.medians.map_or(String::new(), |(a, b)| ratio(a / b));
        rows.push(vec![
            compared.metric.suite.to_string(),
            a,
            b,
            format!(
                "{}{} [{}, {}]",
                crate::phrases::bound(compared),
                ratio(interval.ratio),
                ratio(interval.low),
                ratio(interval.high)
            ),
            of_medians,
            beside.shift.map_or(String::new(), ratio),
            beside.rank_p.map_or(String::new(), |p| format!("{p:.2}")),
            match compared.primary {
                true => crate::phrases::verdict(compared.verdict, None),
                false => crate::phrases::verdict_beside(compared),
            },
        ]);
    }
    rows.extend(program_sizes(summary));
    let confidence = summary.comparisons_at(point).next().map_or(0.0, |one| one.confidence);
    let head = vec![
        "medians over rounds".to_owned(),
        crate::escape::one_line(&summary.targets[0].name),
        summary.targets.get(1).map_or(String::new(), |one| crate::escape::one_line(&one.name)),
        format!("ratio [{}]", confidence_words(confidence)),
        "medians".to_owned(),
        "shift".to_owned(),
        "rank p".to_owned(),
        String::new(),
    ];
    rows.insert(0, head);
    let lines = crate::phrases::align(&rows, str::to_owned);
    lines.into_iter().map(|line| format!("  {line}")).collect()
}

/// `97.5 %`, `99.87 %`.
pub(crate) fn confidence_words(confidence: f64) -> String {
    let text = format!("{:.2}", confidence * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The sizes of the two programs.
fn program_sizes(summary: &Summary) -> Option<Vec<String>> {
    let bytes = |target: usize| {
        let facts = summary.facts.get(target)?;
        let fact = facts.iter().find(|(name, _)| name == "program_bytes")?;
        fact.1.parse::<f64>().ok().filter(|bytes| *bytes > 0.0)
    };
    let (a, b) = (bytes(0)?, bytes(1)?);
    let sizes = [crate::number::bytes(a), crate::number::bytes(b), ratio(a / b)];
    Some(["program".to_owned()].into_iter().chain(sizes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_changes_are_percentages_and_large_ones_are_factors() {
        assert_eq!(changes(1.021, 1.015, 1.027), "2.1 % more [+1.5 %, +2.7 %]");
        assert_eq!(changes(0.996, 0.98, 1.012), "0.40 % less [−2.0 %, +1.2 %]");
        assert_eq!(changes(10.4, 10.0, 10.9), "10.4× [10.0, 10.9]");
        assert_eq!(confidence_words(0.975), "97.5 %");
        assert_eq!(confidence_words(0.999_87), "99.99 %");
    }
}
