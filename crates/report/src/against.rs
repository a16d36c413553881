//! What the primary metric says of the first target beside another one, in a sentence; what went
//! the other way by the other metrics is never left out, but for rate and latency of a program's
//! runs where a figure of its own is the primary metric.

use findings::{Compared, LikelyCompared, OF_RUNS, Summary, TargetSummary};
use judge::{Direction, Inconclusive, Metric, Verdict};

use crate::causes::why_text;
use crate::number::{in_one_unit, whole_percent};
use crate::phrases::{bound, disturbance, many};
use crate::wording::{Span, between, compared, difference, either, noun, same};

/// The first target beside one other at all points; `None` where they were never measured together.
pub(crate) fn sentence(summary: &Summary, other: usize) -> Option<String> {
    let primary = summary.comparisons.iter().filter(|one| one.primary && one.b == other);
    let family: Vec<&Compared> = primary.collect();
    match family[..] {
        [] => None,
        [one] => Some(single(summary, one, None)),
        _ => Some(several(summary, &family)),
    }
}

/// What a run that is one comparison says besides.
pub(crate) struct InFull {
    /// The factor that differs: ` by compiler`.
    pub(crate) by: String,
    /// What these rounds could have shown.
    pub(crate) could_show: Option<String>,
}

/// What shows more than two processes.
const SEVERAL_STARTS: &str = "restart them and ask again, or let a suite start them (its targets' \
                              `command`), anew in each round";

/// One comparison: `loadline takes 22 % less CPU per operation than memcached (12.2 µs against
/// 15.8 µs); rate 13 % lower, p99 24 % higher.`
pub(crate) fn single(summary: &Summary, one: &Compared, in_full: Option<&InFull>) -> String {
    let [a, b] = [one.a, one.b].map(|target| &summary.targets[target].name);
    let by = in_full.map_or("", |more| more.by.as_str());
    let what = match (one.verdict, one.interval) {
        (Verdict::CantTell { why: Inconclusive::OneStart, .. }, Some(interval)) => {
            let what = compared(&one.metric, Span::one(interval.ratio), b) + by;
            let details: Vec<String> =
                [figures(summary, one), evidence(one)].into_iter().flatten().collect();
            return format!(
                "These two processes differ: {a} {what} ({}){}. Whether the programs do takes \
                 several starts of each: {SEVERAL_STARTS}.",
                details.join("; "),
                besides(summary, &[one])
            );
        }
        (Verdict::CantTell { why, .. }, _) => match one.likely {
            Some(likely) => return likely_single(summary, one, &likely, why, in_full),
            None => {
                let either = either(&one.metric, b);
                return format!(
                    "It can't be told whether {a} {either}{by}{}{}.",
                    undecided(summary, one, in_full),
                    besides(summary, &[one])
                );
            }
        },
        (Verdict::Same, _) => {
            let within = whole_percent(summary.run.same_within);
            format!("{}{by} within ±{within}", same(&one.metric, b))
        }
        (_, Some(interval)) => compared(&one.metric, Span::one(interval.ratio), b) + by,
        (verdict, None) => format!("is {} than {b}{by}", verdict.code()),
    };
    let details: Vec<String> =
        [figures(summary, one), direction(&one.metric), in_full.and_then(|_| evidence(one))]
            .into_iter()
            .flatten()
            .collect();
    let details = match details.is_empty() {
        true => String::new(),
        false => format!(" ({})", details.join("; ")),
    };
    format!("{a} {what}{details}{}.", besides(summary, &[one]))
}

