//! `loadline run`, from outside: what a user sees, keeps and can rely on.

use crate::common::{
    Place, await_end, await_that, code, processes_with, send_signal, small_reads, stderr, stdout,
    unique,
};
use std::process::Stdio;

/// A quick suite of one cache; `TARGET` adds to the target, `REST` to the end.
fn suite(target: &str, measure: &str, rest: &str) -> String {
    format!(
        r#"
title = "A quick look"
[[target]]
name = "ours"
{target}
[workload]
service = "cache"
mix = {{ get = 9, set = 1 }}
keys = {{ count = 500 }}
value = {{ bytes = 40 }}
[[clients]]
connections = 3
pipeline = 2
[require]
wrong = "= 0"
[rounds]
disturbed = "ignore"
measure = "{measure}"
slice = "30ms"
warm_up = "10ms"
at_least = 2
at_most = 2
{rest}
"#
    )
}

const SERVE: &str = "serve = \"cache\"";

#[test]
fn a_run_checks_every_answer_and_says_what_it_found_in_text_and_json() {
    let place = Place::with(&suite(SERVE, "60ms", ""));
    let output = place.loadline(&["run", "suite.toml", "--wait"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("3 conns · depth 2 · closed"), "{text}");
    assert!(text.contains("0 wrong of"), "{text}");
    let report = place.loadline(&["report", "last", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&report)).expect("JSON");
    let trials = json["trials"].as_array().expect("trials");
    assert_eq!(trials.len(), 2);
    for trial in trials {
        assert_eq!((&trial["target"], &trial["validity"]), (&"ours".into(), &"valid".into()));
        assert_eq!(trial["wrong"], 0);
        assert!(trial["rate_per_s"].as_f64().expect("a rate") > 0.0);
        assert!(trial["latency_ns"]["p99"].as_f64().expect("a latency") > 0.0);
        assert!(trial["server"]["cpu_ns_per_op"].as_f64().expect("seen") > 0.0);
        assert!(trial["server"]["rss_bytes"].as_f64().expect("seen") > 0.0);
        assert_eq!(trial["point"]["workload.operation"], "get:9 set:1");
    }
    assert_eq!(json["requirements"][0]["outcome"], "held");
}

#[test]
fn a_value_corrupted_on_purpose_is_found_and_shown_with_its_bytes() {
    let corrupt = format!("{SERVE}\noptions = {{ test-corrupt-every = 10 }}");
    let place = Place::with(&suite(&corrupt, "60ms", ""));
    let output = place.loadline(&["run", "suite.toml", "--wait"]);
    assert_eq!(code(&output), 3, "a requirement is broken: {}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("expected") && text.contains("received"), "{text}");
    let report = place.loadline(&["report", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&report)).expect("JSON");
    assert_eq!(json["trials"][0]["validity"], "invalid");
    assert!(json["trials"][0]["wrong"].as_u64().expect("a count") > 0);
    let finding = &json["findings"][0];
    assert_ne!(finding["expected_hex"], finding["received_hex"]);
}

#[test]
fn a_target_that_dies_makes_its_trial_invalid_with_its_last_words() {
    let exe = env!("CARGO_BIN_EXE_loadline");
    let script = format!(
        "trap 'echo these are the last words >&2; kill -9 $server; exit 7' USR1; \
         {exe} serve cache --listen 127.0.0.1:{{port}} & server=$!; wait"
    );
    let target = format!("command = [\"sh\", \"-c\", {script:?}]\nspeaks = \"memcached\"");
    // Once it is dead there is nothing to kill, which is no fault of the event.
    let kill = "kill -USR1 {pid}; true";
    let event = format!("[[event]]\nat = \"10ms\"\ndo = [\"sh\", \"-c\", \"{kill}\"]");
    let place = Place::with(&suite(&target, "2s", &event));
    let output = place.loadline(&["run", "suite.toml", "--wait"]);
    // Of a busy host the end may come long after the connections broke.
    assert!([1, 4].contains(&code(&output)), "nothing valid was measured: {}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("these are the last words"), "{text}");
    assert!(text.contains("status 7"), "{text}");
}

#[test]
fn ctrl_c_stops_at_once_keeps_what_was_measured_and_leaves_nothing_running() {
    for (signal, test) in [("-INT", 1), ("-TERM", 2), ("-HUP", 4)] {
        let (target, marker) = marked(test);
        let place = Place::with(&suite(&target, "20s", ""));
        let mut child = measuring(&place, &marker);
        send_signal(signal, child.id());
        if signal == "-HUP" {
            // A shell sends it beside the kernel when its terminal closes.
            send_signal(signal, child.id());
        }
        assert_eq!(await_end(&mut child).code(), Some(130));
        assert_eq!(processes_with(&marker), [0_u32; 0], "left running");
        let list = place.loadline(&["ledger", "list"]);
        assert!(stdout(&list).contains("interrupted"), "{}{}", stdout(&list), stderr(&list));
    }
}

#[test]
fn a_run_that_was_started_to_outlive_its_terminal_does() {
    let (target, marker) = marked(5);
    let place = Place::with(&suite(&target, "500ms", ""));
    std::fs::create_dir_all(place.path().join(".loadline")).expect("a folder");
    let mut command = std::process::Command::new("nohup");
    command.arg(env!("CARGO_BIN_EXE_loadline")).args(["run", "suite.toml", "--wait"]);
    command.current_dir(place.path()).stdin(Stdio::null());
    command.env("LOADLINE_LOCK", place.path().join("loadline.lock"));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("nohup");
    await_that("the target runs", || !processes_with(&marker).is_empty());
    send_signal("-HUP", child.id());
    assert_eq!(await_end(&mut child).code(), Some(0));
}

#[test]
fn a_run_killed_in_the_middle_leaves_a_readable_ledger_and_nothing_running() {
    let (target, marker) = marked(3);
    let place = Place::with(&suite(&target, "20s", ""));
    let mut child = measuring(&place, &marker);
    send_signal("-KILL", child.id());
    await_end(&mut child);
    await_that("the guard ends the target", || processes_with(&marker).is_empty());
    let list = place.loadline(&["ledger", "list"]);
    assert!(stdout(&list).contains("interrupted"), "{}{}", stdout(&list), stderr(&list));
    let report = place.loadline(&["report", "last"]);
    assert_eq!(code(&report), 4, "{}{}", stdout(&report), stderr(&report));
}

#[test]
fn a_target_that_is_stopped_outside_its_slices_does_not_outlive_a_run_either() {
    for (signal, test) in [("-KILL", 13), ("-TERM", 14)] {
        let (target, marker) = marked(test);
        let targets = [("ours", &target[..]), ("other", SERVE)];
        let text = small_reads(&targets, "measure = \"20s\"\nbetween = \"stop\"");
        let place = Place::with(&text);
        let mut child = measuring(&place, &marker);
        let stopped = || processes_with(&marker).iter().any(|pid| is_stopped(*pid));
        await_that("it is stopped", stopped);
        send_signal(signal, child.id());
        await_end(&mut child);
        await_that("it has ended", || processes_with(&marker).is_empty());
    }
}

fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
}

#[test]
fn a_build_or_setup_that_takes_long_ends_with_the_run() {
    for (what, signal, test) in [("build", "-INT", 6), ("setup", "-TERM", 7), ("setup", "-KILL", 8)]
    {
        let marker = &unique(test).to_string();
        let target = format!("{SERVE}\n{what} = ['sh', '-c', 'sleep {marker} & wait']");
        let place = Place::with(&suite(&target, "60ms", ""));
        let mut child = measuring(&place, marker);
        send_signal(signal, child.id());
        let expected = if signal == "-KILL" { None } else { Some(130) };
        assert_eq!(await_end(&mut child).code(), expected, "{what}");
        await_that("the guard ends it", || processes_with(marker).is_empty());
        let list = place.loadline(&["ledger", "list"]);
        assert!(stdout(&list).contains("interrupted"), "{}{}", stdout(&list), stderr(&list));
    }
}

#[test]
fn a_command_of_an_event_ends_with_the_run() {
    for (signal, code, test) in [("-TERM", Some(130), 11), ("-KILL", None, 12)] {
        let marker = &unique(test).to_string();
        let text = suite(SERVE, "20s", "");
        let event = format!("[[event]]\nat = \"10ms\"\ndo = ['sh', '-c', 'sleep {marker} & wait']");
        let place = Place::with(&format!("{text}\n{event}\n"));
        let mut child = measuring(&place, marker);
        send_signal(signal, child.id());
        assert_eq!(await_end(&mut child).code(), code, "{signal}");
        await_that("the command ends, and its children", || processes_with(marker).is_empty());
    }
}

/// A target that leaves a process in a session of its own, and another one that has no parent left.
#[test]
fn sessions_and_daemons_of_a_target_end_with_the_run_however_it_ends() {
    for (signal, test) in [(None, 31), (Some("-INT"), 32), (Some("-KILL"), 33)] {
        let marker = unique(test);
        let script = format!("(setsid sleep {marker} &); setsid sleep {marker} & exec \"$@\"");
        let target = format!("{SERVE}\nwrap = ['sh', '-c', '{script}', 'sh']");
        let length = if signal.is_some() { "20s" } else { "500ms" };
        let place = Place::with(&suite(&target, length, ""));
        let sleepers = format!("sleep\0{marker}");
        let mut child = measuring(&place, &sleepers);
        if let Some(signal) = signal {
            await_that("both run", || processes_with(&sleepers).len() == 2);
            send_signal(signal, child.id());
        }
        await_end(&mut child);
        match signal {
            Some("-KILL") => {
                await_that("both have ended", || processes_with(&sleepers).is_empty());
            }
            _ => assert_eq!(processes_with(&sleepers), [0_u32; 0], "{signal:?}"),
        }
    }
}

#[test]
fn what_a_killed_supervisor_has_left_ends_with_the_run_which_says_so() {
    let ((target, marker), length) = (marked(35), unique(36));
    let script = format!("setsid sleep {length} & exec \"$@\"");
    let target = format!("{target}\nwrap = ['sh', '-c', '{script}', 'sh']");
    let sleepers = format!("sleep\0{length}");
    let place = Place::with(&suite(&target, "2s", ""));
    let mut child = measuring(&place, &sleepers);
    let supervisors = || -> Vec<u32> {
        let all = processes_with(&marker);
        let supervises = processes_with("\0supervise\0");
        all.into_iter().filter(|process| supervises.contains(process)).collect()
    };
    let output = place.path().join(".loadline/runs/1/0001-ours/stdout");
    await_that("it is ready", || std::fs::read(&output).is_ok_and(|text| !text.is_empty()));
    supervisors().into_iter().for_each(|process| send_signal("-KILL", process));
    await_end(&mut child);
    assert_eq!(processes_with(&marker), [0_u32; 0], "the target");
    assert_eq!(processes_with(&sleepers), [0_u32; 0], "a session of its own");
    let report = place.loadline(&["report", "last"]);
    assert!(stdout(&report).contains("the supervisor of ours was killed"), "{}", stdout(&report));
}

/// A script that starts a server and then becomes the lab hands it that server as a child, or as
/// one of a wrapper that ends during the run, and may start another one then.
#[test]
fn what_was_started_before_the_run_goes_on_after_it() {
    for (test, start, left) in [(38, "", 2), (39, "setsid ", 3)] {
        let marker = unique(test);
        let end_wrapper = r#"read wrapper server < "$0"
            is_wrapped() { read -r _ _ _ parent _ < /proc/$server/stat; [ $parent = $wrapper ]; }
            if is_wrapped; then kill $wrapper; fi
            while is_wrapped; do :; done"#;
        let place = Place::with("");
        let inherited = place.path().join("inherited");
        let inherited = inherited.display();
        let setup = format!("setup = ['sh', '-c', '''{end_wrapper}''', '{inherited}']");
        let suite = suite(&format!("{SERVE}\n{setup}"), "60ms", "");
        std::fs::write(place.path().join("suite.toml"), suite).unwrap();
        std::fs::create_dir_all(place.path().join(".loadline")).expect("a folder");
        let wrapper = format!(
            "trap 'sleep {marker} & exit' TERM; sleep {marker} & echo $$ $! > {inherited}; wait"
        );
        let exe = env!("CARGO_BIN_EXE_loadline");
        let script = format!(
            r#"sleep {marker} & {start}sh -c "$0" &
            until [ -s {inherited} ]; do :; done
            exec {exe} run suite.toml --wait"#
        );
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &script, &wrapper]).current_dir(place.path());
        shell.env("LOADLINE_LOCK", place.path().join("loadline.lock"));
        let mut shell = shell.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("sh runs");
        let status = await_end(&mut shell);
        let sleepers = processes_with(&format!("sleep\0{marker}"));
        sleepers.iter().for_each(|process| send_signal("-KILL", *process));
        assert_eq!((status.code(), sleepers.len()), (Some(0), left), "{start}");
    }
}

