//! Verdicts that are stored when a run ends.

use crate::fixture::Bench;
use findings::{outcome, store_verdicts};
use ledger::{TrialRow, Validity};

fn judged(bench: &mut Bench) -> serde_json::Value {
    let json = report::json(&bench.finish());
    store_verdicts(&mut bench.ledger, bench.run).unwrap();
    let rows = bench.ledger.run_view(bench.run).unwrap().verdicts;
    assert!(!rows.is_empty());
    json
}

#[test]
fn a_stored_verdict_is_shown_though_the_rule_would_now_decide_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let mut bench = Bench::on_disk(&path, &["loadline", "memcached"]);
    bench.point("p", 1);
    bench.rounds_of(&[50_000, 50_100, 50_200, 50_100, 50_000]);
    assert_eq!(judged(&mut bench)["comparisons"][0]["verdict"], "worse");
    // As if a rule of then had called it so.
    let by_hand = rusqlite::Connection::open(&path).unwrap();
    by_hand.execute("UPDATE verdict SET verdict = 'same' WHERE is_primary", []).unwrap();
    let summary = bench.summary();
    assert_eq!(report::json(&summary)["comparisons"][0]["verdict"], "same");
    let text = report::text(&summary, false);
    assert!(text.contains("verdict: same within ±2 %, 0.501× [0.500, 0.502]"), "{text}");
    assert!(!outcome(&summary).worse);
    // Without any, as after a run that was killed, the rule decides.
    by_hand.execute("DELETE FROM verdict", []).unwrap();
    assert!(outcome(&bench.summary()).worse);
}

#[test]
fn an_unknown_word_is_named_and_not_guessed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let mut bench = Bench::on_disk(&path, &["loadline", "memcached"]);
    bench.point("p", 1);
    bench.rounds_of(&[50_000, 50_100, 50_200, 50_100, 50_000]);
    judged(&mut bench);
    let by_hand = rusqlite::Connection::open(&path).unwrap();
    by_hand.execute_batch("PRAGMA ignore_check_constraints = ON").unwrap();
    let likely = "likely_ratio = 1, likely_low = 1, likely_high = 1, likely_rounds = 5, \
                  likely_disturbed_rounds = 5, least_disturbance = 0, most_disturbance = 0";
    for (column, set) in [
        ("verdict.likely", format!("likely = 'odd', {likely}")),
        ("verdict.why", "likely = NULL, verdict = 'cant_tell', why = 'odd'".to_owned()),
        ("verdict.bound", "verdict = 'same', bound = 'odd'".to_owned()),
        ("verdict.verdict", "bound = NULL, verdict = 'odd'".to_owned()),
    ] {
        by_hand.execute(&format!("UPDATE verdict SET {set} WHERE is_primary"), []).unwrap();
        let view = bench.ledger.run_view(bench.run).unwrap();
        let said = findings::Summary::of(view).unwrap_err().to_string();
        assert!(said.starts_with(&format!("{column} in the ledger is \"odd\"")), "{said}");
    }
}

#[test]
fn targets_that_ran_on_from_round_to_round_are_said_to_have_been_started_once() {
    let said = |restarts: bool, rate_per_s: u64| {
        let mut bench = Bench::new(&["loadline", "memcached"]);
        bench.point("p", 1);
        for round in 0..5 {
            bench.round();
            for (target, rate) in [(0, rate_per_s), (1, 100_000)] {
                let warm_up = (restarts || round == 0).then_some(500_000_000);
                bench.trial(target, rate + round, 33_000, |row| row.warmup_ns = warm_up);
            }
        }
        let summary = bench.finish();
        let outcome = findings::outcome(&summary);
        let codes = [outcome, outcome.accepting_likely()].map(|one| one.exit_code(false));
        (report::conclusion(&summary).join(" "), codes)
    };
    let (differ, codes) = said(false, 250_000);
    let begin = "These two processes differ: loadline has 2.50 times the rate of memcached (250k/s";
    assert!(differ.starts_with(begin) && differ.contains("several starts of each"), "{differ}");
    assert_eq!(codes, [4, 0]);
    let (same, codes) = said(false, 100_000);
    assert!(same.contains("Started once for all rounds"), "{same}");
    assert_eq!(codes, [0, 0]);
    let (anew, codes) = said(true, 250_000);
    assert!(!anew.contains("processes") && !anew.contains("Started once"), "{anew}");
    assert_eq!(codes, [0, 0]);
}

/// Comparisons with a bound, with one round, of a ladder, and from disturbed rounds.
#[test]
fn verdicts_come_back_as_they_were_stored() {
    let mut ladder = Bench::new(&["plain", "batched", "sharded"]);
    ladder.rungs(&["as it was", "one write a batch", "a lock a shard"]);
    ladder.point("p", 1);
    for round in 0..6_u64 {
        ladder.round();
        for (target, rate) in [(0, 100_000), (1, 200_000), (2, 300_000)] {
            let busy = |row: &mut TrialRow| row.generator_busy = Some(0.3 * (target + 1) as f64);
            ladder.trial(target, rate + round * (target as u64 + 7), 33_000, busy);
        }
    }
    ladder.point("one round", 2);
    ladder.rounds_of(&[70_000]);
    let mut noisy = Bench::new(&["loadline", "memcached"]);
    noisy.point("p", 1);
    for rate_per_s in [190_000, 201_000, 197_000, 204_000, 199_000, 195_000] {
        noisy.round();
        for (target, rate_per_s) in [(0, rate_per_s), (1, 100_000)] {
            let disturb = |row: &mut TrialRow| row.validity = Validity::Disturbed;
            let trial = noisy.trial(target, rate_per_s, 33_000, disturb);
            noisy.usage(trial, "run_cores", 2.0);
            noisy.usage(trial, "foreign", 0.1);
        }
    }
    for bench in [&mut ladder, &mut noisy] {
        let json = judged(bench);
        let again = report::json(&bench.summary());
        assert_eq!(json["comparisons"], again["comparisons"]);
        assert_eq!(json["rungs"], again["rungs"]);
        assert_eq!(json["conclusion"], again["conclusion"]);
    }
    assert!(report::text(&noisy.summary(), false).contains("likely loadline better"));
}
