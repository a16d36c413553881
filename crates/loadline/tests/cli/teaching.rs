//! Mistakes that people make in suites, and what each is answered with: what would be right.

use crate::common::{Place, code, small_reads, stderr, stdout};

/// A suite in which every mistake below is made once.
const SUITE: &str = r#"title = "Small reads"

[[target]]
name = "ours"
serve = "cache"

[workload]
service = "cache"
operation = "get"
keys = { count = 100 }
value = { bytes = 40 }

[[clients]]
connections = 2

[require]
wrong = "= 0"

[rounds]
measure = "1s"
"#;

const SERVE: &str = "serve = \"cache\"";

const MEASURE: &str = "measure = \"1s\"";

/// Its workload and clients, for what is written between them and the targets.
const WORKLOAD: &str = "[workload]";

/// What is written in place of what, and a part of the message.
#[rustfmt::skip]
const MISTAKES: &[(u32, &str, &str, &str)] = &[
    (1, SERVE, "command = \"memcached -p {port}\"",
        "help: write a list: command = [\"memcached\", \"-p\", \"{port}\"]"),
    (2, "[[target]]", "[target]", "write [[target]] in place of [target]"),
    (3, "wrong = \"= 0\"", "wrong = 0", "say how it is compared: wrong = \"= 0\""),
    (26, "wrong = \"= 0\"", "\"latency.p99\" = 50",
        "say how it is compared, and the unit: \"latency.p99\" = \"< 50ms\""),
    (27, SERVE, "command = [\"python3 -m http.server {port} | tee log\"]\nspeaks = \"memcached\"",
        "one argument an entry; what a shell is to read is [\"sh\", \"-c\", \"…\"]"),
    (4, SERVE, "serve = \"cache\"\ncpus = \"0-1\"",
        "target.cpus: a list is wanted, not \"0-1\""),
    (5, MEASURE, "measure = \"1s\"\nprimary = \"throughput\"",
        "no metric \"throughput\"; there are: rate_per_s,"),
    (25, "wrong = \"= 0\"", "throughput = \"> 1k/s\"",
        "is declared in [figures]; there are: rate_per_s,"),
    (6, "service = \"cache\"", "room = \"redis\"",
        "\"redis\" is a dialect of cache, not a service"),
    (7, "service = \"cache\"", "service = \"memcached\"",
        "service = \"cache\" here, and speaks = \"memcached\" in the target"),
    (8, SERVE, "serve = \"redis\"", "\"redis\" is a dialect of cache"),
    (9, SERVE, "serve = \"records\"",
        "records doesn't serve the operations of workload.service = \"cache\""),
    (10, "[rounds]", "[sweep]\n\"clients.pipelin\" = [1, 2]\n[rounds]",
        "20 │ \"clients.pipelin\" = [1, 2] · ────────┬────────"),
    (11, SERVE, "address = \"http://127.0.0.1:8080/x\"\nspeaks = \"memcached\"",
        "is a URL, and an address is HOST:PORT: write \"127.0.0.1:8080\""),
    (12, SERVE, "command = [\"sleep\", \"9\"]\nspeaks = \"memcached\"",
        "put {port} where the program takes its port"),
    (13, SERVE, "command = [\"sleep\", \"{prot}\"]\nspeaks = \"memcached\"",
        "did you mean {port}? For the text itself double the braces: {{prot}}"),
    (14, SERVE, "serve = \"cache\"\nenv = { TURNS = \"{turns}\" }\n[parameters]\nturns = 3",
        "did you mean {parameters.turns}?"),
    (15, "[rounds]", "[[event]]\nat = \"1ms\"\ndo = [\"kill\", \"{prot}\"]\n[rounds]",
        "nothing fills in {prot}; here there are {address}, {pid}"),
    (16, "[[clients]]\nconnections = 2", "", "help: [[clients]] connections = 4"),
    (17, "connections = 2", "connections = \"2\"", "write it without quotes: connections = 2"),
    (18, "connections = 2", "connections = -2", "-2 is no whole number from 0 on"),
    (19, "connections = 2", "conections = 2", "did you mean `connections`?"),
    (20, "title = \"Small reads\"", "title = 5", "write it in quotes: title = \"5\""),
    (21, WORKLOAD, "[[target]]\nname = \"\"\nserve = \"cache\"\n[workload]",
        "8 │ name = \"\" · ─┬"),
    (22, WORKLOAD, "[[target]]\nname = \"ours\"\nserve = \"cache\"\n[workload]",
        "8 │ name = \"ours\" · ───┬──"),
    (23, WORKLOAD, "[[target]]\nname = \"v1.2\"\nserve = \"cach\"\n[workload]",
        "9 │ serve = \"cach\" · ───┬──"),
    (24, MEASURE, "measure = 1", "\"1\" is not a time such as \"500ms\""),
];

