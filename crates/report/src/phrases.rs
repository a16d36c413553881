//! Phrases that several kinds of report share: figures of a target, verdicts and ratios.

use findings::{
    Bound, CONNECTIONS_BROKEN, Compared, EventKind, LikelyCompared, PointSummary, Summary,
    TargetSummary,
};
use judge::{Inconclusive, Likely, LikelyInterval, Metric, SeriesInterval, Verdict};

use crate::document::Role;
use crate::escape::one_line;
use crate::number::{
    bytes, count, duration, percent, plain, rate, ratio, ratio_within, whole_percent,
};

/// The rate with its interval: `6.91M/s ±1.9 %`; `None` when it is unseen.
pub(crate) fn rate_of(target: &TargetSummary) -> Option<String> {
    let mean = target.rate.map(|interval| mean_of(&interval, rate));
    mean.or_else(|| target.figures.rate_per_s.map(rate))
}

/// A mean with half the width of its confidence interval.
pub(crate) fn mean_of(interval: &SeriesInterval, shown: impl Fn(f64) -> String) -> String {
    shown(interval.mean) + &width(Some(*interval))
}

/// The width of an interval behind its mean. Of two rounds that differ a lot it is thousands of
/// percent, which say no more than that it isn't known.
pub(crate) fn width(interval: Option<SeriesInterval>) -> String {
    match interval.map_or(f64::NAN, |interval| interval.relative_half_width) {
        half if half <= 10.0 => format!(" ±{}", percent(half)),
        half if half.is_finite() => " ±over 1,000 %".to_owned(),
        _ => String::new(),
    }
}

/// The run's primary metric, which verdicts are about, unless it is among those that are shown.
pub(crate) fn primary_unless<'a>(summary: &'a Summary, shown: &[&str]) -> Option<&'a Metric> {
    summary.primary().filter(|metric| !shown.contains(&&*metric.suite))
}

/// The words, or `unseen` when there are none.
pub(crate) fn unseen(words: Option<String>) -> String {
    words.unwrap_or_else(|| "unseen".to_owned())
}

/// The check of the answers of all trials: `0 wrong of 1.5 M checked, 300 unchecked, 2 refused`.
pub(crate) fn answers(target: &TargetSummary) -> String {
    let unchecked = target.unchecked_of_all.min(target.operations_of_all);
    let checked = target.operations_of_all - unchecked;
    let wrong = || format!("{} wrong of {}", count(target.wrong_of_all), count(checked));
    let mut words = match (unchecked, checked) {
        (0, _) => wrong(),
        (_, 0) if target.wrong_of_all == 0 => format!("{} unchecked", count(unchecked)),
        _ => format!("{} checked, {} unchecked", wrong(), count(unchecked)),
    };
    if target.wrong_outside > 0 {
        let outside = count(target.wrong_outside);
        words.push_str(&format!(", {outside} wrong outside the measured slices"));
    }
    for (number, what) in [(target.refused_of_all, "refused"), (target.missing_of_all, "missing")] {
        if number > 0 {
            words.push_str(&format!(", {} {what}", count(number)));
        }
    }
    if let Some(broken) = target.values.iter().find(|one| one.name == CONNECTIONS_BROKEN) {
        let number = (broken.mean * broken.count as f64).round() as usize;
        words.push_str(&format!(
            ", {} broken (and made again, where that was possible)",
            many(number, "connection")
        ));
    }
    words
}

/// The role of a verdict.
pub(crate) fn role_of(verdict: Verdict) -> Role {
    match verdict {
        Verdict::Better | Verdict::Same => Role::Good,
        Verdict::Worse => Role::Bad,
        Verdict::CantTell { .. } => Role::Unsure,
    }
}