#[test]
fn what_a_command_leaves_behind_ends_with_each_of_its_runs() {
    let place = Place::with("");
    let marker = unique(34);
    let script = format!("(setsid sleep {marker} &)");
    let tried = place.loadline(&["try", "--wait", "--for", "300ms", "--", "sh", "-c", &script]);
    assert_eq!(processes_with(&format!("sleep\0{marker}")), [0_u32; 0], "{}", stderr(&tried));
}

#[test]
fn a_target_is_ended_by_the_signal_that_its_suite_names() {
    let noted =
        |signal: &str| format!("trap \"echo {signal} >> \\\"$0\\\"; kill $child\" {signal}");
    let script = format!("\"$@\" & child=$!; {}; {}; wait; wait", noted("USR1"), noted("TERM"));
    for (key, expected) in [("", "TERM"), ("stop_signal = 'SIGUSR1'", "USR1")] {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display();
        let target = format!("{SERVE}\n{key}\nwrap = ['sh', '-c', '''{script}''', '{path}']");
        let place = Place::with(&suite(&target, "60ms", ""));
        let run = place.loadline(&["run", "--wait", "suite.toml"]);
        let seen = std::fs::read_to_string(file.path()).unwrap();
        // Once a round.
        let seen: Vec<&str> = seen.lines().collect();
        assert_eq!(seen, [expected; 2], "{}{}", stdout(&run), stderr(&run));
    }
}

