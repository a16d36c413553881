//! `loadline compare`, from outside.

use std::os::unix::fs::PermissionsExt as _;

use crate::common::{
    Place, await_end, await_that, code, processes_with, send_signal, small_reads, stderr, stdout,
    unique,
};

/// Two caches, one of which has twice the memory.
fn suite() -> String {
    let targets = [
        ("small", "serve = \"cache\"\noptions = { memory = \"16MiB\" }"),
        ("large", "serve = \"cache\"\noptions = { memory = \"32MiB\" }"),
    ];
    small_reads(&targets, "slice = \"20ms\"\nprimary = \"server.cpu_ns_per_op\"")
}

#[test]
fn a_against_a_measures_two_instances_and_keeps_its_looks() {
    let place = Place::with(&suite());
    let asked = ["--a", "small", "--b", "small", "--budget", "600ms", "--measure", "40ms"];
    let mut arguments = vec!["compare", "suite.toml", "--wait", "--json"];
    arguments.extend(asked);
    let output = place.loadline(&arguments);
    // What so short a look shows is up to the host; what it must keep is not.
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    let said = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("at most 7 rounds of 2 × 40 ms a point"), "{said}");
    assert!(
        said.contains("% can be shown nine times out of ten if figures vary by 1.0 %"),
        "{said}"
    );
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let names: Vec<&str> = json["targets"]
        .as_array()
        .expect("targets")
        .iter()
        .filter_map(|t| t["name"].as_str())
        .collect();
    assert_eq!(names, ["small.a", "small.b"]);
    let contest = &json["contest"];
    assert_eq!((&contest["error"], &contest["rounds_most"]), (&0.025.into(), &7.into()));
    assert_eq!(contest["looks"][0]["rounds"][0], 5);
    let primary = &json["comparisons"][0];
    assert_eq!(
        (&primary["metric"], &primary["primary"]),
        (&"server.cpu_ns_per_op".into(), &true.into())
    );
    assert!(primary["confidence"].as_f64().expect("a confidence") > 0.975);
    let bytes = &json["targets"][0]["facts"]["program_bytes"];
    assert!(bytes.as_str().expect("seen").parse::<u64>().expect("a size") > 0);
    let conclusion = json["conclusion"].as_str().expect("a sentence");
    assert!(conclusion.contains("small.a") && conclusion.contains("Looked at"), "{conclusion}");
    // Its verdicts stay in the ledger.
    let export = ["ledger", "export", "1", "--format", "csv", "--table", "verdicts"];
    let rows = stdout(&place.loadline(&export));
    let row = |line: &&str| line.contains(",small.a,small.b,") && line.contains(",server.cpu");
    assert_eq!(rows.lines().filter(row).count(), 1, "{rows}");
    // The next comparison knows beforehand what can be shown.
    let output = place.loadline(&arguments);
    let said = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("as figures varied in run 1"), "{said}");
    // So does a plan of the suite, for as many rounds as are measured in any case.
    let rounds = ["--set", "rounds.at_least=5"];
    let plan = place.loadline(&[&["plan", "suite.toml"], &rounds[..]].concat());
    assert!(stdout(&plan).contains("in 5 rounds, of server.cpu_ns_per_op: "), "{}", stdout(&plan));
    let plan = place.json(&[&["plan", "suite.toml", "--json"], &rounds[..]].concat(), &[0]);
    assert!(plan["least_shown"].as_f64() > Some(0.0), "{plan}");
    // And the history of the suite knows the target by its name.
    let history = place.json(&["history", "suite.toml", "--json"], &[4]);
    assert_eq!(history["target"], "small");
    assert_eq!(history["series"][0]["runs"].as_array().expect("runs").len(), 2);
}

#[test]
fn what_cant_be_compared_is_said_before_anything_starts() {
    let place = Place::with(&suite());
    let case = |arguments: &[&str], said: &str| {
        place.refuses(&[&["compare", "suite.toml"], arguments].concat(), 2, said);
    };
    case(&["--a", "small", "--b", "medium"], "the suite has small, large");
    case(
        &["--a", "small", "--b", "large", "--budget", "1s", "--measure", "1s"],
        "--budget 10s would do",
    );
    case(&["--a", "small", "--b", "large", "--error", "0%"], "--error lies between");
    case(&[], "say what to compare");
    assert!(!place.ledger().exists());
}

