//! The kinds of load that a suite may ask for, and what happens while it lasts.

use crate::common::{Place, code, stderr, stdout};

/// A suite of one cache with `clients` and `rest` added.
fn suite(clients: &str, rest: &str) -> String {
    format!(
        r#"
title = "A kind of load"
[[target]]
name = "ours"
serve = "cache"
[workload]
service = "cache"
operation = "get"
keys = {{ count = 100 }}
value = {{ bytes = 40 }}
[[clients]]
{clients}
[require]
wrong = "= 0"
{rest}
"#
    )
}

/// Runs it and gives the result as JSON.
fn run(place: &Place) -> serde_json::Value {
    let output = place.loadline(&["run", "suite.toml", "--wait", "--json"]);
    assert!([0, 4].contains(&code(&output)), "{}{}", stdout(&output), stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

#[test]
fn a_target_that_stops_costs_the_requests_that_were_due_meanwhile() {
    let open = "connections = 4\narrivals = { rate = \"1k/s\" }";
    let event = "[[event]]\nname = \"a <stop>\"\nat = \"100ms\"\ndo = \"stop\"\nfor = \"500ms\"\n\
                 [rounds]\ndisturbed = \"ignore\"\nmeasure = \"1s\"\nslice = \"none\"\n\
                 warm_up = \"0s\"\nat_least = 1\nat_most = 1";
    let place = Place::with(&suite(open, event));
    let result = run(&place);
    let trial = &result["trials"][0];
    assert_eq!(trial["operations"], 1_000, "{trial}");
    assert_eq!(trial["state"], "cold", "nothing warmed it up");
    // 500 of 1,000 requests met the stop and waited up to all of it: 500 ms, and 400 ms at p90.
    // Where others keep the core, the stop comes later and is as much shorter.
    let latency_ns = |name: &str| trial["latency_ns"][name].as_f64().expect("seen");
    assert!(latency_ns("max") > 200e6, "{trial}");
    assert!(latency_ns("p90") > 100e6, "a closed loop would have seen four slow ones: {trial}");
    // It is in the ledger, in the text and in the page, on the clock of everything else.
    let [event] = &result["events"].as_array().expect("events")[..] else { panic!("{result}") };
    assert_eq!((&event["name"], &event["failure"]), (&"a <stop>".into(), &().into()), "{event}");
    assert_eq!((&event["trial"], &event["action"]), (&trial["id"], &"stop for 500 ms".into()));
    let ns = |name: &str| event[name].as_u64().expect("a number");
    let ledger = ledger::Ledger::open_read_only(place.ledger()).expect("a ledger");
    let slice = ledger.run_view(1.into()).expect("a run").slices.remove(0);
    let since_ns = ns("at_ns") - slice.start_ns;
    assert!(since_ns >= 100_000_000 && since_ns + ns("took_ns") >= 600_000_000, "{slice:?}");
    let text = stdout(&place.loadline(&["report"]));
    assert!(text.contains("event a <stop> (stop for 500 ms): once, "), "{text}");
    let page = place.path().join(".loadline/runs/1/report.html");
    let page = std::fs::read_to_string(page).expect("the run's page");
    assert!(page.contains("<title>a &lt;stop&gt;: 1</title>"), "{page}");
}

#[test]
fn rates_one_after_another_are_measured_to_the_end_of_the_last_or_refused() {
    let steps = "connections = 4\n\
                 arrivals = { steps = [{ rate = \"100/s\", for = \"600ms\" }, \
                 { rate = \"1k/s\", for = \"400ms\" }] }";
    let rounds = |rest: &str| {
        format!(
            "[rounds]\ndisturbed = \"ignore\"\nwarm_up = \"0s\"\nat_least = 1\nat_most = 1\n{rest}"
        )
    };
    let result = run(&Place::with(&suite(steps, &rounds(""))));
    let operations = result["trials"][0]["operations"].as_u64().expect("counted");
    assert!((459..=461).contains(&operations), "60 and 400 are due: {operations}");
    let stretches = &result["points"][0]["targets"][0]["stretches"];
    for (ordinal, name, due_per_s) in [(0, "100/s", 100.0), (1, "1k/s", 1_000.0)] {
        let one = &stretches[ordinal];
        assert_eq!(one["name"], name, "{stretches}");
        let due = one["offered_per_s"].as_f64().expect("seen");
        assert!((due / due_per_s - 1.0).abs() < 0.02, "{stretches}");
        assert!(one["latency_ns"]["p99"].as_u64().is_some_and(|ns| ns > 0), "{stretches}");
        assert_eq!((&one["wrong"], &one["missing"]), (&0.into(), &0.into()), "{stretches}");
    }
    let two = format!(
        "{steps}\n[[clients]]\narrivals = {{ steps = [{{ rate = \"9/s\", for = \"700ms\" }}] }}"
    );
    let said = "steps of clients1 end after 700 ms, and those of clients go on";
    Place::with(&suite(&two, &rounds(""))).refuses(&["plan", "suite.toml"], 2, said);
    let trace = "[[clients]]\narrivals = { trace = \"t.csv\" }";
    let beside = Place::with(&suite(&format!("{steps}\n{trace}"), &rounds("")));
    std::fs::write(beside.path().join("t.csv"), "0.1\n0.5\n").expect("a trace");
    let planned = stdout(&beside.loadline(&["plan", "suite.toml"]));
    assert!(planned.contains("1 s of each target"), "a trace ends when it does: {planned}");
    for (rest, said) in [
        ("slice = \"500ms\"", "arrivals go on for 1 s, and a slice is over after 500 ms"),
        ("measure = \"800ms\"", "arrivals go on for 1 s, and a trial is over after 800 ms"),
        ("measure = \"2s\"", "arrivals end after 1 s, and a trial idles on until 2 s"),
    ] {
        Place::with(&suite(steps, &rounds(rest))).refuses(&["plan", "suite.toml"], 2, said);
    }
}

#[test]
fn a_plan_needs_no_ledger_and_says_which_slices_there_are() {
    let rounds = "[rounds]\nmeasure = \"3.5s\"\nslice = \"900ms\"";
    let place = Place::with(&suite("connections = 1", rounds));
    let planned = place.loadline(&["plan", "suite.toml", "--ledger", "new.sqlite"]);
    let text = stdout(&planned);
    let said = "3.5 s of each target in 4 slices of 900 ms, the last of 800 ms";
    assert!(text.replace("\n  ", " ").contains(said), "{text}");
    assert!(!place.path().join("new.sqlite").exists(), "planning makes none");
}

#[test]
fn bursts_of_which_no_two_fit_into_a_slice_are_refused() {
    let bursts = |off| {
        format!("arrivals = {{ rate = \"100/s\", bursts = {{ on = \"10ms\", off = \"{off}\" }} }}")
    };
    let planned = |off, rounds| Place::with(&suite(&bursts(off), rounds));
    let slice = "[rounds]\nslice = \"500ms\"";
    assert!(stdout(&planned("240ms", slice).loadline(&["plan", "suite.toml"])).contains("500 ms"));
    let said = "bursts come every 510 ms, and a slice is over after 500 ms";
    planned("500ms", slice).refuses(&["plan", "suite.toml"], 2, said);
    let whole = stdout(&planned("500ms", "").loadline(&["plan", "suite.toml"]));
    assert!(whole.contains("5 s of each target in one piece"), "{whole}");
}

#[test]
fn targets_run_on_from_round_to_round_when_nothing_restarts_them() {
    let rounds = |restart| {
        format!(
            "[rounds]\ndisturbed = \"ignore\"\nrestart = \"{restart}\"\n\
             measure = \"20ms\"\nwarm_up = \"0s\"\n\
             at_least = 3\nat_most = 3"
        )
    };
    for (restart, starts, states) in
        [("never", 1, ["cold", "warm", "warm"]), ("round", 3, ["cold", "cold", "cold"])]
    {
        let place = Place::with(&suite("connections = 1", &rounds(restart)));
        let result = run(&place);
        let trials = result["trials"].as_array().expect("trials");
        let seen: Vec<_> = trials.iter().map(|trial| trial["state"].as_str()).collect();
        assert_eq!(seen, states.map(Some), "{restart}");
        let logs = std::fs::read_dir(place.path().join(".loadline/runs/1")).expect("logs");
        let started = logs.filter(|entry| entry.as_ref().is_ok_and(|one| one.path().is_dir()));
        assert_eq!(started.count(), starts, "{restart}");
    }
}

#[test]
fn a_suite_says_whether_its_data_are_cold_or_warm_when_they_are_measured() {
    let rounds = |state: &str| {
        format!(
            "[rounds]\ndisturbed = \"ignore\"\nmeasure = \"30ms\"\n{state}\n\
             at_least = 2\nat_most = 2"
        )
    };
    let states = |rounds: &str| -> (Vec<String>, String) {
        let place = Place::with(&suite("connections = 1", rounds));
        let result = run(&place);
        for trial in result["trials"].as_array().expect("trials") {
            assert!(trial["operations"].as_u64() > Some(0), "{trial:#}");
            assert_eq!(trial["warmup_ns"].is_null(), trial["state"] == "cold", "{trial:#}");
        }
        let state = |trial: &serde_json::Value| trial["state"].as_str().map(str::to_owned);
        let states = result["trials"].as_array().expect("trials").iter().filter_map(state);
        (states.collect(), stdout(&place.loadline(&["report"])))
    };
    let (cold, report) = states(&rounds("state = \"cold\""));
    assert_eq!(cold, ["cold", "cold"]);
    assert!(report.contains("1 conns · depth 1 · closed · cold"), "{report}");
    let (warm, report) = states(&rounds("state = \"warm\"\nwarm_up = \"10ms\""));
    assert_eq!(warm, ["warm", "warm"]);
    assert!(!report.contains("· cold"), "{report}");
    let both = rounds("state = \"cold\"\nwarm_up = \"10ms\"");
    let output = Place::with(&suite("connections = 1", &both)).loadline(&["plan", "suite.toml"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("leave warm_up out"), "{}", stderr(&output));
}

#[test]
fn several_groups_of_clients_load_at_once_and_are_kept_apart() {
    let groups = "name = \"many\"\nconnections = 4\n[[clients]]\nname = \"reference\"\n\
                  arrivals = { think = \"5ms\" }";
    let rest = "[rounds]\ndisturbed = \"ignore\"\nmeasure = \"100ms\"\nat_least = 1\nat_most = 1";
    let place = Place::with(&suite(groups, rest));
    let result = run(&place);
    assert_eq!(result["trials"][0]["wrong"], 0);
    let ledger = ledger::Ledger::open_read_only(place.ledger()).expect("a ledger");
    let view = ledger.run_view(1.into()).expect("a run");
    let count = |name: &str| -> u64 {
        let of_group = view.histograms.iter().filter(|row| row.clients == name);
        of_group.filter(|row| row.kind.word() == "latency").map(|row| row.count).sum()
    };
    assert!(count("many") > 0 && count("reference") > 0);
    assert!(count("reference") <= 21, "one slot that thinks 5 ms: {}", count("reference"));
}

#[test]
fn a_group_of_clients_may_have_operations_of_its_own() {
    let groups = "name = \"readers\"\nconnections = 2\n[[clients]]\nname = \"writers\"\n\
                  operation = \"set\"";
    let rest = "[rounds]\ndisturbed = \"ignore\"\nmeasure = \"100ms\"\nat_least = 1\nat_most = 1";
    let place = Place::with(&suite(groups, rest));
    let result = run(&place);
    let trial = &result["trials"][0];
    assert_eq!(trial["wrong"], 0, "what one group writes is right for the other: {trial}");
    let groups = trial["groups"].as_array().expect("groups").iter();
    let done = groups.map(|one| (one["clients"].as_str(), one["operation"].as_str()));
    let mut done: Vec<_> = done.collect();
    done.sort_unstable();
    assert_eq!(done, [(Some("readers"), Some("get")), (Some("writers"), Some("set"))]);
    let text = stdout(&place.loadline(&["report"]));
    assert!(text.contains("cache/get+set  readers get 2 conns"), "{text}");
}

#[test]
fn requirements_may_be_computed_and_a_run_may_end_at_once() {
    let rest = "[derive]\nserver_time = \"latency.mean / clients.connections\"\n\
                [rounds]\ndisturbed = \"ignore\"\nmeasure = \"20ms\"\nwarm_up = \"0s\"\n\
                at_least = 5\nat_most = 5\n\
                [sweep]\n\"clients.connections\" = [1, 2]";
    let text = suite("connections = 1", rest);
    let text = text.replace("wrong = \"= 0\"", "wrong = \"= 0\"\nserver_time = \"< 1s * 2\"");
    let result = run(&Place::with(&text));
    let outcomes = result["requirements"].as_array().expect("requirements");
    assert_eq!(outcomes.len(), 4, "two at each of two points");
    assert!(outcomes.iter().all(|one| one["outcome"] == "held"), "{outcomes:?}");
    let abort = text.replace("[derive]", "[abort_on]\nrate_per_s = \"> 1/s\"\n[derive]");
    let place = Place::with(&abort);
    let output = place.loadline(&["run", "suite.toml", "--wait"]);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert!(stderr(&output).contains("aborted, because rate_per_s > 1/s"), "{}", stderr(&output));
    assert_eq!(code(&place.loadline(&["report", "last"])), 3, "that of the run");
}

#[test]
fn a_run_is_done_again_with_the_settings_that_it_had() {
    let rest = "[rounds]\ndisturbed = \"ignore\"\nmeasure = \"20ms\"\nwarm_up = \"0s\"\n\
                at_least = 1\nat_most = 1";
    let place = Place::with(&suite("connections = 1", rest));
    let set = ["--set", "clients.connections=3", "--set", "workload.keys.count=50"];
    let first = place.loadline(&[&["run", "suite.toml", "--wait"][..], &set].concat());
    assert_eq!(code(&first), 0, "{}", stderr(&first));
    std::fs::remove_file(place.path().join("suite.toml")).expect("the ledger has the suite");
    let again = place.loadline(&["rerun", "last", "--same-seed", "--wait"]);
    assert_eq!(code(&again), 0, "{}", stderr(&again));
    assert!(stdout(&again).contains("3 conns"), "{}", stdout(&again));
    let shown = "targets\n  ours: loadline serve cache";
    assert!(stderr(&again).starts_with(shown), "what it starts: {}", stderr(&again));
    let ledger = ledger::Ledger::open_read_only(place.ledger()).expect("a ledger");
    let runs = [1, 2].map(|run: i64| ledger.run_view(run.into()).expect("a run").run);
    assert_eq!(runs[0].seed, runs[1].seed);
    assert_eq!(runs[0].settings, runs[1].settings);
    assert_eq!(runs[0].settings.len(), 2);
}

#[test]
fn an_unexpected_hit_ratio_makes_a_trial_invalid_and_says_so() {
    let rest = "[expect]\nhit_ratio = \">= 95%\"\n[rounds]\ndisturbed = \"ignore\"\n\
                measure = \"300ms\"\nwarm_up = \"0s\"\nat_least = 1\nat_most = 1";
    let text = suite("connections = 2", rest);
    let place = Place::with(&text);
    assert_eq!(run(&place)["trials"][0]["validity"], "valid");
    // A third of the requests go to keys that were never written.
    let once = "keys = { count = 100, one_hit = \"33%\", distribution = \"hot\" }";
    let value = "value = { uniform = [10, 90] }";
    let text =
        text.replace("keys = { count = 100 }", once).replace("value = { bytes = 40 }", value);
    let place = Place::with(&text);
    let trial = &run(&place)["trials"][0];
    assert_eq!((&trial["validity"], &trial["wrong"]), (&"invalid".into(), &0.into()), "{trial}");
    let reason = trial["reason"].as_str().expect("a reason");
    // About 0.67; a slow machine has few requests.
    assert!(reason.starts_with("hit_ratio >= 95% was expected, not 0."), "{reason}");
}

#[test]
fn steps_are_done_once_in_order_and_every_time_is_kept() {
    let suite = r#"
title = "Steps"
[[target]]
name = "ours"
serve = "cache"
[workload]
service = "cache"
steps = ["mget * 3", "set", "get * 5", "delete"]
keys = { count = 100 }
value = { bytes = 40 }
[[clients]]
connections = 2
arrivals = "steps"
[rounds]
disturbed = "ignore"
at_least = 2
at_most = 2
"#;
    let place = Place::with(suite);
    let output = place.loadline(&["run", "suite.toml", "--wait", "--json"]);
    let said = format!("{}{}", stdout(&output), stderr(&output));
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).expect(&said);
    let trial = &json["trials"][1];
    assert_eq!((&trial["validity"], &trial["wrong"]), (&"valid".into(), &0.into()), "{trial:#}");
    let counts = |of: &serde_json::Value| -> Vec<(String, u64)> {
        let all = of["values"].as_array().expect("values").iter();
        let one = |one: &serde_json::Value| {
            (
                one["name"].as_str().expect("a name").to_owned(),
                one["count"].as_u64().expect("a count"),
            )
        };
        all.map(one).collect()
    };
    let each = |times: u64| {
        let named = [("mget_ns", 3), ("set_ns", 1), ("get_ns", 5), ("delete_ns", 1)];
        named.map(|(name, count)| (name.to_owned(), count * times)).to_vec()
    };
    assert_eq!(counts(trial), each(2), "of two connections");
    assert_eq!(counts(&json["points"][0]["targets"][0]), each(4), "of two rounds");
    assert_eq!(
        json["points"][0]["point"]["workload.operation"],
        "mget × 3 → set → get × 5 → delete"
    );
    let text = stdout(&place.loadline(&["report"]));
    assert!(text.contains("ours: mget    min ") && text.contains(" of 12"), "{text}");
    for (from, to, help) in [
        ("arrivals = \"steps\"", "", "no clients take these steps"),
        ("steps = [", "operation = \"get\" # [", "needs workload.steps"),
        ("at_least = 2", "slice = \"100ms\"", "leave slice out"),
        ("connections = 2", "pipeline = 2", "their pipeline is 1"),
    ] {
        let output = Place::with(&suite.replace(from, to)).loadline(&["plan", "suite.toml"]);
        assert_eq!(code(&output), 2, "{to}");
        assert!(stderr(&output).contains(help), "{to}: {}", stderr(&output));
    }
}

#[test]
fn a_warm_up_may_end_when_the_load_is_steady_and_says_after_how_long() {
    // The warm-up has a limit of 20 s: a noisy host that never settles is reported.
    let rest = "[rounds]\ndisturbed = \"ignore\"\nmeasure = \"50ms\"\nwarm_up = \"detect\"\n\
                at_least = 1\nat_most = 1";
    let result = run(&Place::with(&suite("connections = 2", rest)));
    let trial = &result["trials"][0];
    assert_eq!(trial["state"], "warm");
    let warmed_ns = trial["warmup_ns"].as_u64().expect("it was warmed up");
    assert!(warmed_ns >= 2_000_000_000, "{trial}");
    match trial["stationary"].as_bool().expect("it was looked for") {
        true => assert!(trial["steady_after_ns"].as_u64().expect("found") <= warmed_ns / 2 + 1),
        false => assert!(trial["steady_after_ns"].is_null(), "{trial}"),
    }
}
