//! The ways a target comes to be, and what its bytes travel in.

use crate::common::{Place, code, small_reads, stderr, stdout};

/// One quick round of a suite whose target is `target`.
fn suite(target: &str) -> String {
    let once = "measure = \"30ms\"\nat_least = 1\nat_most = 1";
    small_reads(
        &[("ours", target)],
        &format!("{once}\n[require]\nwrong = \"= 0\"\nmissing = \"= 0\""),
    )
}

/// Runs it and says what it printed.
fn run(place: &Place) -> (i32, String) {
    let output = place.loadline(&["run", "suite.toml", "--wait"]);
    (code(&output), format!("{}{}", stdout(&output), stderr(&output)))
}

#[test]
fn a_room_is_reached_over_ipv4_ipv6_and_a_unix_socket() {
    for transport in ["tcp", "tcp6", "unix"] {
        if transport == "tcp6" && std::net::TcpListener::bind("[::1]:0").is_err() {
            testing::skip("this host has no IPv6");
            continue;
        }
        let place = Place::with(&suite(&format!("serve = 'cache'\ntransport = '{transport}'")));
        let (code, said) = run(&place);
        assert_eq!(code, 0, "{transport}: {said}");
        assert!(said.contains("0 wrong of"), "{transport}: {said}");
    }
}

#[test]
fn a_command_gets_its_port_socket_and_folder_and_is_set_up_before_each_start() {
    let exe = env!("CARGO_BIN_EXE_loadline");
    for (listen, transport) in [("127.0.0.1:{port}", "tcp"), ("unix:{socket}", "unix")] {
        let place = Place::with(&suite(&format!(
            "command = ['sh', '-c', \
             'test -f {{dir}}/made && exec {exe} serve cache --listen {listen}']\n\
             setup = ['touch', '{{dir}}/made']\nspeaks = 'memcached'\ntransport = '{transport}'"
        )));
        let (code, said) = run(&place);
        assert_eq!(code, 0, "{transport}: {said}");
    }
}

/// Two targets of which the first burns CPU time all the time, in two rounds of four slices.
fn with_burner(between: &str) -> Place {
    let exe = env!("CARGO_BIN_EXE_loadline");
    let burner = format!(
        "command = ['sh', '-c', 'while :; do :; done & exec {exe} serve cache \
         --listen 127.0.0.1:{{port}}']\nspeaks = 'memcached'"
    );
    let targets = [("burner", &burner[..]), ("quiet", "serve = 'cache'")];
    let rounds = "measure = \"200ms\"\nslice = \"50ms\"\nat_least = 2\nat_most = 2";
    Place::with(&small_reads(&targets, &format!("{rounds}\nbetween = \"{between}\"")))
}

#[test]
fn a_target_that_works_outside_its_slices_is_named_and_may_be_stopped_there() {
    let named = "burner used ";
    for (between, works) in [("run", true), ("stop", false)] {
        // Where others keep the core, it is stopped late, and has worked until then.
        crate::common::await_that(&format!("{between}: it is as the suite has it"), || {
            let place = with_burner(between);
            let json = place.json(&["run", "suite.toml", "--wait", "--json"], &[0, 4]);
            let target = &json["points"][0]["targets"][0];
            assert_eq!(target["valid_trials"], 2, "{target}");
            let outside = &target["between_slices"];
            let share = |name: &str| outside[name].as_f64().expect("a figure");
            let cores = share("cpu_ns") / share("time_ns");
            let report = stdout(&place.loadline(&["report", "last"]));
            (cores > 0.01) == works && report.contains(named) == works
        });
    }
    let elsewhere = suite("address = '127.0.0.1:1'\nspeaks = 'memcached'");
    let place = Place::with(&elsewhere.replace("[rounds]", "[rounds]\nbetween = \"stop\""));
    place.refuses(&["plan", "suite.toml"], 2, "was not started by the lab");
}

#[test]
fn something_that_runs_already_is_loaded_at_its_address_and_seen() {
    let place = Place::with("");
    let socket = place.path().join("cache.socket");
    let listen = format!("unix:{}", socket.display());
    let mut cache = place.command(&["serve", "cache", "--listen", &listen]);
    let mut cache = cache.stdout(std::process::Stdio::null()).spawn().expect("a cache");
    crate::common::await_that("the cache listens", || socket.exists());
    let target = format!("address = '{listen}'\nspeaks = 'memcached'");
    std::fs::write(place.path().join("suite.toml"), suite(&target)).expect("the suite");
    let (code, said) = run(&place);
    crate::common::send_signal("-TERM", cache.id());
    assert_eq!(crate::common::await_end(&mut cache).code(), Some(0), "a clean end");
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains("server CPU unseen"), "its processes are those that listen: {said}");
}

#[test]
fn a_setup_or_build_that_fails_is_said_with_its_last_words() {
    let fails = "['sh', '-c', 'echo no such luck; echo again >&2; exit 9']";
    let place = Place::with(&suite(&format!("serve = 'cache'\nsetup = {fails}")));
    let (code, said) = run(&place);
    // Long lines go on in the next.
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("status 9; its last lines: no such luck | again"), "{said}");
    let place = Place::with(&suite(&format!("serve = 'cache'\nbuild = {fails}")));
    let (code, said) = run(&place);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("its build failed") && said.contains("no such luck"), "{said}");
}