/// A verdict: `better`, `same within ±2 %` (without a margin only `same`), `can't tell (unseen)`.
pub(crate) fn verdict(verdict: Verdict, same_within: Option<f64>) -> String {
    match (verdict, same_within) {
        (Verdict::Better, _) => "better".to_owned(),
        (Verdict::Worse, _) => "worse".to_owned(),
        (Verdict::Same, None) => "same".to_owned(),
        (Verdict::Same, Some(within)) => format!("same within ±{}", whole_percent(within)),
        (Verdict::CantTell { why, .. }, _) => format!("can't tell ({})", why.words()),
    }
}

/// A verdict on a secondary metric. A metric that a busy generator invalidates was not
/// judged at all; where it limited one target only, the ratio is marked as a bound (`at least`).
pub(crate) fn verdict_beside(compared: &Compared) -> String {
    match (compared.verdict, compared.bound) {
        (Verdict::CantTell { .. }, Some(_)) => String::new(),
        (Verdict::CantTell { why: why @ Inconclusive::GeneratorBound, .. }, None) => {
            format!("not judged ({})", why.words())
        }
        (other, _) => verdict(other, None),
    }
}

/// What is likely where there is no strict verdict: `likely loadline better, 0.57× [0.50, 0.64]; 5
/// of 5 rounds disturbed, by 2 to 14 %`; `None` where nothing is.
pub(crate) fn likely(summary: &Summary, compared: &Compared) -> Option<String> {
    let likely = compared.likely?;
    let word = likely.code();
    let subject = crate::escape::one_line(&summary.targets[compared.a].name);
    Some(format!("likely {subject} {word}, {}", likely_ratio(&likely)))
}

/// What is likely of a secondary metric, behind its verdict: `, likely better, 0.57× [0.50, 0.64]`.
pub(crate) fn likely_beside(compared: &Compared) -> String {
    let words = |likely: LikelyCompared| {
        let LikelyInterval { ratio, low, high, .. } = likely.found.interval;
        format!(", likely {}, {}", likely.code(), ratio_within(ratio, low, high))
    };
    compared.likely.map_or_else(String::new, words)
}

/// `0.57× [0.50, 0.64]; 5 of 5 rounds disturbed, by 2 to 14 %`.
fn likely_ratio(likely: &LikelyCompared) -> String {
    let LikelyInterval { ratio, low, high, .. } = likely.found.interval;
    format!("{}; {}", ratio_within(ratio, low, high), disturbance(likely))
}

/// `5 of 5 rounds disturbed, by 2 to 14 %`, or what else a strict verdict lacks.
pub(crate) fn disturbance(likely: &LikelyCompared) -> String {
    if likely.disturbed_rounds == 0 {
        return "of these two processes".to_owned();
    }
    let Likely { interval, least_disturbance, most_disturbance } = likely.found;
    let [least, most] =
        [least_disturbance, most_disturbance].map(|share| whole_percent(share.min(1.0)));
    let by = match least == most {
        true => most,
        false => format!("{} to {most}", least.trim_end_matches(" %")),
    };
    format!("{} of {} disturbed, by {by}", likely.disturbed_rounds, many(interval.rounds, "round"))
}

/// The reason of a bound: the target that the generator limited.
pub(crate) fn bound_note(summary: &Summary, compared: &[&Compared]) -> Option<String> {
    let bound = compared.iter().find(|one| one.bound.is_some())?;
    let name = &summary.targets.get(bound.held_back()?)?.name;
    Some(format!("ratios are bounds: with {name} the generator was at its limit"))
}

/// A ratio with its interval, and the disturbed rounds in it: `10.4× [10.0, 10.9]`,
/// `0.566× [0.504, 0.636], 5 of 5 rounds disturbed`.
pub(crate) fn interval(compared: &Compared) -> String {
    let words = plain_interval(compared);
    match (compared.interval, compared.disturbed_rounds) {
        (None, _) | (_, 0) => words,
        (Some(interval), some) => {
            format!("{words}, {some} of {} disturbed", many(interval.rounds, "round"))
        }
    }
}

