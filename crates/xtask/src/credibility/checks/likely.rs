//! Verdicts beside other programs: of the same target twice, and of one that costs more or less CPU
//! time than the other by what was planted. A likely verdict counts as one.

use std::fmt::Write as _;

use serde_json::Value;

use super::compare::primary;
use super::{Beside, Judged, Kind, Seen};

/// The confidence of the rates' intervals.
const CONFIDENCE: f64 = 0.95;

/// What runs beside, by name.
const NOISES: [(&str, Beside); 3] = [
    ("half a core", Beside::HalfOfACore),
    ("bursts", Beside::Bursts),
    ("stolen time", Beside::Steal),
];

/// The same target twice.
pub(super) static SAME: &[Kind] = &[same(0, 7), same(1, 70), same(2, 71)];

/// Comparisons of a target with itself that make a judgement, and the most that may call a
/// difference.
const FALSE: (usize, usize) = (200, 10);

/// Ten percent planted, up and down.
pub(super) static TEN: &[Kind] = &[
    planted("half a core, +10 %", 8, 0),
    planted("half a core, -10 %", 72, 0),
    planted("bursts, +10 %", 73, 1),
    planted("bursts, -10 %", 74, 1),
    planted("stolen time, +10 %", 75, 2),
    planted("stolen time, -10 %", 76, 2),
];

/// Five percent.
pub(super) static FIVE: &[Kind] = &[
    planted("half a core, +5 %", 77, 0),
    planted("half a core, -5 %", 78, 0),
    planted("bursts, +5 %", 79, 1),
    planted("bursts, -5 %", 80, 1),
    planted("stolen time, +5 %", 81, 2),
    planted("stolen time, -5 %", 82, 2),
];

const fn same(noise: usize, number: u64) -> Kind {
    let (name, beside) = NOISES[noise];
    Kind { name, number, runs: 67, beside }
}

const fn planted(name: &'static str, number: u64, noise: usize) -> Kind {
    Kind { name, number, runs: 7, beside: NOISES[noise].1 }
}

/// What is planted, in percent, as the kind's name says.
fn percent(kind: &Kind) -> i32 {
    let planted = kind.name.rsplit_once(", ").and_then(|(_, text)| text.strip_suffix(" %"));
    planted.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// What the first target's operations cost. The other's take 10 us of work, and each 4 to 5 us in
/// the kernel besides, of which the planted part is reckoned as well.
pub(super) fn settings(kind: &Kind) -> Vec<(&'static str, String)> {
    let time_ns = 10_000 + percent(kind) * 145;
    vec![("target.costlier.options.service-time", format!("{time_ns}ns"))]
}

/// The word of a verdict that calls a difference.
fn called(verdict: &Value) -> Option<&str> {
    verdict.as_str().filter(|word| ["better", "worse"].contains(word))
}

/// What a kind's runs said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Said {
    runs: usize,
    /// Differences that were called.
    strict: usize,
    likely: usize,
    /// Of both, how many of them with this sign: what was planted was found.
    found: usize,
}

impl Said {
    /// Of the runs of a kind; `truth` is the verdict that is right.
    fn of(seen: &Seen, kind: &str, truth: Option<&str>) -> Self {
        let mut said = Self::default();
        for one in seen.of(kind).filter_map(primary) {
            let strict = called(&one["verdict"]);
            let likely = called(&one["likely"]["verdict"]).filter(|_| strict.is_none());
            said.runs += 1;
            said.strict += usize::from(strict.is_some());
            said.likely += usize::from(likely.is_some());
            let word = strict.or(likely);
            said.found += usize::from(word.is_some() && word == truth);
        }
        said
    }

    fn called(&self) -> usize {
        self.strict + self.likely
    }

    fn and(self, other: Self) -> Self {
        Self {
            runs: self.runs + other.runs,
            strict: self.strict + other.strict,
            likely: self.likely + other.likely,
            found: self.found + other.found,
        }
    }
}

/// How often a difference is called where there is none.
pub(super) fn same_judge(seen: &Seen) -> Judged {
    let (enough, most) = FALSE;
    let (all, evidence) = table(seen, SAME, "called different", |_| None, Said::called);
    let broken = all.called() > most;
    let holds = (all.runs >= enough || broken).then_some(!broken);
    Judged { holds, evidence }
}