/// What runs, and is noted in the plan.
#[rustfmt::skip]
const NOTED: &[(u32, &str, &str, &str)] = &[
    (30, SERVE, "serve = \"cache\"\ncpus = [0]\n[[clients]]\nname = \"more\"\ncpus = [0]",
        "CPU 0"),
    (31, MEASURE, "measure = \"1s\"\nslice = \"2s\"",
        "note: rounds.slice is 2 s, and rounds.measure only 1 s"),
    (32, "keys = { count = 100 }\nvalue = { bytes = 40 }",
        "keys = { count = 5_000 }\nvalue = { bytes = 100_000 }",
        "of keys and values don't fit the 64 MiB of ours"),
    (34, "wrong = \"= 0\"", "errors = \"< 1%\"", "requires errors < 1%"),
    (33, SERVE, "address = \"localhost:8080\"\nspeaks = \"memcached\"", "ours: 127.0.0.1:8080"),
];

/// What was printed, on one line and without the frame around it.
fn unframed(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| !matches!(*word, "│" | "╭─" | "╰────"));
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_mistake_in_a_suite_is_answered_with_what_would_be_right() {
    let place = Place::with("");
    let plan = |suite: &str| {
        std::fs::write(place.path().join("suite.toml"), suite).expect("the suite");
        place.loadline(&["plan", "suite.toml"])
    };
    for (number, from, to, said) in MISTAKES {
        assert!(SUITE.contains(from), "{number}");
        let output = plan(&SUITE.replacen(from, to, 1));
        let text = stderr(&output);
        assert_eq!(code(&output), 2, "{number}: {text}");
        let shown = unframed(&text).replace(" │ ", " ");
        let said = said.replace(" │ ", " ");
        assert!(shown.contains(&said), "{number}: {text}");
        assert!(!text.contains("u16") && !text.contains("usize"), "{number}: {text}");
    }
    for (number, from, to, said) in NOTED {
        let output = plan(&SUITE.replacen(from, to, 1));
        assert_eq!(code(&output), 0, "{number}: {}", stderr(&output));
        assert!(stdout(&output).contains(said), "{number}: {}", stdout(&output));
    }
}

#[test]
fn settings_are_answered_in_words_as_well() {
    let place = Place::with(SUITE);
    for (setting, said) in [
        ("x=abc", "with --set x: unknown key `x`"),
        ("clients.connections=abc", "with --set clients.connections: a whole number is wanted"),
        ("rounds.at_least=0", "with --set rounds.at_least: at least 0 and at most"),
        ("workload.keys.count=abc", "workload.keys.count: a whole number is wanted, not \"abc\""),
    ] {
        let output = place.loadline(&["plan", "suite.toml", "--set", setting]);
        let text = stderr(&output);
        assert_eq!(code(&output), 2, "{setting}: {text}");
        assert!(unframed(&text).contains(said), "{setting}: {text}");
    }
}

