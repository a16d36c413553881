//! The tree over HTTP: by Python's client in the steps of ecflow_http's own tests, beside ecFlow's
//! client; by a program that generates requests of the description; and who may ask what.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

use service::{BoundHttp, Face, HttpServer, HttpSettings, Tokens};
use workflow::server::WorkflowServer;

use crate::place::Place;
use crate::served::start;

/// The token of the tests.
pub(crate) const TOKEN: &str = "0123456789abcdef";

/// A definition with some of everything.
pub(crate) const BIG: &str = "\
suite big
  edit NAME 'a value'
  limit l 2
  family f
    inlimit /big:l
    task t
      repeat date YMD 20240101 20240105 1
      label info \"so far\"
      meter m 0 100 90
      event e
      event 3
      edit KNOWN '1'
    task u
      trigger t == complete and t:e == set
      cron 23:00
      late -c 03:00
  endfamily
endsuite
";

/// A server and its HTTP face.
pub(crate) struct Seen {
    // Dropped in this order.
    http: HttpServer,
    server: WorkflowServer,
    pub(crate) place: Place,
}

impl Seen {
    /// A server with one suite, which runs.
    pub(crate) fn new(with_tokens: bool, is_public: bool) -> Self {
        let place = Place::new();
        let server = start(&place.home(), place.port);
        let tokens = with_tokens.then(|| {
            let file = place.write("tokens", &format!("{TOKEN}\n"));
            Tokens::read(file).expect("tokens")
        });
        let address = ([127, 0, 0, 1], 0).into();
        let settings = HttpSettings { address, takes_names: false, tokens: None, face: Face::Api };
        let bound = BoundHttp::bind(settings).expect("an address");
        let http = server.serve_http(bound, tokens, is_public).expect("it serves");
        Self { http, server, place }
    }

    pub(crate) fn at(&self) -> SocketAddr {
        self.http.address()
    }