/// One comparison that is likely only: `loadline likely has a 4.0 % higher rate than memcached
/// (104/s against 100/s; between 3 and 5 % higher; 2 of 5 rounds disturbed, by 2.0 to 14 %); no
/// strict verdict (disturbed rounds).`
fn likely_single(
    summary: &Summary,
    one: &Compared,
    likely: &LikelyCompared,
    why: Inconclusive,
    in_full: Option<&InFull>,
) -> String {
    let [a, b] = [one.a, one.b].map(|target| &summary.targets[target].name);
    let interval = likely.found.interval;
    let what = compared(&one.metric, Span::one(interval.ratio), b);
    let by = in_full.map_or("", |more| more.by.as_str());
    let between = between(&one.metric, interval.low, interval.high);
    let could = in_full.and_then(|more| more.could_show.clone());
    // The ratio is that of both sides disturbed alike, which need not be that of the figures.
    let (measured, between) = match likely.disturbed_rounds {
        0 => (figures(summary, one), between),
        _ => (
            figures(summary, one).map(|both| format!("measured {both}")),
            format!("with equal disturbance {between}"),
        ),
    };
    let details: Vec<String> =
        [measured, Some(between), Some(disturbance(likely)), could].into_iter().flatten().collect();
    format!(
        "{a} likely {what}{by} ({}); no strict verdict ({}){}.",
        details.join("; "),
        why.words(),
        besides(summary, &[one])
    )
}

/// `12.2 µs against 15.8 µs`, as the targets' lines have them.
fn figures(summary: &Summary, one: &Compared) -> Option<String> {
    let figure = |target: usize| {
        let target = summary.points[one.point].of_target(target)?;
        crate::content::value(summary, target, &one.metric)
    };
    let [a, b] = in_one_unit([figure(one.a)?, figure(one.b)?], one.metric.unit);
    Some(format!("{a} against {b}"))
}

/// Which direction is good, of a figure whose name doesn't tell readers.
fn direction(metric: &Metric) -> Option<String> {
    let way = match metric.direction {
        Direction::HigherIsBetter => "higher is better",
        Direction::LowerIsBetter => "lower is better",
    };
    metric.sql.is_none().then(|| way.to_owned())
}

/// `between 1.8 and 2.2 % higher, 7 rounds`.
fn evidence(one: &Compared) -> Option<String> {
    let interval = one.interval?;
    let rounds = many(interval.rounds, "round");
    let rounds = match one.disturbed_rounds {
        0 => rounds,
        some => format!("{rounds}, {some} of them disturbed"),
    };
    Some(match interval.high.is_finite() {
        true => format!("{}, {rounds}", between(&one.metric, interval.low, interval.high)),
        false => format!("{}, {rounds}", difference(&one.metric, Span::one(interval.ratio))),
    })
}

/// What was seen where there is no verdict, why there is none, and what to do: ` (interval too
/// wide): between 5 % less and 20 % more, 5 rounds; about 12 more rounds would tell`.
fn undecided(summary: &Summary, one: &Compared, in_full: Option<&InFull>) -> String {
    let Verdict::CantTell { why, more_rounds } = one.verdict else { return String::new() };
    let seen = match (one.bound, one.interval) {
        (Some(_), Some(interval)) => {
            Some(format!("{}{}", bound(one), difference(&one.metric, Span::one(interval.ratio))))
        }
        _ => evidence(one),
    };
    let advice = advice(summary, one, why, more_rounds);
    let could = in_full.and_then(|more| more.could_show.clone());
    let parts: Vec<String> = [seen, advice, could].into_iter().flatten().collect();
    let colon = if parts.is_empty() { "" } else { ": " };
    format!(" ({}){colon}{}", why.words(), parts.join("; "))
}

/// What to do about it.
fn advice(
    summary: &Summary,
    one: &Compared,
    why: Inconclusive,
    more_rounds: Option<u32>,
) -> Option<String> {
    if let Some(more) = more_rounds {
        return Some(format!("about {} would tell", many(more as usize, "more round")));
    }
    let words = match why {
        Inconclusive::TooFewRounds => "five rounds are the least: --set rounds.at_least=5",
        Inconclusive::TooWide => "longer rounds (rounds.measure) or pinned cores (cpus) vary less",
        Inconclusive::MultipleComparisons => "more rounds, or fewer points in a run, would tell",
        Inconclusive::OneStart => SEVERAL_STARTS,
        Inconclusive::GeneratorBound => {
            "give the load more threads and CPUs, or judge by server.cpu_ns_per_op"
        }
        Inconclusive::Overloaded => {
            "a lower rate would tell; `loadline capacity` finds the highest"
        }
        // A clear difference that isn't likely either.
        Inconclusive::DisturbedRounds
            if one.likely.is_none()
                && one.interval.is_some_and(|it| !(it.low..=it.high).contains(&1.0)) =>
        {
            "what disturbs may have moved it as far: end that, or compare all the same: [rounds] \
             disturbed = \"ignore\""
        }
        Inconclusive::DisturbedRounds => {
            "end what disturbs, or compare all the same: [rounds] disturbed = \"ignore\""
        }
        Inconclusive::Unseen => "`loadline doctor` says what this host shows",
        Inconclusive::InvalidTrials => return invalid(summary, one),
    };
    Some(words.to_owned())
}

