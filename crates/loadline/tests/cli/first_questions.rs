//! `loadline try`, `new`, `help` and `explain`: what a user types before there is a suite.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};

use crate::common::{Place, await_that, code, stderr, stdout};
use crate::served::Served;

/// A running `loadline serve null`, which is asked in its own protocol.
fn null() -> Served {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    command.args(["serve", "null", "--listen", "127.0.0.1:0"]).stdin(Stdio::null());
    Served::spawn(command)
}

fn cache() -> Served {
    Served::start(&["--listen", "127.0.0.1:0"])
}

/// Runs `loadline try` in a folder of its own, and the report of its run as JSON.
fn attempt(place: &Place, arguments: &[&str]) -> (Output, serde_json::Value) {
    let arguments = [&["try", "--for", "100ms", "--wait", "--json"], arguments].concat();
    let output = place.loadline(&arguments);
    let json = serde_json::from_str(&stdout(&output));
    let json = json.unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    (output, json)
}

/// Lines of figures on standard error: they begin with the time.
fn lines(output: &Output) -> Vec<String> {
    let is_figures = |line: &&str| line.trim_start().split(' ').nth(1) == Some("s");
    stderr(output).lines().filter(is_figures).map(str::to_owned).collect()
}

/// Python's web server in this folder.
struct Web(Child, u16);

