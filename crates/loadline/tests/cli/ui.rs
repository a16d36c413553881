//! `loadline ui`, from outside: pages and JSON over a plain socket, and what is refused.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use ledger::{Ledger, RoundRow, RunState, RungRow};

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
}

#[test]
fn a_run_that_is_measured_has_a_page_that_reloads_itself_until_it_ends() {
    let place = place();
    with_runs(&place.ledger(), &["2026-01-01T00:00:00Z"]);
    // The writer of the run is this process, so that one that says `running` runs.
    let mut ledger = Ledger::open(place.ledger()).expect("the ledger");
    let run = ledger.last_run().expect("a ledger").expect("a run");
    let started = "2026-01-01T00:00:00Z";
    ledger.finish_run(run, RunState::Running, started, None).expect("it is written");
    let point_id = ledger.run_view(run).expect("a run").points[0].0;
    let round = RoundRow { run_id: run, point_id, ordinal: 2, seed: 1, started_ns: 1 };
    ledger.add_round(&round).expect("it is written");
    let ui = Ui::of(&place);
    for path in ["/", "/runs/1/live"] {
        assert!(ui.page(path).contains("http-equiv=\"refresh\""), "{path}");
    }
    let page = ui.page("/runs/1/live");
    assert!(page.contains("Measuring round 2 of <strong>cache/get</strong>"), "{page}");
    assert!(page.contains("1 of 1") && page.contains("0 of 500"), "{page}");
    assert!(page.contains("this table once it has ended, which takes about"), "{page}");
    assert!(!page.contains("This second"), "nothing is published: {page}");
    let now = report::Now {
        activity: "measuring ours, slice 3 of 4".to_owned(),
        targets: vec![report::TargetNow { rate_per_s: Some(777e3), ..Default::default() }],
        ..Default::default()
    };
    let folder = place.path().join(".loadline/runs");
    std::fs::create_dir_all(&folder).expect("a folder");
    let now = serde_json::to_vec(&now).expect("JSON");
    std::fs::write(folder.join("live.json"), now).expect("it is written");
    let page = ui.page("/runs/1/live");
    assert!(page.contains("measuring ours, slice 3 of 4") && page.contains("777k/s"), "{page}");
    let json: serde_json::Value =
        serde_json::from_str(&ui.page("/runs/1/live.json")).expect("JSON");
    assert_eq!((&json["state"], &json["round"]), (&"running".into(), &2.into()));
    let rate = json["points"][0]["targets"][0]["rate_per_s"].as_f64().expect("a rate");
    assert!((rate - 500.0).abs() < 1e-6, "{rate}");
    ledger.finish_run(run, RunState::Finished, started, None).expect("it is written");
    for path in ["/", "/runs/1/live", "/runs/1"] {
        assert!(!ui.page(path).contains("http-equiv=\"refresh\""), "{path}");
    }
}

#[test]
fn every_link_of_every_page_leads_to_a_page() {
    let place = place();
    with_runs(&place.ledger(), &["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]);
    let mut ledger = Ledger::open(place.ledger()).expect("the ledger");
    let view = ledger.run_view(2.into()).expect("a run");
    let target_id = view.targets[0].0;
    let rung = RungRow { target_id, note: "as it was".into(), decision: None, reason: None };
    ledger.add_rung(&rung).expect("it is written");
    let ui = Ui::of(&place);
    let mut ways = vec!["/".to_owned()];
    let mut at = 0;
    while at < ways.len() {
        let page = ui.page(&ways[at]);
        assert!(page.len() <= 500_000 && !page.contains("://"), "{}", ways[at]);
        for link in page.split(" href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let link = link.replace("&amp;", "&");
            if link.starts_with('/') && !ways.contains(&link) {
                ways.push(link);
            }
        }
        at += 1;
    }
    for wanted in [
        "/?kind=ladder",
        "/history?suite=A%20title%2C%20with%20a%20comma",
        "/runs/1/points/1",
        "/runs/1/points/1.json",
        "/runs/2.json",
    ] {
        assert!(ways.iter().any(|way| way == wanted), "{wanted}: {ways:?}");
    }
    assert!(ways.iter().any(|way| way.starts_with("/history.json?")), "{ways:?}");
    assert!(ui.page("/?kind=ladder").contains("href=\"/runs/2\""));
    assert!(!ui.page("/?kind=ladder").contains("href=\"/runs/1\""));
    let point: serde_json::Value =
        serde_json::from_str(&ui.page("/runs/1/points/1.json")).expect("JSON");
    assert_eq!((&point["run"], &point["trials"][0]["operations"]), (&1.into(), &500.into()));
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
    assert_eq!(refused(&ui.address, "GET /?skip=x").0, "400");
    for path in ["/none", "/runs/1/points/0", "/runs/1/points/2", "/runs/1/points/x"] {
        assert_eq!(refused(&ui.address, &format!("GET {path}")).0, "404", "{path}");
    }
    assert_eq!(refused(&ui.address, "GET /history?suite=none").0, "404");
    for path in ["/history.json", "/?kind=x"] {
        assert_eq!(refused(&ui.address, &format!("GET {path}")).0, "400", "{path}");
    }
}

#[test]
fn it_ends_at_a_signal_and_says_what_it_can_not_show() {
    let place = place();
    let missing = place.loadline(&["ui", "--listen", "127.0.0.1:0"]);
    assert_eq!(code(&missing), 2);
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

#[test]
fn pages_follow_what_another_process_writes() {
    let place = place();
    with_runs(&place.ledger(), &["2026-01-02T03:04:05Z"]);
    let ui = Ui::of(&place);
    assert!(ui.page("/runs/1").contains("cache/get"));
    let other = rusqlite::Connection::open(place.ledger()).expect("a file");
    other.execute("UPDATE suite SET title = 'Another title'", []).expect("it is written");
    assert!(ui.page("/").contains("Another title"));
}