/// A ratio with its interval alone: `10.4× [10.0, 10.9]`, `at least 11.0× [10.4, 11.7]`.
pub(crate) fn plain_interval(compared: &Compared) -> String {
    let Some(interval) = compared.interval else { return "ratio unseen".to_owned() };
    let bound = bound(compared);
    if !interval.high.is_finite() {
        return format!("{bound}{}× in one round", ratio(interval.ratio));
    }
    format!("{bound}{}", ratio_within(interval.ratio, interval.low, interval.high))
}

/// `at least `, `at most `, or nothing.
pub(crate) fn bound(compared: &Compared) -> &'static str {
    match compared.bound {
        Some(Bound::Least) => "at least ",
        Some(Bound::Most) => "at most ",
        None => "",
    }
}

/// `valid 4/5, disturbed 1`.
pub(crate) fn valid_rounds(point: &PointSummary) -> String {
    let mut words = format!("valid {}/{}", point.valid_rounds, point.rounds);
    if point.disturbed_rounds > 0 {
        words.push_str(&format!(", disturbed {}", point.disturbed_rounds));
    }
    words
}

/// `5 rounds`, `1 round`.
pub(crate) fn many(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        number => format!("{} {noun}s", count(number as u64)),
    }
}

/// What a target carries, by the loads of a search that held and broke.
pub(crate) fn carries(name: &str, key: &str, held: Option<f64>, broken: Option<f64>) -> String {
    let load = |one: f64| load(key, one);
    match (held, broken) {
        // A load between the two was not shown to hold.
        (Some(held), Some(broken)) => {
            format!("{name} carries at least {}, and breaks by {}", load(held), load(broken))
        }
        (Some(held), None) => format!("{name} carries at least {}", load(held)),
        (None, Some(broken)) => format!("{name} does not even carry {}", load(broken)),
        (None, None) => format!("It can't be told what {name} carries"),
    }
}

/// A load of a search for the highest one: `1.20M/s`, `64 connections`.
pub(crate) fn load(key: &str, load: f64) -> String {
    if key.ends_with("rate") {
        return rate(load);
    }
    let unit = key.rsplit('.').next().unwrap_or_default();
    let unit = if load == 1.0 { unit.trim_end_matches('s') } else { unit };
    format!("{} {unit}", plain(load))
}

/// An event that takes less is over at once: a signal is sent.
const AT_ONCE_NS: f64 = 1e6;

/// The duration of an event, where that is longer than a millisecond.
pub(crate) fn event_took(kind: &EventKind<'_>) -> Option<String> {
    (kind.took_ns >= AT_ONCE_NS).then(|| duration(kind.took_ns))
}

/// `stop for 200 ms: 10 times in 5 trials, 200 ms each; 2 failed: …`
pub(crate) fn event_words(kind: &EventKind<'_>) -> String {
    let what = match kind.action == kind.name {
        true => kind.name.to_owned(),
        false => format!("{} ({})", kind.name, kind.action),
    };
    let times = match kind.times {
        1 => "once".to_owned(),
        times => format!("{} times in {}", count(times as u64), many(kind.trials, "trial")),
    };
    let took = event_took(kind).map_or(String::new(), |took| format!(", {took} each"));
    let failed = match kind.failure {
        Some(why) => format!("; {} failed: {why}", count(kind.failed as u64)),
        None => String::new(),
    };
    format!("{what}: {times}{took}{failed}")
}

/// A figure's name, and how its values are written: where its name says that it is in nanoseconds
/// or bytes, the unit is shown with the values and not in the name.
pub(crate) fn call_figure(name: &str) -> (String, fn(f64) -> String) {
    let name = one_line(name);
    match (name.strip_suffix("_ns"), name.strip_suffix("_bytes")) {
        (Some(name), _) => (name.to_owned(), time),
        (_, Some(name)) => (name.to_owned(), bytes),
        (None, None) => (name, plain),
    }
}

/// A time; below a microsecond with the digits that a duration has no room for.
fn time(ns: f64) -> String {
    if ns < 1000.0 { format!("{} ns", plain(ns)) } else { duration(ns) }
}
