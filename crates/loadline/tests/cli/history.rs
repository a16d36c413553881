//! `loadline history`, from outside.

use crate::common::{Place, code, stderr, stdout};

const SUITE: &str = r#"
title = "Over time"
[[target]]
name = "ours"
serve = "cache"
[workload]
room = "cache"
operation = "get"
keys = { count = 50 }
value = { bytes = 40 }
[[clients]]
connections = 1
[rounds]
disturbed = "ignore"
measure = "20ms"
warm_up = "10ms"
at_least = 1
at_most = 1
"#;

#[test]
fn two_runs_are_a_history_that_tells_nothing_yet() {
    let place = Place::with(SUITE);
    for _ in 0..2 {
        let output = place.loadline(&["run", "suite.toml", "--wait"]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    }
    let output = place.loadline(&["history", "suite.toml", "--fail-on", "worse"]);
    assert_eq!(code(&output), 4, "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("Over time  rate_per_s of ours"), "{text}");
    assert!(text.contains("2 runs on this kind of host are too few, it takes 6"), "{text}");
    let output = place.loadline(&["history", "--json", "--metric", "latency.p99"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(json["series"][0]["runs"].as_array().expect("runs").len(), 2);
    let output = place.loadline(&["history", "--metric", "latency.p98"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("there is no metric \"latency.p98\""), "{}", stderr(&output));
}