#[test]
fn two_runs_of_the_ledger_are_judged_unless_their_hosts_differ() {
    let place = Place::with(&suite());
    for _ in 0..2 {
        let settings = ["--set", "rounds.measure=20ms", "--set", "rounds.at_most=5"];
        let run = ["run", "suite.toml", "--wait"];
        let output = place.loadline(&[&run[..], &settings[..]].concat());
        assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    }
    let json = place.json(&["compare", "--runs", "2", "1", "--json"], &[0, 4]);
    assert_eq!((&json["runs"][0], &json["differences"]), (&2.into(), &serde_json::json!([])));
    assert_eq!(json["points"][0]["judged"]["samples"][0]["name"], "run 2");
    let markdown = stdout(&place.loadline(&["compare", "--runs", "2", "1", "--markdown"]));
    assert!(markdown.starts_with("### Small reads\n\n**By server.cpu\\_ns"), "{markdown}");
    assert!(markdown.contains("| point | run 2 | run 1 | ratio ["), "{markdown}");
    assert!(markdown.contains(" of small · measured at different times"), "{markdown}");
    let large = place.json(&["compare", "--runs", "2", "1", "--target=large", "--json"], &[0, 4]);
    assert_eq!((&json["target"], &large["target"]), (&"small".into(), &"large".into()));
    let text = stderr(&place.loadline(&["compare", "--runs", "2", "1"]));
    assert!(text.contains("--target judges another one (large)"), "{text}");
    place.refuses(&["compare", "--runs", "2", "9"], 2, "there is no run 9");
    place.refuses(&["compare", "--runs", "2", "last"], 2, "can't be compared with itself");
    // A run that was set otherwise is compared, and that is said.
    let settings = ["--set", "rounds.measure=30ms", "--set", "rounds.at_most=5"];
    let output = place.loadline(&[&["run", "suite.toml", "--wait"], &settings[..]].concat());
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    let output = place.loadline(&["compare", "--runs", "3", "2"]);
    assert!(stderr(&output).contains("settings: rounds.measure = "), "{}", stderr(&output));
    // Disturbed rounds don't count: without another one there is nothing to judge.
    let ledger = rusqlite::Connection::open(place.ledger()).expect("a file");
    ledger.execute("UPDATE trial SET validity = 'disturbed'", []).expect("it is written");
    let why = "run 3 has no valid round of small: 5 of 5";
    place.refuses(&["compare", "--runs", "3", "2"], 4, why);
    let json = place.json(&["compare", "--runs", "3", "2", "--json"], &[4]);
    assert_eq!(json["points"], serde_json::json!([]));
    assert!(json["conclusion"].as_str().is_some_and(|text| text.contains(why)), "{json}");
}

#[test]
fn figures_from_elsewhere_are_judged_and_bad_ones_named() {
    let place = Place::with(&suite());
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).expect(name);
    write("before.txt", "12.35,12.41,12.42,12.33,12.64");
    write("after.txt", "14.53,12.35,12.32,12.3,13.63");
    let output = place.loadline(&["compare", "--samples", "after.txt", "before.txt"]);
    assert_eq!(code(&output), 4, "{}", stderr(&output));
    let text = stdout(&output);
    assert!(
        text.contains("It can't be told whether after.txt is better than before.txt"),
        "{text}"
    );
    assert!(text.contains("more runs of each would tell"), "{text}");
    write("fast.json", r#"{ "results": [{ "times": [6.1, 6.2, 6.1, 6.0, 6.1] }] }"#);
    let fast = "fast.json#results.0.times";
    let arguments = ["compare", "--samples", "before.txt", fast, "--json", "--fail-on", "worse"];
    assert_eq!(place.json(&arguments, &[3])["verdict"], "worse");
    write("bad.txt", "1 2\n3 x");
    let bad = ["compare", "--samples", "bad.txt", "before.txt"];
    place.refuses(&bad, 2, "bad.txt: line 2: \"x\" is no number");
}

/// A folder with the suite, a commit and a `.loadline`.
fn with_a_commit() -> Place {
    let place = Place::with(&suite());
    let script = "git init -q && for n in one two; do git -c user.name=t -c \
                  user.email=t@t.invalid commit -q -m $n --allow-empty; done && mkdir .loadline";
    let mut shell = std::process::Command::new("sh");
    let made = shell.args(["-c", script]).current_dir(place.path()).status().expect("sh runs");
    assert!(made.success());
    place
}