    /// Asks, and returns the status and the whole answer.
    pub(crate) fn ask(&self, method: &str, path: &str, token: &str, body: &str) -> (u16, String) {
        let at = self.at();
        let bearer = match token {
            "" => String::new(),
            token => format!("authorization: Bearer {token}\r\n"),
        };
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\n{bearer}\
             content-length: {length}\r\n\r\n{body}"
        );
        let mut stream = TcpStream::connect(at).expect("a connection");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        let text = String::from_utf8_lossy(&answer).into_owned();
        let status = text.split(' ').nth(1).and_then(|word| word.parse().ok());
        (status.unwrap_or_else(|| panic!("{text}")), text)
    }

    /// Loads the suite: only commands change it, for the server is halted.
    pub(crate) fn with_suite(self) -> Self {
        let body = serde_json::json!({ "definition": BIG }).to_string();
        let (status, text) = self.ask("POST", "/v1/suites", TOKEN, &body);
        assert_eq!(status, 201, "{text}");
        self
    }

    /// Loads the suite and begins it.
    pub(crate) fn loaded(self) -> Self {
        let seen = self.with_suite();
        for (method, path, body) in [
            ("PUT", "/v1/server/status", r#"{"action":"restart"}"#),
            ("PUT", "/v1/suites/big/status", r#"{"action":"begin"}"#),
        ] {
            let (status, text) = seen.ask(method, path, TOKEN, body);
            assert!(status < 300, "{path}: {text}");
        }
        seen
    }
}

#[test]
fn the_steps_of_ecflow_http_s_own_test_work_and_ecflow_s_client_sees_the_same_tree() {
    let python = Path::new("/usr/bin/python3");
    if !Path::new("/usr/lib/python3/dist-packages/ecflow/__init__.py").exists() {
        testing::skip("python3-ecflow is not installed (`cargo xtask peers` installs the peers)");
        return;
    }
    let seen = Seen::new(true, false).loaded();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workflow/rest.py");
    let mut command = Command::new(python);
    command.arg(script).arg(seen.at().to_string()).arg(TOKEN).arg(seen.place.port.to_string());
    let out = command.output().expect("python");
    let (said, wrong) =
        (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success() && said.contains("right"), "{said}{wrong}");
}

#[test]
fn what_changes_something_needs_a_token_and_where_others_reach_it_so_does_all_else() {
    let reads = ["/v1/suites", "/v1/suites/tree", "/v1/server/status", "/v1/statistics"];
    let body = r#"{"type":"variable","name":"x","value":"1"}"#;
    for (with_tokens, is_public, token, of_read, of_write) in [
        (false, false, "", 200, 403),
        (false, false, TOKEN, 200, 403),
        (true, false, "", 200, 401),
        (true, false, "0123456789abcdeF", 200, 401),
        (true, false, TOKEN, 200, 201),
        (true, true, "", 401, 401),
        (true, true, TOKEN, 200, 201),
    ] {
        let seen = Seen::new(with_tokens, is_public);
        let case = (with_tokens, is_public, token);
        for path in reads {
            assert_eq!(seen.ask("GET", path, token, "").0, of_read, "{case:?} {path}");
        }
        let (status, text) = seen.ask("POST", "/v1/server/attributes", token, body);
        assert_eq!(status, of_write, "{case:?} {text}");
        assert_eq!(seen.ask("GET", "/v1/openapi.json", "", "").0, 200);
    }
}

#[test]
fn a_change_over_http_is_in_the_journal() {
    let seen = Seen::new(true, false).loaded();
    let body = r#"{"action":"suspend"}"#;
    let (status, text) = seen.ask("PUT", "/v1/suites/big/f/status", TOKEN, body);
    assert_eq!(status, 200, "{text}");
    let Seen { http, server, place } = seen;
    drop(http);
    // As after a crash: what the checkpoint at a stop has is not looked at.
    drop(server);
    for entry in std::fs::read_dir(place.home()).expect("home").flatten() {
        if entry.file_name().to_string_lossy().contains(".check") {
            std::fs::remove_file(entry.path()).expect("removed");
        }
    }
    let _server = start(&place.home(), place.port);
    assert_eq!(place.told(&["--query", "dstate", "/big/f"]).trim(), "suspended");
}

#[test]
fn generated_requests_are_answered_as_the_interface_is_described() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = here.join("../../target/venv/conditions/bin/schemathesis");
    if !program.exists() {
        testing::skip("schemathesis is not installed (`cargo xtask peers` installs the peers)");
        return;
    }
    let seen = Seen::new(true, false).loaded();
    let body = serde_json::json!({ "definition": "suite t\nfamily f\ntask a\nedit known '1'\n\
        endfamily\nendsuite\n" });
    assert_eq!(seen.ask("POST", "/v1/suites", TOKEN, &body.to_string()).0, 201);
    let mut command = Command::new(program);
    command.current_dir(seen.place.home());
    command.arg("--config-file").arg(here.join("tests/workflow/schemathesis.toml"));
    command.arg("run").arg(format!("http://{}/v1/openapi.json", seen.at()));
    command.args(["--seed", "1", "--max-examples", "20", "--phases", "examples,coverage,fuzzing"]);
    command.args(["--no-shrink", "--generation-database", "none", "--no-color"]);
    command.args(["--continue-on-failure", "--warnings", "off"]);
    command.args(["--header", &format!("Authorization: Bearer {TOKEN}")]);
    let out = command.output().expect("schemathesis");
    let said = String::from_utf8_lossy(&out.stdout);
    let wrong = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}\n{wrong}");
    // It came through to what is answered, and to what is refused.
    let (_, text) = seen.ask("GET", "/v1/statistics", "", "");
    let count = |name: &str| -> u64 {
        let rest = text.split(&format!("\"{name}\":")).nth(1).expect("a count");
        rest.split([',', '}']).next().and_then(|word| word.parse().ok()).expect("a number")
    };
    let (all, errors) = (count("num_requests"), count("num_errors"));
    assert!(all >= 1000 && errors >= 200 && all - errors >= 150, "{all} {errors}");
}