/// Why most trials of the two targets that don't count are invalid.
fn invalid(summary: &Summary, one: &Compared) -> Option<String> {
    let first = |target: usize| {
        let here = summary.trials_at(one.point).map(|(_, trial)| trial);
        let own = here.filter(|trial| trial.target == target);
        findings::invalid(own).into_iter().next().map(|cause| (target, cause))
    };
    let causes = [one.b, one.a].into_iter().filter_map(first);
    let (target, cause) = causes.max_by_key(|(_, cause)| cause.rounds.len())?;
    let (name, rounds) = (&summary.targets[target].name, many(cause.rounds.len(), "round"));
    let why = why_text(&cause.why);
    let why = why.trim_start_matches(&format!("{name}: "));
    Some(format!("{name} in {rounds}: {why}"))
}

/// The other metrics that went the other way than the primary one, or all that were decided where
/// it wasn't: `; rate 13 % lower, p99 24 % higher`.
fn besides(summary: &Summary, family: &[&Compared]) -> String {
    let beside = |of: &Compared| {
        let both = (of.a, of.b);
        let here = summary.comparisons_at(of.point);
        let own = of.metric.suite.clone();
        let others = here.filter(move |one| !one.primary && (one.a, one.b) == both);
        others.filter(move |one| !is_of_runs(summary, &own, one))
    };
    let mut metrics: Vec<&Metric> = Vec::new();
    for one in family.iter().flat_map(|of| beside(of)) {
        if !metrics.contains(&&one.metric) {
            metrics.push(&one.metric);
        }
    }
    let said = |metric: &Metric| {
        let found: Vec<(Option<bool>, Decided)> = family
            .iter()
            .filter_map(|of| {
                let one = beside(of).find(|one| one.metric == *metric)?;
                Some((decided(of).map(|of| of.is_better), decided(one)?))
            })
            .collect();
        let went_other = |(primary, one): &(Option<bool>, Decided)| *primary != Some(one.is_better);
        let ways: Vec<String> = [false, true]
            .into_iter()
            .filter_map(|is_more| {
                let here = found.iter().map(|(_, one)| one).filter(|one| one.is_more() == is_more);
                let here: Vec<&Decided> = here.collect();
                let span = Span::of(here.iter().map(|one| one.ratio))?;
                let likely = if here.iter().all(|one| one.is_likely) { "likely " } else { "" };
                let places = match family.len() {
                    1 => String::new(),
                    _ => format!(" at {}", here.len()),
                };
                Some(format!("{likely}{}{places}", difference(metric, span)))
            })
            .collect();
        let is_said = found.iter().any(went_other);
        is_said.then(|| format!("{} {}", noun(metric), ways.join(" and ")))
    };
    let all: Vec<String> = metrics.into_iter().filter_map(said).collect();
    if all.is_empty() { String::new() } else { format!("; {}", all.join(", ")) }
}

/// Whether this is the rate, the latency or the CPU time of runs of a program whose own figure is
/// the primary one: most of these run for a given time, whatever they find.
fn is_of_runs(summary: &Summary, own: &str, one: &Compared) -> bool {
    let name = &*one.metric.suite;
    let is_of_time =
        name == "rate_per_s" || name.starts_with("latency.") || name.ends_with("_ns_per_op");
    let target = summary.points[one.point].of_target(one.a);
    let is_own = |target: &TargetSummary| target.is_batch() && target.reports(own);
    is_of_time && !OF_RUNS.contains(&own) && target.is_some_and(is_own)
}

/// A comparison that is decided, or likely.
struct Decided {
    is_better: bool,
    is_likely: bool,
    ratio: f64,
}

impl Decided {
    fn is_more(&self) -> bool {
        self.ratio > 1.0
    }
}