#[test]
fn a_program_that_is_replaced_while_it_measures_measures_no_more() {
    // It replaces itself by a script that does the same: only that it is another file tells.
    let place = Place::with("");
    let own = place.path().join("loadline");
    let exe = env!("CARGO_BIN_EXE_loadline");
    let linked = std::fs::hard_link(exe, &own).or_else(|_| std::fs::copy(exe, &own).map(drop));
    linked.expect("a loadline of its own");
    let script = format!("#!/bin/sh\nexec {exe} \"$@\"\n");
    let new = place.path().join("new");
    std::fs::write(&new, script).expect("a script");
    let replace = format!("cp --remove-destination {} {}", new.display(), own.display());
    let replace = format!("chmod 755 {} && {replace}", new.display());
    let text = suite(&format!("serve = 'cache'\nsetup = ['sh', '-c', '{replace}']"));
    let text = text.replace("at_least = 1\nat_most = 1", "at_least = 2\nat_most = 2");
    std::fs::write(place.path().join("suite.toml"), text).expect("the suite");
    std::fs::create_dir_all(place.path().join(".loadline")).expect("a folder");
    let mut command = std::process::Command::new(&own);
    command.args(["run", "suite.toml", "--wait"]).current_dir(place.path());
    command.env("LOADLINE_LOCK", place.path().join("loadline.lock"));
    command.output().expect("it runs");
    let report = place.loadline(&["report", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&report)).expect("JSON");
    assert_eq!(json["trials"][0]["validity"], "valid", "{}", json["trials"][0]["reason"]);
    let reason = json["trials"][1]["reason"].as_str().expect("a reason");
    assert!(reason.contains("was replaced since the run began"), "{reason}");
}

#[test]
fn a_wrapped_target_is_measured_and_its_timings_are_invalid() {
    let place = Place::with(&suite("serve = 'cache'\nwrap = ['env', 'WRAPPED=1']"));
    let (code, said) = run(&place);
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("timings are those of env too"), "{said}");
}

#[test]
fn what_could_not_be_prepared_is_not_measured_and_says_why() {
    let small = suite("serve = 'cache'\noptions = { max-item = '2KiB' }");
    let place = Place::with(&small.replace("bytes = 40", "bytes = 4000"));
    let output = place.loadline(&["run", "suite.toml", "--wait", "--json"]);
    assert_eq!(code(&output), 1, "nothing was measured: {}", stderr(&output));
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let trial = &json["trials"][0];
    assert_eq!((&trial["validity"], &trial["failed_at"]), (&"invalid".into(), &"prepare".into()));
    assert_eq!((&trial["operations"], &trial["measured_ns"]), (&0.into(), &0.into()), "{trial:#}");
    assert_eq!((&trial["wrong"], &trial["wrong_outside"]), (&0.into(), &0.into()), "{trial:#}");
    assert!(trial["warmup_ns"].is_null(), "{trial:#}");
    let why = trial["reason"].as_str().expect("why");
    assert!(why.starts_with("100 writes refused while preparing: the server refused"), "{why}");
}

/// A suite whose target is a process that runs to its end, over and over.
fn batch(script: &str) -> String {
    let figures = "{ speed = 'at ([0-9.]+) knots', updates_per_s = '([0-9.]+) turns', \
                   wrong = '([0-9]+) wrong' }";
    let text = suite(&format!("batch = ['sh', '-c', '{script}']\nfigures = {figures}"));
    let start = text.find("[workload]").expect("a workload");
    let end = text.find("[[clients]]").expect("clients");
    let workload = "[workload]\nroom = 'batch'\noperation = 'run'\nkeys = { count = 1 }\n\
                    value = { bytes = 8 }\n";
    text.replace(&text[start..end], workload).replace("connections = 2", "connections = 1")
}

#[test]
fn whole_processes_are_batches_with_their_time_memory_and_figures() {
    // The last bytes are kept until it is known that they are.
    let holds = "head -c 20000000 /dev/zero | tail -c 20000000 >/dev/null";
    let place = Place::with(&batch(&format!("echo sailing at 12.5 knots; {holds}")));
    let output = place.loadline(&["run", "suite.toml", "--wait", "--json"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let trial = &json["trials"][0];
    assert!(trial["operations"].as_u64().expect("a count") > 0, "{trial}");
    assert!(trial["server"]["cpu_ns_per_op"].as_f64().expect("seen") > 0.0, "{trial}");
    assert!(trial["server"]["rss_bytes"].as_f64().expect("seen") > 2e7, "{trial}");
    assert_eq!(trial["updates_per_s"], serde_json::Value::Null, "{trial}");
    let place = Place::with(&batch("echo struck a rock; exit 3"));
    let (code, said) = run(&place);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("status 3; its last line: struck a rock"), "{said}");
    assert!(!said.contains("received"), "there are no bytes to compare: {said}");
}

#[test]
fn a_figure_that_is_called_like_a_metric_is_that_metric() {
    let text = batch("echo 40 turns, 0 wrong")
        .replace("[require]", "[expect]\nupdates_per_s = '= 40/s'\n[require]");
    let place = Place::with(&text);
    let output = place.loadline(&["run", "suite.toml", "--wait", "--json"]);
    assert_eq!(code(&output), 0, "what was expected came: {}", stderr(&output));
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(json["trials"][0]["updates_per_s"], 40.0, "{json:#}");
    let arguments = ["ledger", "export", "last", "--format", "jsonl", "--table", "trials"];
    let row = stdout(&place.loadline(&arguments));
    let row: serde_json::Value =
        serde_json::from_str(row.lines().next().expect("a row")).expect("JSON");
    assert_eq!(row["updates_per_s"], 40.0, "{row:#}");

    let place = Place::with(&batch("echo 40 turns, 2 wrong"));
    let (code, said) = run(&place);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("it reports wrong = 2; its last line: 40 turns, 2 wrong"), "{said}");
}