impl Web {
    /// Starts one, where there is Python.
    fn start(place: &Place) -> Option<Self> {
        let port = testing::free_port();
        let mut command = Command::new("python3");
        command.args(["-m", "http.server", "--bind", "127.0.0.1", &port.to_string()]);
        command.current_dir(place.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(child) = command.spawn() else {
            testing::skip("python3 is not installed");
            return None;
        };
        let web = Self(child, port);
        await_that("the web server listens", || {
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Some(web)
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A web server that knows one site only, and the port that it listens on: who asks it for another
/// host is misdirected (421).
fn site(name: &str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let own = format!("host: {name}:{port}");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let own = own.clone();
            std::thread::spawn(move || answer(&stream, &own));
        }
    });
    port
}

/// Answers the requests of a connection until it ends.
fn answer(mut stream: &TcpStream, own: &str) {
    let mut is_own = false;
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        is_own |= line.eq_ignore_ascii_case(own);
        if line.is_empty() {
            let status = if is_own { "200 OK" } else { "421 Misdirected Request" };
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
            is_own = false;
        }
    }
}

#[test]
fn each_side_is_asked_for_the_host_and_port_of_its_own_url() {
    let place = Place::with("");
    let sites = ["localhost", "127.0.0.1"].map(|name| format!("http://{name}:{}/", site(name)));
    let [one, other] = &sites;
    let (_, json) = attempt(&place, &[one, "--beside", other]);
    let trials = json["trials"].as_array().expect("trials");
    assert_eq!(trials.len(), 10, "{json:#}");
    for trial in trials {
        assert_eq!((&trial["wrong"], &trial["missing"]), (&0.into(), &0.into()), "{trial:#}");
        assert!(trial["rate_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{trial:#}");
    }
    let verdict = json["comparisons"][0]["verdict"].as_str();
    assert!(matches!(verdict, Some("same" | "cant_tell")), "of one start each: {json:#}");
}

#[test]
fn a_page_is_asked_for_at_a_rate_and_the_suite_that_it_stands_for_runs_the_same() {
    let place = Place::with("");
    let Some(web) = Web::start(&place) else { return };
    let url = format!("http://localhost:{}/suite.toml", web.1);
    let (output, json) = attempt(&place, &[&url, "--rate", "200/s", "--save", "mine.toml"]);
    assert_eq!(json["trials"].as_array().map(Vec::len), Some(5), "{json:#}");
    assert_eq!(json["trials"][0]["wrong"], 0, "{json:#}");
    let lines = lines(&output);
    assert!(lines.first().is_some_and(|line| line.contains("/s")), "{lines:?}");
    let again = place.loadline(&["run", "mine.toml", "--wait", "--json"]);
    let again: serde_json::Value = serde_json::from_str(&stdout(&again)).expect("JSON");
    for key in ["point", "target"] {
        assert!(!json["trials"][0][key].is_null());
        assert_eq!(again["trials"][0][key], json["trials"][0][key]);
    }
    place.refuses(&["try", &url, "--save", "mine.toml"], 2, "mine.toml is there already");
    place.refuses(&["try", &format!("{url}x")], 2, "say --status 404");
    let speaks = "HTTP is spoken there: try http://127.0.0.1:";
    place.refuses(&["try", "memcached", &format!("127.0.0.1:{}", web.1)], 2, speaks);
}

#[test]
fn a_service_at_an_address_is_asked_in_its_protocol_and_every_answer_is_checked() {
    let (cache, null) = (cache(), null());
    let place = Place::with("");
    let (output, json) = attempt(&place, &["memcached", cache.address(), "--keys", "50"]);
    let trial = &json["trials"][0];
    assert_eq!((&trial["target"], &trial["wrong"]), (&"memcached".into(), &0.into()));
    assert!(trial["rate_per_s"].as_f64().expect("a rate") > 0.0);
    // Its processes are found by its address.
    assert!(trial["server"]["rss_bytes"].as_u64() > Some(0), "{json:#}");
    assert!(!lines(&output).is_empty(), "{}", stderr(&output));
    assert_eq!(trial["point"]["workload.operation"], "get:9 set:1");
    assert!(stderr(&output).contains("5 rounds of 20 ms, about "), "{}", stderr(&output));
    let page = format!("{}/x", cache.address());
    place.refuses(&["try", &page], 2, "memcached is spoken there: try memcached 127.0.0.1:");
    place.refuses(&["new"], 2, "<http|cache|records|program|compare>");
    place.refuses(&["try", "redis", cache.address()], 2, "try memcached 127.0.0.1:");
    let (one, same) = (cache.address(), "one and the same");
    place.refuses(&["try", "memcached", one, "--beside", "memcached", one], 2, same);
    let many = ["try", "memcached", one, "--connections", "1000000"];
    place.refuses(&many, 2, "error: --connections: 1000000 is not from 1 to 100000");
    place.refuses(&["try", "redis", null.address()], 1, "doesn't answer as redis does");
    let (_, json) = attempt(&place, &["null", null.address(), "--connections", "2"]);
    assert_eq!(json["trials"][0]["wrong"], 0, "{json:#}");
    place.refuses(&["try", "null", null.address(), "--keys", "5"], 2, "--keys has no meaning");
}

#[test]
fn a_service_that_closes_each_connection_is_not_waited_for() {
    let closing = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = closing.local_addr().expect("bound").to_string();
    std::thread::spawn(move || closing.incoming().for_each(drop));
    for name in ["memcached", "redis"] {
        let output = Place::with("").loadline(&["try", name, &address]);
        let said = stderr(&output);
        assert_eq!(code(&output), 1, "{said}");
        // It is reset where the question comes in before the close.
        let is_closed = said.contains("clos") || said.contains("connection reset");
        assert!(is_closed && !said.contains("no answer came within"), "{said}");
    }
}

#[test]
fn a_key_that_was_written_and_is_not_there_breaks_what_a_question_requires() {
    let place = Place::with("");
    // Of 5 MB that are written most is evicted before it is read.
    let small = ["--listen", "127.0.0.1:0", "--memory", "2MiB", "--max-item", "1KiB"];
    let small = Served::start(&small);
    let (output, json) = attempt(&place, &["memcached", small.address(), "--keys", "50000"]);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert!(json["trials"][0]["misses"].as_u64() > Some(0), "{json:#}");
    let all = json["requirements"].as_array().expect("requirements").iter();
    let broken: Vec<_> = all.filter(|one| one["outcome"] == "broken").collect();
    assert!(matches!(broken[..], [one] if one["expression"] == "wrong = 0"), "{broken:?}");
}

#[test]
fn a_command_is_run_over_and_over_and_a_failing_one_is_named() {
    let place = Place::with("");
    let (output, json) = attempt(&place, &["--", "true"]);
    assert_eq!(json["trials"][0]["target"], "true", "{json:#}");
    assert!(lines(&output).iter().all(|line| line.contains("run")), "{}", stderr(&output));
    let failing = "exit 3; true";
    place.refuses(&["try", failing], 1, "fails, twice in the same way: it exited with status 3");
    place.refuses(&["try", "--", "nosuchprogram"], 2, "no program \"nosuchprogram\"");
}

#[test]
fn two_sides_are_measured_in_the_same_rounds_and_compared() {
    let (one, other) = (cache(), cache());
    let place = Place::with("");
    let beside = ["memcached", one.address(), "--beside", "memcached", other.address()];
    let (output, json) = attempt(&place, &beside);
    let comparison = &json["comparisons"][0];
    assert_eq!(comparison["metric"], "rate_per_s", "{json:#}");
    assert!(comparison["verdict"].is_string(), "{json:#}");
    let ports = [&one, &other].map(|one| one.address().rsplit(':').next().map(str::to_owned));
    let line = lines(&output).first().cloned().unwrap_or_default();
    for port in ports.into_iter().flatten() {
        assert!(line.contains(&port), "{line}");
    }
    let (_, json) = attempt(&place, &["sleep 0.001", "--beside", "sleep 0.02", "--rate", "20/s"]);
    assert_eq!(json["comparisons"][0]["metric"], "wall_ns", "{json:#}");
    assert_ne!(json["comparisons"][0]["reason"], "one_start", "each run is a process of its own");
    let mixed = ["try", "memcached", one.address(), "--beside", "true"];
    place.refuses(&mixed, 2, "one side is of cache, the other of batch");
}

#[test]
fn what_can_not_be_tried_is_answered_with_what_can() {
    let place = Place::with("");
    for (line, expected, said) in [
        ("try memcachd 127.0.0.1:1", 2, "did you mean memcached?"),
        ("try memcached 127.0.0.1:1", 1, "loadline serve cache --listen 127.0.0.1:1"),
        ("try memcached 192.0.2.7:11211", 2, "unless --allow-remote"),
        ("try https://127.0.0.1:1/", 1, "nothing listens on 127.0.0.1:1"),
        ("try http://127.0.0.1:1/", 1, "nothing listens on 127.0.0.1:1"),
        ("try http://127.0.0.1:1/ --for 1ms", 2, "at least 100 ms"),
        ("try --beside true false", 2, "put the first side before it"),
        ("try", 2, "[WHAT]"),
        ("try http://127.0.0.1:1/ --rate 0/s", 2, "nothing is sent"),
        ("try http://127.0.0.1:1/ --for 5", 2, "did you mean 5s?"),
        ("try 127.0.0.1:1/x", 1, "nothing listens on 127.0.0.1:1"),
        ("tyr http://127.0.0.1:1/", 2, "'try'"),
        ("serve conditions --port 3000", 2, "a port is part of '--listen HOST:PORT'"),
        ("serve conditions -p 3000", 2, "a port is part of '--listen HOST:PORT'"),
        ("run suit", 2, "did you mean suite.toml?"),
        ("run nosuch.toml", 2, "there is no such file"),
        ("explain slise", 2, "near it: slice"),
        ("help verdict", 2, "near it: verdicts"),
        ("new nosuch", 2, "possible values: http, cache, records, program, compare"),
    ] {
        place.refuses(&line.split(' ').collect::<Vec<_>>(), expected, said);
    }
}

#[test]
fn every_template_is_a_suite_that_runs() {
    // Targets that are not installed are left out.
    for (name, least) in [("compare", 2), ("cache", 2), ("http", 0), ("program", 2), ("records", 1)]
    {
        let place = Place::with("");
        let template = place.loadline(&["new", name]);
        std::fs::write(place.path().join("mine.toml"), template.stdout).expect("written");
        let quick = ["measure=20ms", "slice=none", "warm_up=0s", "at_least=1", "at_most=1"];
        let quick = quick.map(|setting| format!("rounds.{setting}"));
        let quick = quick.iter().flat_map(|setting| ["--set", setting]);
        let arguments = ["run", "mine.toml", "--wait", "--json"].into_iter().chain(quick);
        let json = place.json(&arguments.collect::<Vec<_>>(), &[0, 4]);
        let trials = json["trials"].as_array().expect("trials");
        assert!(trials.len() >= least, "{name}: {json:#}");
        for trial in trials {
            assert_ne!(trial["validity"], "invalid", "{name}: {trial:#}");
        }
    }
}

#[test]
fn documents_and_words_are_in_the_program() {
    let place = Place::with("");
    for (line, said) in [
        ("help suites", "one TOML file"),
        ("help verdicts", "better, worse"),
        ("help run", "loadline run suites/tour.toml"),
        ("help serve cache", "--memory"),
        ("help conditions", "Options: loadline conditions --help"),
        ("help rpc", "Documents (loadline help NAME):\n  rpc-load "),
        ("help", "Documents (loadline help NAME):"),
        ("explain slice", "targets take"),
        ("explain latency.p99", "lower is better"),
        ("explain", "overrun"),
        ("explain can't tell", "verdict"),
        ("explain listen queue", "accepted"),
    ] {
        let output = place.loadline(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(code(&output), 0, "{line}: {}", stderr(&output));
        let text = stdout(&output);
        assert!(text.contains(said), "{line}: {text}");
    }
}