#[test]
fn several_mistakes_are_named_together() {
    let wrong = SUITE.replace("connections = 2", "conections = 2\npipeline = \"2\"\ncpus = 0");
    let output = Place::with(&wrong).loadline(&["plan", "suite.toml"]);
    let text = unframed(&stderr(&output));
    for said in ["mean `connections`?", "pipeline = 2", "cpus = [0]"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let more = "[[target]]\nname = \"a\"\nserve = \"cach\"\n[[target]]\nname = \"b\"\n[workload]";
    let wrong = SUITE.replace(WORKLOAD, more).replace("\"= 0\"", "\"0\"");
    let output = Place::with(&wrong).loadline(&["plan", "suite.toml"]);
    let text = unframed(&stderr(&output));
    for said in ["target.a.serve:", "target.b.name: say exactly one of", "require.wrong:"] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn an_empty_file_is_answered_with_a_smallest_suite_that_is_one() {
    let place = Place::with("# nothing yet\n");
    let output = place.loadline(&["plan", "suite.toml"]);
    let text = stderr(&output);
    assert_eq!(code(&output), 2, "{text}");
    let (_, suite) = text.split_once("help: ").expect("a suite");
    let place =
        Place::with(&suite.lines().map(|line| format!("{}\n", line.trim())).collect::<String>());
    let output = place.loadline(&["plan", "suite.toml"]);
    assert_eq!(code(&output), 0, "{suite}: {}", stderr(&output));
}

#[test]
fn requests_of_the_web_are_answered_in_words() {
    let place = Place::with("");
    let (_, suite) = {
        let output = place.loadline(&["plan", "suite.toml"]);
        let text = stderr(&output);
        let lines = text.lines().skip_while(|line| !line.contains("help:"));
        let suite: String =
            lines.map(|line| format!("{}\n", line.trim().trim_start_matches("help: "))).collect();
        (code(&output), suite)
    };
    let wrong = suite.replace("path = \"/\"", "path = \"/\", expect = { status = \"200\" }");
    let output = Place::with(&wrong).loadline(&["plan", "suite.toml"]);
    let text = unframed(&stderr(&output));
    assert!(text.contains("write it without quotes: status = 200"), "{text}");
    let odd = suite.replace("path = \"/\"", "path = \"/\", method = \"get\"");
    let output = Place::with(&odd).loadline(&["plan", "suite.toml"]);
    assert!(stdout(&output).contains("servers know \"GET\""), "{output:?}");
}

#[test]
fn a_plan_shows_all_that_a_suite_would_execute_and_nothing_that_a_terminal_obeys() {
    let target = "serve = \"cache\"\nbuild = [\"make\", \"a b\"]\n\
                  setup = [\"sh\", \"-c\", \"echo one\\necho '{suite}' \\u001b[31m\"]\n\
                  wrap = [\"env\"]\ncounters = \"http://127.0.0.1:{port}/metrics\"\n\
                  env = { A = \"{{x}}\", B = \"\\u001b[2J\" }";
    let events = "[[event]]\nat = \"1ms\"\ndo = [\"touch\", \"{address} \\u001b]0;x\\u0007\"]\n";
    let suite = small_reads(&[("ours", target)], &format!("measure = \"30ms\"\n{events}"));
    let place = Place::with(&suite.replace("Small reads", "Small \\u001b[31m reads"));
    let output = place.loadline(&["plan", "suite.toml"]);
    let text = stdout(&output);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let folder = place.path().canonicalize().expect("a folder");
    let here = format!("echo '{}'", folder.display());
    for said in [
        "build     make 'a b'",
        "echo one\n",
        &here,
        "wrap      env",
        "{port}/metrics",
        "A='{{x}}'",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(text.contains("at 1 ms: touch"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
    let json = place.json(&["plan", "suite.toml", "--json"], &[0]);
    let target = &json["points"][0]["targets"][0];
    assert_eq!(json["targets"][0], *target);
    assert_eq!(target["command"], serde_json::json!(["loadline", "serve", "cache"]));
    assert_eq!(target["build"], serde_json::json!(["make", "a b"]));
    assert_eq!(target["env"]["A"], "{{x}}");
    assert_eq!(json["points"][0]["events"][0]["command"][0], "touch");
}