#[test]
fn data_that_were_prepared_once_are_kept_and_copied_for_every_later_start() {
    let redis = std::process::Command::new("redis-server").arg("--version").output();
    if redis.is_err() {
        testing::skip("redis-server is not installed (`cargo xtask peers` installs it)");
        return;
    }
    let target = "command = ['redis-server', '--bind', '127.0.0.1', '--port', '{port}', \
         '--dir', '{data}', '--save', '3600 1']\nspeaks = 'redis'\ndata = 'keep'";
    // Two rounds, of which the second and both of the next run read what the first has written.
    let suite = suite(target).replace("at_least = 1\nat_most = 1", "at_least = 2\nat_most = 2");
    let place = Place::with(&suite);
    let run = |settings: &[&str]| -> serde_json::Value {
        let arguments = [&["run", "suite.toml", "--wait", "--json"], settings].concat();
        let output = place.loadline(&arguments);
        serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)))
    };
    let check = |json: &serde_json::Value| {
        for trial in json["trials"].as_array().expect("trials") {
            assert_eq!(
                (&trial["validity"], &trial["misses"]),
                (&"valid".into(), &0.into()),
                "{trial:#}"
            );
            assert_eq!(trial["wrong"], 0, "{trial:#}");
        }
    };
    let sets = || std::fs::read_dir(place.path().join(".loadline/data")).expect("data").count();
    check(&run(&[]));
    assert_eq!(sets(), 1);
    let kept = std::fs::read_dir(place.path().join(".loadline/data")).expect("data").next();
    let kept = kept.expect("a set").expect("readable").path();
    let dump = std::fs::metadata(kept.join("dump.rdb")).expect("its data");
    // Writers get a copy: what is kept stays as it was prepared.
    check(&run(&["--set", "workload.operation=set"]));
    let after = std::fs::metadata(kept.join("dump.rdb")).expect("its data");
    assert_eq!((dump.len(), dump.modified().ok()), (after.len(), after.modified().ok()));
    assert_eq!(sets(), 1, "the same keys and values are the same set");
    check(&run(&["--set", "workload.value.bytes=41"]));
    assert_eq!(sets(), 2);
    let cold = run(&["--set", "rounds.state=cold", "--set", "rounds.warm_up=0s"]);
    check(&cold);
    assert_eq!(cold["trials"][1]["state"], "cold");
    let runs = place.path().join(".loadline/runs/1");
    let copies = std::fs::read_dir(runs).expect("starts").flatten();
    assert_eq!(copies.filter(|start| start.path().join("data").exists()).count(), 0);
    let wrong = Place::with(&suite.replace("'{data}'", "'{dir}'"));
    let output = wrong.loadline(&["plan", "suite.toml"]);
    assert!(code(&output) == 2 && stderr(&output).contains("{data}"), "{}", stderr(&output));
}

#[test]
fn a_target_that_accepts_and_never_answers_is_invalid_at_a_rate_of_zero() {
    // The kernel accepts connections for it; nothing ever reads them.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("its address");
    let suite = format!(
        "title = 'Silence'\n[[target]]\nname = 'silent'\naddress = '{address}'\nspeaks = 'http'\n\
         [workload]\nservice = 'http'\noperation = 'index'\n\
         [[workload.request]]\nname = 'index'\npath = '/'\n\
         [[clients]]\nconnections = 2\ntimeout = '50ms'\n\
         [rounds]\nmeasure = '100ms'\nslice = 'none'\nwarm_up = '0s'\nat_least = 1\nat_most = 1\n"
    );
    let run = Place::with(&suite).json(&["run", "suite.toml", "--json"], &[1]);
    let (trial, point) = (&run["trials"][0], &run["points"][0]["targets"][0]);
    assert_eq!(trial["validity"], "invalid", "{trial:#}");
    assert_eq!(trial["reason"], "no operation was answered");
    assert!(trial["missing"].as_u64() > Some(0), "{trial:#}");
    assert_eq!(point["rate_per_s"], 0.0, "{point:#}");
    assert_eq!(point["grade"]["word"], "invalid");
}
