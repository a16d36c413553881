//! Workflows under load: this server and ecFlow's own answer the same requests rightly, the command
//! writes definitions that both take, and every suite of the service can be planned.

use crate::common::{Place, code, plans_every_suite, stderr, stdout};

/// ecFlow's own server as a target, where it is here.
fn ecflow() -> &'static str {
    let shown = std::process::Command::new("ecflow_server").arg("--version").output();
    if shown.is_err() {
        testing::skip("ecflow_server is not installed (`cargo xtask peers`)");
        return "";
    }
    "[[target]]\nname = \"ecflow\"\ncommand = [\"ecflow_server\", \"--port={port}\"]\n\
     env = { ECF_HOME = \"{dir}\" }\nspeaks = \"ecflow\"\nready_within = \"60s\"\n\
     stop_signal = \"SIGKILL\"\n"
}

/// A suite of one short round over both servers; `rest` is its workload and clients.
fn suite(rest: &str) -> String {
    let rounds = "[rounds]\nmeasure = \"300ms\"\nslice = \"none\"\nwarm_up = \"50ms\"\n\
                  at_least = 1\nat_most = 1\ndisturbed = \"ignore\"\n";
    format!(
        "title = \"Workflow\"\n[[target]]\nname = \"loadline\"\nserve = \"workflow\"\n\
         options = {{ data = \"{{dir}}/home\", threads = 1 }}\n{}\
         [workload]\nservice = \"workflow\"\n{rest}{rounds}",
        ecflow()
    )
}

/// Runs it; nothing is wrong or missing at either server.
fn answers_rightly(rest: &str) {
    let trials = Place::with(&suite(rest)).trials();
    assert!(trials.iter().all(|trial| trial["missing"] == 0), "{trials:#?}");
    assert!(trials.iter().all(|trial| trial["refused"].as_u64().unwrap_or(0) == 0), "{trials:#?}");
}

#[test]
fn changes_of_tasks_are_answered_rightly_by_both_servers() {
    answers_rightly(
        "mix = { ping = 1, label = 2, child-label = 2, query-label = 3, meter = 3, \
         query-meter = 3, event = 1 }\nkeys = { count = 5 }\n\
         [[clients]]\nconnections = 4\nthreads = 2\nconnect = \"each\"\n\
         timeout = \"20s\"\n",
    );
}

#[test]
fn a_whole_definition_has_the_label_that_was_written_last() {
    answers_rightly(
        "mix = { label = 1, sync-full = 1 }\nkeys = { count = 5 }\nbeside = 0.001\n[[clients]]\n\
         connections = 3\npipeline = 2\ntimeout = \"20s\"\n",
    );
}

#[test]
fn a_client_that_follows_and_tasks_that_run_are_answered_rightly_by_both_servers() {
    answers_rightly(
        "mix = { label = 3, sync = 3, get = 1, init-complete = 2, requeue = 1 }\n\
         keys = { count = 5 }\n[[clients]]\nconnections = 4\npipeline = 2\ntimeout = \"20s\"\n",
    );
}

#[test]
fn whole_trees_and_jobs_are_answered_rightly_by_both_servers() {
    let suite = suite(
        "scale = 0.001\ncommands = 8\njobs = 20\npairs = 100\nsteps = [\"load\", \"begin\", \
         \"sync-cold\", \"evaluate\", \"sync\", \"get\", \"sync-full\", \"checkpoint\", \
         \"get-at-once\", \"sync-full-at-once\", \
         \"get-text\", \"get-binary\", \"level-0\", \"level-2\", \"suspend\", \"sync-binary\", \
         \"resume\", \"sync-text\", \"suspend\", \"sync\", \"resume\", \"sync\", \"force\", \
         \"sync\", \"requeue\", \"sync\", \"commands\", \"delete\", \"load\", \"restart\", \
         \"load-jobs\", \"jobs\", \"load-pairs\", \"dependent * 2\", \"checkpoint-busy\", \
         \"get\"]\n[[clients]]\narrivals = \"steps\"\n",
    );
    let suite = suite.replace("service = \"workflow\"", "service = \"workflow-tree\"");
    let suite = suite.replace("serve = \"workflow\"", "serve = \"workflow\"\nspeaks = \"ecflow\"");
    let suite = suite.replace("slice = \"none\"\nwarm_up = \"50ms\"\n", "");
    let trials = Place::with(&suite).trials();
    assert!(trials.iter().all(|trial| trial["missing"] == 0), "{trials:#?}");
    let has = |all: &serde_json::Value| all.to_string().contains("\"jobs_per_s\"");
    let steps = |trial: &serde_json::Value| has(&trial["values"]);
    assert!(trials.iter().all(steps), "{trials:#?}");
}

#[test]
fn what_the_workload_cannot_be_is_refused_with_its_key() {
    let of = |rest: &str| {
        suite(&format!("operation = \"label\"\n{rest}\n[[clients]]\nconnections = 1\n"))
    };
    for (rest, said) in [
        ("", "workflow needs tasks"),
        ("keys = { count = 5 }\nbeside = 11.0", "not a scale from 0.001 to 10"),
        ("keys = { count = 2_000_000 }", "at most 1000000 tasks"),
    ] {
        Place::with(&of(rest)).refuses(&["plan", "suite.toml"], 2, said);
    }
}

#[test]
fn by_the_name_of_ecflow_s_server_its_usage_is_what_can_be_typed_and_its_version_ecflow_s() {
    let place = Place::with("");
    let server = place.path().join("ecflow_server");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_loadline"), &server).expect("a link");
    let run =
        |words: &[&str]| std::process::Command::new(&server).args(words).output().expect("it runs");
    let usage = "Usage: ecflow_server [OPTIONS]\n";
    let help = run(&["--help"]);
    assert_eq!(code(&help), 0, "{}", stderr(&help));
    assert!(stdout(&help).contains(usage), "{}", stdout(&help));
    assert!(stdout(&help).contains("[default: 0.0.0.0]"), "{}", stdout(&help));
    let wrong = run(&["--nope"]);
    assert_eq!(code(&wrong), 2, "{}", stderr(&wrong));
    assert!(stderr(&wrong).contains(usage), "{}", stderr(&wrong));
    let version = stdout(&run(&["--version"]));
    assert_eq!(version, "Ecflow version(5.9.2) protocol(JSON cereal 1.3.0) loadline\n");
}

#[test]
fn a_definition_is_written_where_it_is_wanted() {
    let place = Place::with("");
    let printed = place.loadline(&["workflow", "gen", "--scale", "0.001"]);
    assert_eq!(code(&printed), 0, "{}", stderr(&printed));
    assert!(stdout(&printed).starts_with("suite s00\n"), "{}", stdout(&printed));
    let written = place.loadline(&["workflow", "gen", "--scale", "0.001", "--out", "x.def"]);
    assert_eq!(code(&written), 0, "{}", stderr(&written));
    let file = std::fs::read_to_string(place.path().join("x.def")).expect("a definition");
    assert_eq!(file, stdout(&printed));
    place.refuses(&["workflow", "gen", "--scale", "0"], 2, "--scale 0 is not from 0.001 to 10");
    place.refuses(&["workflow", "gen", "--out", "no/x.def"], 1, "--out no/x.def");
}

#[test]
fn every_suite_of_the_service_can_be_planned() {
    plans_every_suite(|name| name.starts_with("workflow-"), 2);
}