/// How often a planted difference is found; `least` is the part of the tries in which it has to be.
pub(super) fn planted_judge(seen: &Seen, kinds: &'static [Kind], least: f64) -> Judged {
    let truth = |kind: &Kind| Some(if percent(kind) > 0 { "worse" } else { "better" });
    let (all, mut evidence) = table(seen, kinds, "found", truth, |said| said.found);
    let wrong = all.called() - all.found;
    let _ = writeln!(evidence, "\nThe other target was called the costlier one {wrong} times.");
    let enough: usize = kinds.iter().map(|kind| kind.runs).sum();
    let missed = all.runs - all.found;
    let broken = missed as f64 > enough as f64 * (1.0 - least) || wrong > 0;
    let holds = (all.runs >= enough || broken).then_some(!broken);
    Judged { holds, evidence }
}

/// A row for each kind and one for all, with the rate of what is counted.
fn table(
    seen: &Seen,
    kinds: &[Kind],
    counts: &str,
    truth: fn(&Kind) -> Option<&'static str>,
    count: fn(&Said) -> usize,
) -> (Said, String) {
    let mut text =
        format!("| beside | runs | strict | likely | {counts} |\n|---|--:|--:|--:|--:|\n");
    let mut all = Said::default();
    let mut row = |name: &str, said: Said| {
        let Said { runs, strict, likely, .. } = said;
        let rate = rate(count(&said), runs);
        // A String takes all that is written.
        let _ = writeln!(text, "| {name} | {runs} | {strict} | {likely} | {rate} |");
    };
    for kind in kinds {
        let said = Said::of(seen, kind.name, truth(kind));
        row(kind.name, said);
        all = all.and(said);
    }
    row("all", all);
    (all, text)
}

/// How many of the runs in percent, with the interval.
fn rate(some: usize, runs: usize) -> String {
    let each = |index| (u64::from(index < some), 1);
    let each: Vec<(u64, u64)> = (0..runs).map(each).collect();
    match judge::share_interval(&each, 1, CONFIDENCE) {
        None => "–".to_owned(),
        Some(found) => {
            let [share, low, high] = [found.share, found.low, found.high].map(|one| 100.0 * one);
            format!("{share:.0} % [{low:.0}, {high:.0}]")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Runs of a kind, each with a strict and a likely verdict.
    fn runs(
        kind: &'static str,
        [strict, likely]: [&str; 2],
        count: usize,
    ) -> Vec<(&'static str, Value)> {
        let comparison =
            json!({ "primary": true, "verdict": strict, "likely": { "verdict": likely } });
        vec![(kind, json!({ "comparisons": [comparison] })); count]
    }

    #[test]
    fn ten_likely_or_strict_ghosts_of_two_hundred_are_allowed() {
        let judged = |ghosts: usize, of: usize| {
            let mut all = runs("bursts", ["cant_tell", "worse"], ghosts);
            all.extend(runs("half a core", ["cant_tell", "cant_tell"], of - ghosts));
            same_judge(&Seen { runs: all })
        };
        assert_eq!(judged(10, 200).holds, Some(true));
        assert_eq!(judged(11, 200).holds, Some(false));
        assert_eq!(judged(1, 199).holds, None);
        let evidence = judged(10, 200).evidence;
        assert!(evidence.contains("| all | 200 | 0 | 10 | 5 % [2, 9] |"), "{evidence}");
        assert!(evidence.contains("| stolen time | 0 | 0 | 0 | – |"), "{evidence}");
    }

    #[test]
    fn what_was_planted_is_found_with_its_sign_or_not_at_all() {
        let judged = |found: usize, wrong: usize| {
            let mut all = runs("bursts, -5 %", ["cant_tell", "better"], found);
            all.extend(runs("bursts, -5 %", ["worse", "worse"], wrong));
            all.extend(runs("half a core, +5 %", ["cant_tell", "cant_tell"], 42 - found - wrong));
            planted_judge(&Seen { runs: all }, FIVE, 0.6).holds
        };
        assert_eq!(judged(26, 0), Some(true));
        assert_eq!(judged(25, 0), Some(false));
        assert_eq!(judged(41, 1), Some(false));
        let few = runs("bursts, +5 %", ["worse", "cant_tell"], 41);
        assert_eq!(planted_judge(&Seen { runs: few }, FIVE, 0.6).holds, None);
    }

    #[test]
    fn what_is_planted_is_a_part_of_all_that_an_operation_costs() {
        let costs = |kind: &Kind| settings(kind)[0].1.clone();
        let ten: Vec<String> = TEN.iter().map(costs).collect();
        assert_eq!(ten[..2], ["11450ns", "8550ns"]);
        assert_eq!([costs(&FIVE[0]), costs(&FIVE[5])], ["10725ns", "9275ns"]);
    }
}
