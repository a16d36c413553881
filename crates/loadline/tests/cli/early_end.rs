//! What ends a run early: targets that never answer.

use std::net::TcpListener;

use crate::common::{Place, code, small_reads, stderr, stdout};

#[test]
fn a_run_ends_when_a_target_fails_at_its_start_for_the_second_time() {
    let targets = [
        ("works", "serve = \"cache\"\noptions = { memory = \"16MiB\" }"),
        ("fails", "command = [\"false\", \"{port}\"]\nspeaks = \"memcached\""),
    ];
    let place = Place::with(&small_reads(&targets, "measure = \"20ms\"\nat_least = 9"));
    let output = place.loadline(&["run", "suite.toml", "--wait", "--json"]);
    let said = stderr(&output);
    assert_eq!(code(&output), 1, "{said}");
    assert!(said.contains("ended early: fails failed twice in the same way"), "{said}");
    assert!(said.contains("round 2 "), "a line a round: {said}");
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(json["trials"].as_array().expect("trials").len(), 4, "two rounds of two");
}

#[test]
fn a_comparison_with_what_accepts_and_never_answers_ends() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("bound");
    let suite = format!(
        r#"title = "Silence"
[[target]]
name = "silent"
address = "{address}"
speaks = "http"
[workload]
service = "http"
operation = "page"
[[workload.request]]
name = "page"
path = "/"
[[clients]]
timeout = "20ms"
[rounds]
measure = "20ms"
warm_up = "0s"
"#
    );
    let place = Place::with(&suite);
    let asked = ["--a", "silent", "--b", "silent", "--measure", "20ms", "--budget", "1s"];
    let output = place.loadline(&[&["compare", "suite.toml", "--wait"], &asked[..]].concat());
    let said = stderr(&output);
    assert_eq!(code(&output), 1, "{said}");
    assert!(said.contains("ended early: silent."), "{said}");
    assert!(!said.contains("round 3"), "{said}");
}

#[test]
fn a_run_ends_when_all_runs_of_a_batch_fail_in_two_rounds() {
    let suite = |command: &str| {
        format!(
            "title = \"Fails\"\n[[target]]\nname = \"fails\"\n\
             batch = [\"sh\", \"-c\", \"{command}\"]\n\
             [workload]\nservice = \"batch\"\noperation = \"run\"\n[[clients]]\n\
             [require]\nwrong = \"= 0\"\n\
             [rounds]\nmeasure = \"20ms\"\nwarm_up = \"0s\"\nat_least = 4\nat_most = 4\n"
        )
    };
    let ended = |command: &str| {
        let output =
            Place::with(&suite(command)).loadline(&["run", "suite.toml", "--wait", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
        let trials = json["trials"].as_array().expect("trials").len();
        (code(&output), trials, stderr(&output))
    };
    let (code, trials, said) = ended("nosuchprogram");
    assert_eq!((code, trials), (3, 2), "{said}");
    assert!(said.contains("ended early: fails failed twice in the same way"), "{said}");
    let (_, trials, said) = ended("true");
    assert_eq!(trials, 4, "{said}");
}