/// A stream of changes.
struct Follower(std::io::BufReader<TcpStream>);

impl Follower {
    fn of(seen: &Seen, since: &str) -> Self {
        let at = seen.at();
        let mut stream = TcpStream::connect(at).expect("a connection");
        let head = format!("GET /live/changes?since={since} HTTP/1.1\r\nhost: {at}\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("sent");
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("a timeout");
        Self(std::io::BufReader::new(stream))
    }

    /// The next event of a kind: its number and data.
    fn next(&mut self, kind: &str) -> (String, serde_json::Value) {
        let (mut id, mut is_it) = (String::new(), false);
        loop {
            let mut line = String::new();
            let read = std::io::BufRead::read_line(&mut self.0, &mut line).expect("a line");
            assert!(read > 0, "the stream ended before {kind}");
            let line = line.trim_end();
            if let Some(number) = line.strip_prefix("id: ") {
                number.clone_into(&mut id);
            } else if let Some(word) = line.strip_prefix("event: ") {
                is_it = word == kind;
            } else if let Some(data) = line.strip_prefix("data: ").filter(|_| is_it) {
                return (id, serde_json::from_str(data).expect("JSON"));
            }
        }
    }
}

#[test]
fn whoever_follows_is_sent_each_change_once_and_resumes_behind_the_last_one() {
    let seen = Seen::new(true, false).with_suite();
    let mut follower = Follower::of(&seen, "");
    let (begin, _) = follower.next("begin");
    seen.place.told(&["--suspend", "/big/f/t"]);
    let (first, data) = follower.next("changes");
    let row = &data["nodes"][0];
    assert_eq!(
        (row["path"].as_str(), row["state"].as_str()),
        (Some("/big/f/t"), Some("suspended"))
    );
    seen.place.told(&["--alter", "change", "label", "info", "new", "/big/f/t"]);
    let (second, data) = follower.next("changes");
    assert_eq!(data["nodes"][0]["says"][1], "info: new", "{data}");
    assert!(first != second && begin != first);
    drop(follower);
    let mut again = Follower::of(&seen, &first);
    let (id, data) = again.next("changes");
    assert_eq!((id, data["nodes"][0]["says"][1].as_str()), (second.clone(), Some("info: new")));
    // Structure: what is shown is taken anew.
    seen.place.told(&["--delete", "force", "yes", "/big/f/u"]);
    let (third, data) = again.next("changes");
    let family =
        data["nodes"].as_array().expect("nodes").iter().find(|row| row["path"] == "/big/f");
    assert_eq!(family.expect("the family")["below"], true, "{data}");
    assert_ne!(third, second);
    let far = Follower::of(&seen, "4000000000.1").next("reset");
    assert_eq!(far.0, third);
    assert_eq!(seen.ask("GET", "/live/changes?since=x", "", "").0, 400);
}

#[test]
fn counters_say_what_was_asked_and_how_large_the_tree_is() {
    let seen = Seen::new(true, false).loaded();
    seen.place.told(&["--ping"]);
    let page = seen.server.metrics()();
    let count = |name: &str| -> u64 {
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("workflow_{name} ")));
        line.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{name}: {page}"))
    };
    assert_eq!((count("requests_ping_total"), count("requests_load_defs_total")), (1, 1));
    assert_eq!(count("nodes"), 4);
    let tasks = ["unknown", "complete", "queued", "aborted", "submitted", "active"];
    assert_eq!(tasks.map(|state| count(&format!("tasks_{state}"))).iter().sum::<u64>(), 2);
    assert!(count("changes_total") >= 3 && count("journal_groups_total") >= 3);
    assert!(count("tree_bytes") > 400 && count("connections_opened_total") >= 1);
    assert_eq!(count("jobs_queued"), 0);
    // The clock may tick at any time, which is kept as well.
    assert!(count("journal_pending") <= 1, "{page}");
}
