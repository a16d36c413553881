//! `loadline ui`, from outside: pages and JSON over a plain socket, and what is refused.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use ledger::{Ledger, RunState};

use crate::common::{Place, await_end, code, send_signal, stderr};
use crate::ledgers::{place, with_runs};

/// The server of a place's ledger; ended with the test.
struct Ui {
    child: Child,
    /// `127.0.0.1:PORT`.
    address: String,
}

impl Ui {
    fn of(place: &Place) -> Self {
        let mut command = place.command(&["ui", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("loadline runs");
        let mut line = String::new();
        let out = child.stdout.as_mut().expect("piped");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("http://").and_then(|rest| rest.strip_suffix('/'));
        let address = address.unwrap_or_else(|| panic!("no address: {line}")).to_owned();
        Self { child, address }
    }

    /// Asks with these words for the first line and `Host`; gives the head and the body.
    fn ask_as(&self, host: &str, asked: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let request = format!("{asked} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer of HTTP");
        (head.to_ascii_lowercase(), body.to_owned())
    }

    /// The body of a page that is there.
    fn page(&self, path: &str) -> String {
        let (head, body) = self.ask_as(&self.address, &format!("GET {path}"));
        assert!(head.starts_with("http/1.1 200 "), "{path}: {head}\n{body}");
        body
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_runs_of_a_ledger_are_listed_and_each_has_a_page_and_json() {
    let place = place();
    // The third is the oldest, as after a merge.
    let started = ["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z", "2026-01-01T00:00:00Z"];
    with_runs(&place.ledger(), &started);
    let ui = Ui::of(&place);
    let list = ui.page("/");
    let at = |run: u8| list.find(&format!("href=\"/runs/{run}\"")).expect("every run is listed");
    assert!(at(2) < at(1) && at(1) < at(3), "newest first: {list}");
    assert!(list.contains("3 runs with 3 trials"), "{list}");
    assert!(!ui.page("/?skip=2").contains("href=\"/runs/1\""), "older ones only");

    let page = ui.page("/runs/2");
    assert!(page.contains("A title, with a comma") && page.contains("cache/get"), "{page}");
    assert!(!page.contains("http-equiv=\"refresh\""), "it has ended");
    for text in [&list, &page] {
        assert!(!text.contains("<script") && !text.contains("://"), "nothing is fetched: {text}");
    }
    let json =
        |path: &str| -> serde_json::Value { serde_json::from_str(&ui.page(path)).expect("JSON") };
    assert_eq!(json("/runs.json")["runs"].as_array().expect("runs").len(), 3);
    let reported = place.loadline(&["report", "2", "--json"]).stdout;
    let reported: serde_json::Value = serde_json::from_slice(&reported).expect("JSON");
    assert_eq!(json("/runs/2.json"), reported);

    let both = ui.page("/beside?a=1&b=2");
    assert!(both.contains("Run 1 beside run 2") && both.contains("1.000×"), "{both}");
}

#[test]
fn a_run_reloads_itself_while_it_is_measured() {
    let place = place();
    with_runs(&place.ledger(), &["2026-01-01T00:00:00Z"]);
    // The writer of the run is this process, so that one that says `running` runs.
    let mut ledger = Ledger::open(place.ledger()).expect("the ledger");
    let run = ledger.last_run().expect("a ledger").expect("a run");
    let started = "2026-01-01T00:00:00Z";
    ledger.finish_run(run, RunState::Running, started, None).expect("it is written");
    let ui = Ui::of(&place);
    assert!(ui.page("/runs/1").contains("http-equiv=\"refresh\""));
    ledger.finish_run(run, RunState::Finished, started, None).expect("it is written");
    assert!(!ui.page("/runs/1").contains("http-equiv=\"refresh\""));
}

#[test]
fn other_names_other_methods_and_runs_that_are_not_there_are_refused() {
    let place = place();
    with_runs(&place.ledger(), &["2026-01-01T00:00:00Z"]);
    let ui = Ui::of(&place);
    let port = ui.address.rsplit(':').next().expect("a port");
    let refused = |host: &str, asked: &str| {
        let (head, body) = ui.ask_as(host, asked);
        let policy = "content-security-policy: default-src 'none'";
        assert!(head.contains(policy), "every answer is headed: {head}");
        (head[9..12].to_owned(), body)
    };
    let rebound = format!("evil.example:{port}");
    for path in ["/", "/runs/1.json", "/none"] {
        assert_eq!(refused(&rebound, &format!("GET {path}")).0, "421");
    }
    assert_eq!(refused(&format!("localhost:{port}"), "GET /").0, "200");
    assert_eq!(refused("127.0.0.1:1", "GET /").0, "421", "another port");
    for method in ["POST", "DELETE", "OPTIONS"] {
        assert_eq!(refused(&ui.address, &format!("{method} /runs/1")).0, "405", "{method}");
    }
    assert_eq!(refused(&ui.address, "HEAD /"), ("200".to_owned(), String::new()));
    let (status, words) = refused(&ui.address, "GET /runs/9");
    assert_eq!(status, "404");
    assert!(words.contains("there is no run 9 in this ledger"), "{words}");
    let (status, words) = refused(&ui.address, "GET /runs/%3Cscript%3E");
    assert_eq!(status, "404");
    assert!(words.contains("\"&lt;script&gt;\"") || words.contains("&quot;&lt;script"), "{words}");
    assert_eq!(refused(&ui.address, "GET /beside?a=1").0, "400");
    assert_eq!(refused(&ui.address, "GET /?skip=x").0, "400");
    assert_eq!(refused(&ui.address, "GET /none").0, "404");
}

#[test]
fn it_ends_at_a_signal_and_says_what_it_can_not_show() {
    let place = place();
    let missing = place.loadline(&["ui", "--listen", "127.0.0.1:0"]);
    assert_eq!(code(&missing), 1);
    assert!(stderr(&missing).contains("there is no ledger at"), "{}", stderr(&missing));
    with_runs(&place.ledger(), &["2026-01-01T00:00:00Z"]);
    let open = place.loadline(&["ui", "--listen", "0.0.0.0:0"]);
    assert_eq!(code(&open), 2);
    assert!(stderr(&open).contains("say --public"), "{}", stderr(&open));
    for signal in ["-TERM", "-INT"] {
        let mut ui = Ui::of(&place);
        // Somebody who asks for nothing doesn't hold it up.
        let _idle = TcpStream::connect(&ui.address).expect("it listens");
        send_signal(signal, ui.child.id());
        assert_eq!(await_end(&mut ui.child).code(), Some(0), "{signal}");
    }
}
