//! Verdicts where the truth is known: the same target twice, and one that costs two percent more.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::{Judged, Seen, trials};

/// Comparisons of a target with itself that make a judgement, and the most that may call a
/// difference.
const SAME: (usize, usize) = (200, 10);

/// Tries that make a judgement, and the fewest that have to find the planted difference.
const PLANTED: (usize, usize) = (40, 36);

/// The same twice: how often a difference was called, and how often the same figures would have
/// shown one, had one target been measured after the other.
pub(super) fn same(seen: &Seen) -> Judged {
    let (enough, most) = SAME;
    let verdicts = verdicts(seen, "same");
    let judged: usize = verdicts.values().sum();
    let called = |verdict: &&str| ["better", "worse"].contains(verdict);
    let wrong: usize = verdicts.iter().filter(|(v, _)| called(v)).map(|(_, n)| n).sum();
    let mut evidence = format!("Of {judged} comparisons {wrong} called a difference.\n");
    let _ = writeln!(evidence, "{}", words(&verdicts));
    let halves: Vec<bool> = seen.of("same").filter_map(differs_in_time).collect();
    let ghosts = halves.iter().filter(|differs| **differs).count();
    let _ = writeln!(
        evidence,
        "\nWith the same figures split in time order, the first half as one target and the second \
         as the other, {ghosts} of {} would have been called different.",
        halves.len()
    );
    let broken = wrong > most;
    let holds = (judged >= enough || broken).then_some(!broken);
    Judged { holds, evidence }
}

/// Two percent more: how often it was found.
pub(super) fn planted(seen: &Seen) -> Judged {
    let (enough, least) = PLANTED;
    let verdicts = verdicts(seen, "planted");
    let judged: usize = verdicts.values().sum();
    let found = verdicts.get("worse").copied().unwrap_or(0);
    let ratios: Vec<f64> =
        seen.of("planted").filter_map(|run| primary(run)?["ratio"].as_f64()).collect();
    let mean = ratios.iter().sum::<f64>() / ratios.len().max(1) as f64;
    let mut evidence = format!("Of {judged} tries {found} found it.\n");
    let _ = writeln!(evidence, "{}", words(&verdicts));
    if judged > 0 {
        let _ =
            writeln!(evidence, "\nMeasured over all tries it was {:+.2} %.", (mean - 1.0) * 100.0);
    }
    let broken = judged - found > enough - least;
    let holds = (judged >= enough || broken).then_some(!broken);
    Judged { holds, evidence }
}

/// The comparison of the primary metric.
pub(super) fn primary(run: &Value) -> Option<&Value> {
    let mut comparisons = run["comparisons"].as_array()?.iter();
    comparisons.find(|one| one["primary"] == true)
}

/// How often each verdict was given, of runs in which the host let something be compared.
fn verdicts<'a>(seen: &'a Seen, kind: &'a str) -> BTreeMap<&'a str, usize> {
    let mut verdicts = BTreeMap::new();
    for one in seen.of(kind).filter_map(primary).filter(|one| one["ratio"].is_number()) {
        *verdicts.entry(one["verdict"].as_str().unwrap_or_default()).or_default() += 1;
    }
    verdicts
}

fn words(verdicts: &BTreeMap<&str, usize>) -> String {
    let words = verdicts.iter().map(|(verdict, count)| {
        let word = if *verdict == "cant_tell" { "can't tell" } else { verdict };
        format!("{word} {count}")
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Whether the first half of a run's figures differs from the second by the run's own confidence.
fn differs_in_time(run: &Value) -> Option<bool> {
    let valid = trials(run).filter(|trial| trial["validity"] == "valid");
    let mut figures: Vec<(u64, f64)> = valid
        .filter_map(|trial| {
            Some((trial["round"].as_u64()?, trial["server"]["cpu_ns_per_op"].as_f64()?))
        })
        .collect();
    figures.sort_by_key(|(round, _)| *round);
    let figures: Vec<f64> = figures.into_iter().map(|(_, figure)| figure).collect();
    let half = figures.len() / 2;
    let confidence = run["run"]["confidence"].as_f64()?;
    let interval = judge::paired_ratio(&figures[..half], &figures[half..2 * half], confidence)?;
    Some(interval.low > 1.0 || interval.high < 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn runs(kind: &'static str, verdict: &str, count: usize) -> Vec<(&'static str, Value)> {
        let comparison = json!({ "primary": true, "ratio": 1.02, "verdict": verdict });
        vec![(kind, json!({ "comparisons": [comparison] })); count]
    }

    #[test]
    fn ten_ghosts_of_two_hundred_are_allowed() {
        let holds = |ghosts: usize, of: usize| {
            let mut all = runs("same", "better", ghosts);
            all.extend(runs("same", "cant_tell", of - ghosts));
            same(&Seen { runs: all }).holds
        };
        assert_eq!(holds(10, 200), Some(true));
        assert_eq!(holds(11, 200), Some(false));
        assert_eq!(holds(10, 199), None);
        assert_eq!(holds(11, 12), Some(false));
    }

    #[test]
    fn four_tries_of_forty_may_miss_what_was_planted() {
        let holds = |found: usize, of: usize| {
            let mut all = runs("planted", "worse", found);
            all.extend(runs("planted", "same", of - found));
            planted(&Seen { runs: all }).holds
        };
        assert_eq!(holds(36, 40), Some(true));
        assert_eq!(holds(35, 40), Some(false));
        assert_eq!(holds(30, 30), None);
    }

    #[test]
    fn what_drifts_differs_in_time_and_what_alternates_does_not() {
        let run = |figure: fn(u64) -> f64| {
            let trial = |round| {
                json!({ "validity": "valid", "round": round,
                        "server": { "cpu_ns_per_op": figure(round) } })
            };
            let all: Vec<Value> = (0..20).map(trial).collect();
            json!({ "run": { "confidence": 0.975 }, "trials": all })
        };
        assert_eq!(differs_in_time(&run(|round| 100.0 + round as f64)), Some(true));
        assert_eq!(differs_in_time(&run(|round| 100.0 + (round * 7 % 5) as f64)), Some(false));
    }
}