#[test]
fn what_is_built_where_every_file_may_be_written_by_all_is_written_by_its_group_at_most() {
    let place = with_a_commit();
    let exe = env!("CARGO_BIN_EXE_loadline");
    let build = "mkdir made; touch made/program; false";
    let script =
        format!("umask 0; exec {exe} compare suite.toml --commits HEAD~1..HEAD --build '{build}'");
    let mut shell = std::process::Command::new("sh");
    let built = shell.args(["-c", &script]).current_dir(place.path()).output().expect("sh runs");
    assert!(stderr(&built).contains("failed"), "{}", stderr(&built));
    let builds = place.path().join(".loadline/builds");
    let commit = builds.read_dir().expect("builds").flatten().next().expect("a build").path();
    let made = ["", "tree", "tree/.git", "tree/made", "tree/made/program"];
    for path in made.map(|name| commit.join(name)) {
        let mode = path.metadata().expect("it is made").permissions().mode();
        assert_eq!(mode & 0o002, 0, "{} has {mode:o}", path.display());
    }
}

#[test]
fn the_build_of_a_commit_ends_with_the_comparison() {
    let place = with_a_commit();
    for (signal, test) in [("-TERM", 21), ("-KILL", 22)] {
        let marker = &unique(test).to_string();
        let build = format!("sleep {marker} & wait");
        let arguments = ["compare", "suite.toml", "--commits", "HEAD~1..HEAD", "--build", &build];
        let mut command = place.command(&arguments);
        let mut child = command.stderr(std::process::Stdio::null()).spawn().expect("it runs");
        let is_built = || processes_with(marker).len() > 2;
        await_that("the build runs", is_built);
        send_signal(signal, child.id());
        await_end(&mut child);
        await_that("the build ends, and its children", || processes_with(marker).is_empty());
    }
}

/// Two commits of a program that serves a cache; the later one says more in its script.
#[test]
fn commits_are_built_once_in_worktrees_and_the_later_one_is_judged() {
    let suite = suite().replace("serve = \"cache\"\noptions = { memory = \"16MiB\" }", TARGET);
    let place = Place::with(&suite);
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@t.invalid"];
        let mut command = std::process::Command::new("git");
        command.current_dir(place.path()).args(identity).args(arguments);
        assert!(command.output().expect("git runs").status.success(), "{arguments:?}");
    };
    git(&["init", "-q"]);
    for remark in ["first", "second"] {
        let exe = env!("CARGO_BIN_EXE_loadline");
        let script = format!("#!/bin/sh\n# {remark}\nexec {exe} serve cache \"$@\"\n");
        std::fs::write(place.path().join("serve.sh"), script).expect("a script");
        git(&["add", "serve.sh"]);
        git(&["commit", "-q", "-m", remark]);
    }
    let arguments = [
        "compare",
        "suite.toml",
        "--wait",
        "--json",
        "--commits",
        "HEAD~1..HEAD",
        "--build",
        "echo once >> ../builds; cp serve.sh built.sh; chmod +x built.sh",
        "--budget",
        "600ms",
        "--measure",
        "50ms",
    ];
    // Then by an interpreter, which is looked up on the PATH, and which no commit makes.
    let by = |shell: &str| {
        suite.replace("\"{worktree}/built.sh\"", &format!("\"{shell}\", \"{{worktree}}/built.sh\""))
    };
    for suite in [suite.clone(), by("sh"), by("/bin/sh")] {
        std::fs::write(place.path().join("suite.toml"), suite).expect("a suite");
        let output = place.loadline(&arguments);
        assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
        assert!(!stderr(&output).contains("the same program"), "{}", stderr(&output));
        let json: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
        let subjects: Vec<_> = json["targets"]
            .as_array()
            .expect("two")
            .iter()
            .map(|t| &t["facts"]["subject"])
            .collect();
        assert_eq!(subjects, ["second", "first"]);
    }
    let builds =
        std::fs::read_dir(place.path().join(".loadline/builds")).expect("builds").flatten();
    for build in builds {
        let times = std::fs::read_to_string(build.path().join("builds")).expect("a note");
        assert_eq!(times, "once\n");
    }
    let mistyped = |commits: &str, said: &str| {
        let build = ["--build", "touch ../../../touched"];
        let compare = ["compare", "suite.toml", "--commits", commits];
        place.refuses(&[&compare[..], &build].concat(), 2, said);
        let touched = place.path().join(".loadline/touched");
        assert!(!touched.exists(), "it is found before anything is built");
    };
    mistyped("nosuch..HEAD", "there is no commit \"nosuch\" here");
    mistyped("HEAD..HEAD~0", "HEAD and HEAD~0 are one commit");
    let failing =
        ["compare", "suite.toml", "--commits", "HEAD~1,HEAD", "--build", "echo why; false"];
    place.refuses(&failing, 1, "why");
}

const TARGET: &str = "command = [\"{worktree}/built.sh\", \"--listen\", \"127.0.0.1:{port}\"]\n\
    speaks = \"memcached\"";