/// A cache with a memory size that no other test has, so that its process can be told apart.
fn marked(test: u32) -> (String, String) {
    let bytes = unique(test);
    let target = format!("{SERVE}\noptions = {{ memory = {bytes} }}");
    (target, format!("--memory={bytes}"))
}

/// Starts a long run and waits until its target runs.
fn measuring(place: &Place, marker: &str) -> std::process::Child {
    std::fs::create_dir_all(place.path().join(".loadline")).expect("a folder");
    // Tests may have been started to outlive their terminal, with SIGHUP ignored.
    let mut command = std::process::Command::new("env");
    command.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_loadline")]);
    command.args(["run", "suite.toml", "--wait"]).current_dir(place.path());
    command.stdin(Stdio::null()).env("LOADLINE_LOCK", place.path().join("loadline.lock"));
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a run");
    await_that("the target runs", || !processes_with(marker).is_empty());
    child
}

#[test]
fn a_suite_error_names_the_place_and_what_would_be_right() {
    let place = Place::with(&suite(SERVE, "60ms", "").replace("pipeline = 2", "pipelin = 2"));
    for command in ["run", "plan"] {
        let output = place.loadline(&[command, "suite.toml"]);
        assert_eq!(code(&output), 2);
        let said = stderr(&output);
        assert!(said.contains("suite.toml:13:1"), "{said}");
        assert!(said.contains("did you mean `pipeline`?"), "{said}");
    }
    let two = suite(SERVE, "60ms", "[rond]").replace("pipeline = 2", "pipelin = 2");
    let said = stderr(&Place::with(&two).loadline(&["plan", "suite.toml"]));
    assert!(said.contains("`pipelin`") && said.contains("`rond`"), "{said}");
    assert!(!said.contains("Error:"), "each mistake begins alike: {said}");
    let unused = "[derive]\nserver_time = \"latency.maen / 2\"";
    let place = Place::with(&suite(SERVE, "60ms", unused));
    place.refuses(&["plan", "suite.toml"], 2, "suite.toml:24:15");
    place.refuses(&["plan", "suite.toml"], 2, "derive.server_time: \"latency.maen\" is neither");
}

