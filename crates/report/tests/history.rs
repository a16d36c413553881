//! The history of a suite's runs over commits.

use crate::fixture::{Bench, runs};
use findings::{History, Question};
use judge::Hunt;
use ledger::Ledger;
use report::{history_json, history_text};
use serde_json::json;

fn conclusion(history: &History) -> String {
    history_json(history)["conclusion"].as_str().unwrap().to_owned()
}

/// A run that compares these targets, at this rate.
fn comparison(ledger: Ledger, targets: &[&str], rate: u64) -> Ledger {
    let facts = json!({"cpu": "X", "cpus": "2"});
    let mut bench = Bench::built(ledger, targets, "rate_per_s", &facts);
    bench.point("cache/get", 16);
    for round in 0..5 {
        bench.round();
        bench.trial(0, rate + round, 33_000, |_| ());
        bench.trial(1, rate + round, 33_000, |_| ());
    }
    bench.contest(5, &[5]);
    bench.finish();
    bench.ledger
}

#[test]
fn a_target_that_was_compared_with_itself_is_that_target() {
    let mut ledger = Ledger::in_memory().unwrap();
    for rate in &STEP[..6] {
        ledger = comparison(ledger, &["ours.a", "ours.b"], *rate);
    }
    let history = History::of(&ledger, &question()).unwrap().unwrap();
    assert_eq!(conclusion(&history), "ours did not change in 6 runs by rate_per_s.");
    // The first target of a comparison need not be the suite's first.
    ledger = comparison(runs(ledger, "X", &[100_000]), &["theirs", "ours"], 100_000);
    let history = History::of(&ledger, &question()).unwrap().unwrap();
    assert_eq!(conclusion(&history), "ours did not change in 8 runs by rate_per_s.");
    assert_eq!(history_json(&history)["target"], "ours");
}

fn question() -> Question {
    Question {
        title: "Cache: reads under load".into(),
        target: None,
        metric: None,
        since: None,
        hunt: Hunt::default(),
    }
}

const STEP: [u64; 12] = [
    100_000, 100_300, 99_800, 100_100, 99_900, 100_200, 100_000, 93_000, 93_200, 92_900, 93_100,
    93_000,
];

#[test]
fn a_change_for_good_is_found_with_the_commits_that_are_responsible() {
    let ledger = runs(Ledger::in_memory().unwrap(), "X", &STEP);
    let history = History::of(&ledger, &question()).unwrap().unwrap();
    let sentence = conclusion(&history);
    let expected = "ours became worse at cache/get: rate_per_s 7.0 % less since run 8 \
        (0000000000..0000000000), after 7 of 12 runs.";
    assert_eq!(sentence, expected);
    let json = history_json(&history);
    let change = &json["series"][0]["changes"][0];
    assert_eq!((&change["last_run"], &change["first_run"]), (&json!(7), &json!(8)));
    assert_eq!(change["first_commit"], format!("{:040}", 7));
    assert_eq!(history.outcome().exit_code(true), 3);
    assert_eq!(history.outcome().exit_code(false), 0);
    assert!(
        history_text(&history).contains("93.0k/s  worse: 7.0 % less"),
        "{}",
        history_text(&history)
    );
    // Once it is accepted, what came since is all there is.
    let since = Question { since: Some(8), ..question() };
    let history = History::of(&ledger, &since).unwrap().unwrap();
    assert_eq!(history.outcome().exit_code(true), 4);
    assert!(conclusion(&history).contains("5 runs on this kind of host are too few"));
}

#[test]
fn runs_without_a_valid_round_are_counted_apart() {
    let facts = json!({"cpu": "X", "cpus": "2"});
    let mut ledger = runs(Ledger::in_memory().unwrap(), "X", &[100_000]);
    for _ in 0..2 {
        let mut bench = Bench::built(ledger, &["ours"], "rate_per_s", &facts);
        bench.point("cache/get", 16);
        bench.round();
        bench.trial(0, 100_000, 33_000, |row| row.validity = ledger::Validity::Disturbed);
        bench.finish();
        ledger = bench.ledger;
    }
    let history = History::of(&ledger, &question()).unwrap().unwrap();
    let said = "1 run on this kind of host is too few, it takes 6; 2 more have no valid round of \
                ours.";
    assert!(conclusion(&history).ends_with(said), "{}", conclusion(&history));
    assert!(history_text(&history).contains("  2 runs without a valid round left out\n"));
}

#[test]
fn other_kinds_of_hosts_are_left_out_and_latencies_go_the_other_way() {
    let ledger = runs(Ledger::in_memory().unwrap(), "Y", &[50_000; 3]);
    let ledger = runs(ledger, "X", &[100_000; 7]);
    let history = History::of(&ledger, &question()).unwrap().unwrap();
    assert!(
        history_text(&history).contains("3 runs on other hosts left out"),
        "{}",
        history_text(&history)
    );
    assert_eq!(conclusion(&history), "ours did not change in 7 runs by rate_per_s.");
    let cost = Question { metric: Some("server.cpu_ns_per_op".into()), ..question() };
    let history = History::of(&ledger, &cost).unwrap().unwrap();
    assert_eq!(history_json(&history)["metric"], "server.cpu_ns_per_op");
    let unknown = Question { title: "Another".into(), ..question() };
    assert_eq!(History::of(&ledger, &unknown).unwrap(), None);
}
