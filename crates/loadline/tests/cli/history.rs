//! `loadline history`, from outside.

use crate::common::{Place, code, small_reads, stderr, stdout};

#[test]
fn two_runs_are_a_history_that_tells_nothing_yet() {
    let rounds = "measure = \"20ms\"\nat_least = 1\nat_most = 1";
    let place = Place::with(&small_reads(&[("ours", "serve = \"cache\"")], rounds));
    for _ in 0..2 {
        let output = place.loadline(&["run", "suite.toml", "--wait"]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    }
    let output = place.loadline(&["history", "suite.toml", "--fail-on", "worse"]);
    assert_eq!(code(&output), 4, "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("Small reads  rate_per_s of ours"), "{text}");
    assert!(text.contains("2 runs on this kind of host are too few, it takes 6"), "{text}");
    let json = place.json(&["history", "--json", "--metric", "latency.p99"], &[4]);
    assert_eq!(json["series"][0]["runs"].as_array().expect("runs").len(), 2);
    place.refuses(&["history", "--target", "theirs"], 2, "has a target \"theirs\"; there are ours");
    let unknown = ["history", "--metric", "latency.p98"];
    place.refuses(&unknown, 2, "there is no metric \"latency.p98\"");
}