#[test]
fn a_rooms_options_are_checked_before_anything_starts() {
    let wrong = format!("{SERVE}\noptions = {{ memry = \"1GiB\" }}");
    let place = Place::with(&suite(&wrong, "60ms", ""));
    let output = place.loadline(&["run", "suite.toml"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("memory"), "{}", stderr(&output));
}

#[test]
fn a_missing_program_is_an_error_unless_the_target_is_optional() {
    let missing = "command = [\"no-such-program-here\"]\nspeaks = \"memcached\"";
    let place = Place::with(&suite(missing, "60ms", ""));
    let output = place.loadline(&["plan", "suite.toml"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("optional = true"), "{}", stderr(&output));
    let place = Place::with(&suite(&format!("{missing}\noptional = true"), "60ms", ""));
    let output = place.loadline(&["plan", "suite.toml"]);
    assert_eq!(code(&output), 0);
    assert!(stdout(&output).contains("LEFT OUT"), "{}", stdout(&output));
    let output = place.loadline(&["run", "suite.toml", "--wait"]);
    assert_eq!(code(&output), 4, "{}", stderr(&output));
    let said = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("as every target is left out ("), "{said}");
    assert!(said.contains("no-such-program-here is not installed): install what"), "{said}");
    assert!(!stderr(&output).contains("round 1"), "{}", stderr(&output));
}

#[test]
fn a_plan_says_what_would_run_and_settings_change_it() {
    let sweep = "[sweep]\n\"clients.pipeline\" = [1, 2, 4]";
    let place = Place::with(&suite(SERVE, "60ms", sweep));
    let output = place.loadline(&["plan", "suite.toml"]);
    assert_eq!(stdout(&output).matches("3 conns").count(), 3, "{}", stdout(&output));
    let output = place.loadline(&["plan", "suite.toml", "--set", "clients.pipeline=8"]);
    assert_eq!(stdout(&output).matches("depth 8").count(), 1, "{}", stdout(&output));
    assert!(!place.ledger().exists(), "a plan keeps nothing");
}

#[test]
fn the_system_calls_of_an_operation_are_counted_where_the_host_lets_them() {
    let place = Place::with(&suite(SERVE, "60ms", ""));
    let output = place.loadline(&["run", "suite.toml", "--wait", "--json", "--cost"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert!(json["floors_ns"]["system_call"].as_f64() > Some(0.0), "{json}");
    let cost = &json["points"][0]["cost"][0];
    if stderr(&output).contains("are not counted") {
        testing::skip(stderr(&output).trim());
        return;
    }
    for side in ["server_calls", "generator_calls"] {
        let calls = cost[side].as_array().expect("calls");
        let made: f64 = calls.iter().filter_map(|call| call["calls_per_op"].as_f64()).sum();
        // Three connections with two requests each: at most some calls an operation.
        assert!(made > 0.1 && made < 20.0, "{side}: {calls:?}");
    }
    // Nothing of those trials is among the measured ones.
    assert_eq!(json["trials"].as_array().map(Vec::len), Some(2));
    assert_eq!(json["points"][0]["rounds"], 2);
}

#[test]
fn the_system_calls_of_a_batch_are_those_of_one_run_of_it() {
    let place = Place::with(
        "title = 'Lines'\n[[target]]\nname = 'lines'\n\
         batch = ['sh', '-c', 'for line in 1 2 3 4 5 6 7; do echo $line; done']\n\
         [workload]\nservice = 'batch'\noperation = 'run'\n[[clients]]\nconnections = 1\n\
         [rounds]\nmeasure = '50ms'\nslice = 'none'\nwarm_up = '0ms'\nat_least = 1\n\
         at_most = 1\n",
    );
    let output = place.loadline(&["run", "suite.toml", "--wait", "--json", "--cost"]);
    let (said, json) = (stderr(&output), stdout(&output));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(!said.contains("no process"), "{said}");
    if said.contains("not counted") {
        testing::skip(said.trim());
        return;
    }
    let calls = json["points"][0]["cost"][0]["server_calls"].as_array().expect("calls");
    let write = calls.iter().find(|call| call["name"] == "write").expect("writes");
    assert_eq!(write["calls_per_op"], 7.0, "{calls:?}");
}

#[test]
fn a_ladder_is_measured_judged_and_decided_about() {
    let rungs = "[[rung]]\nname = 'one'\nnote = 'as it was'\n\
                 [[rung]]\nname = 'two'\noptions = { no_cas = true }\n";
    let place = Place::with(&suite(SERVE, "60ms", rungs));
    let output = place.loadline(&["ladder", "suite.toml", "--wait", "--profiles", "0"]);
    assert_eq!(code(&output), 4, "two rounds tell nothing: {}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("  1 one — as it was\n"), "{text}");
    // Too few rounds, or a generator at its own limit: which of them is said is the host's matter.
    assert!(text.contains("against the one before: can't tell ("), "{text}");
    let kept = place.loadline(&["ladder", "--keep", "two", "--because", "less memory"]);
    assert_eq!(code(&kept), 0, "{}", stderr(&kept));
    assert!(stdout(&kept).contains("      kept: less memory\n"), "{}", stdout(&kept));
    let unknown = place.loadline(&["ladder", "--back-out", "three", "--because", "no gain"]);
    assert_eq!(code(&unknown), 2);
    assert!(stderr(&unknown).contains("no rung \"three\"; it has: one, two"), "{unknown:?}");
    let plain = Place::with(&suite(SERVE, "60ms", ""));
    let plain_suite = plain.path().join("suite.toml").display().to_string();
    place.loadline(&["run", &plain_suite, "--wait"]);
    let not_it = place.loadline(&["ladder", "--keep", "two", "--because", "less memory"]);
    assert!(stderr(&not_it).contains("run 2 is none of a ladder"), "{}", stderr(&not_it));
    assert!(stderr(&not_it).contains("is 1: --run 1"), "{}", stderr(&not_it));
    let refused = plain.loadline(&["ladder", "suite.toml"]);
    assert_eq!(code(&refused), 2);
    assert!(stderr(&refused).contains("has no [[rung]]"), "{}", stderr(&refused));
    let commits = "[[rung]]\nname = 'old'\ncommit = 'HEAD~1'\n";
    let commits = Place::with(&suite(SERVE, "60ms", commits));
    for command in ["run", "ladder"] {
        let refused = commits.loadline(&[command, "suite.toml", "--wait"]);
        assert_eq!(code(&refused), 2);
        assert!(stderr(&refused).contains("--build"), "{}", stderr(&refused));
    }
}