fn decided(one: &Compared) -> Option<Decided> {
    let ratio = one.interval.map(|interval| interval.ratio);
    match (one.verdict, one.likely) {
        (Verdict::Better | Verdict::Worse, _) => Some(Decided {
            is_better: one.verdict == Verdict::Better,
            is_likely: false,
            ratio: ratio?,
        }),
        (Verdict::CantTell { .. }, Some(likely)) => Some(Decided {
            is_better: likely.is_better,
            is_likely: true,
            ratio: likely.found.interval.ratio,
        }),
        _ => None,
    }
}

/// A comparison at several points: `loadline takes 12 to 90 % less CPU per operation than memcached
/// at 5 of 6 points, 5.0 % more at 1; rate 3 to 9 % higher at 4 and 2.0 % lower at 1.`
fn several(summary: &Summary, family: &[&Compared]) -> String {
    let (metric, all) = (&family[0].metric, family.len());
    let [a, b] = [family[0].a, family[0].b].map(|target| &summary.targets[target].name);
    let mut clauses: Vec<String> = Vec::new();
    let with = |verdict: Verdict| -> Vec<&Compared> {
        family.iter().copied().filter(|one| one.verdict == verdict).collect()
    };
    for found in [with(Verdict::Better), with(Verdict::Worse)] {
        let ratios = found.iter().filter_map(|one| Some(one.interval?.ratio));
        let Some(span) = Span::of(ratios) else { continue };
        clauses.push(match clauses.is_empty() {
            true => format!("{}{}", compared(metric, span, b), places(found.len(), all)),
            false => format!("{} at {}", difference(metric, span), found.len()),
        });
    }
    let found = with(Verdict::Same).len();
    let within = whole_percent(summary.run.same_within);
    if found > 0 {
        clauses.push(match clauses.is_empty() {
            true => format!("{} within ±{within}{}", same(metric, b), places(found, all)),
            false => format!("the same within ±{within} at {found}"),
        });
    }
    let is_open = |one: &&Compared| matches!(one.verdict, Verdict::CantTell { .. });
    let (likely, open): (Vec<&Compared>, Vec<&Compared>) =
        family.iter().copied().filter(is_open).partition(|one| one.likely.is_some());
    for is_better in [true, false] {
        let found: Vec<Decided> = likely.iter().filter_map(|one| decided(one)).collect();
        let found: Vec<&Decided> = found.iter().filter(|one| one.is_better == is_better).collect();
        let Some(span) = Span::of(found.iter().map(|one| one.ratio)) else { continue };
        clauses.push(match clauses.is_empty() {
            true => format!("likely {}{}", compared(metric, span, b), places(found.len(), all)),
            false => format!("likely {} at {}", difference(metric, span), found.len()),
        });
    }
    let mut said = match clauses.is_empty() {
        false => format!("{a} {}", clauses.join(", ")),
        true => format!(
            "It can't be told at any of {all} points whether {a} {} ({})",
            either(metric, b),
            reasons(&open)
        ),
    };
    if !likely.is_empty() {
        said += &format!("; no strict verdict at {} ({})", likely.len(), reasons(&likely));
    }
    if !clauses.is_empty() && !open.is_empty() {
        said += &format!("; it can't be told at {} ({})", open.len(), reasons(&open));
    }
    if let [one, ..] = open[..]
        && let Verdict::CantTell { why, more_rounds } = one.verdict
    {
        let advice = advice(summary, one, why, more_rounds);
        said += &advice.map_or(String::new(), |words| format!("; {words}"));
    }
    format!("{said}{}.", besides(summary, family))
}

/// ` at 3 of 4 points`.
fn places(found: usize, all: usize) -> String {
    match found == all {
        true => format!(" at all {all} points"),
        false => format!(" at {found} of {all} points"),
    }
}

/// The reasons of open comparisons, each once.
fn reasons(open: &[&Compared]) -> String {
    let mut words: Vec<&str> = Vec::new();
    for one in open {
        if let Verdict::CantTell { why, .. } = one.verdict
            && !words.contains(&why.words())
        {
            words.push(why.words());
        }
    }
    words.join(", ")
}
