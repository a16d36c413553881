//! `loadline workflow record` and `replay`: what ecFlow's client and real jobs ask ecFlow's server,
//! asked again at this program's.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value as Json;
use workflow::protocol::frame::frame;
use workflow::protocol::{
    Body, Child, Command, Reply, Report, Request, ServerCommand, User, write,
};

use crate::commands::{Running, printed, run};
use crate::definition::has_ecflow;
use crate::place::Place;
use crate::served::Served;

const SUITE: &str = "\
suite s
  family f
    task a
      event e
      meter m 0 10
      label l 'none'
    task b
      trigger a == complete and a:e
  endfamily
endsuite
";

/// What users ask, through the recording; a `!` before what fails.
const COMMANDS: &[&[&str]] = &[
    &["--ping"],
    &["--query", "state", "/s/f/a"],
    &["--query", "label", "/s/f/a:l"],
    &["--query", "meter", "/s/f/a:m"],
    &["--alter=add", "variable", "V", "a 'quoted' text", "/s/f"],
    &["--alter=change", "label", "l", "another", "/s/f/a"],
    &["--query", "variable", "/s/f:V"],
    &["!", "--suspend=/nowhere"],
    &["--suspend=/s"],
    &["--resume=/s"],
    &["--suites"],
    &["--get"],
    &["--get_state"],
    &["--group=ping; suites"],
    &["--sync", "0", "0", "0"],
];

/// Has a suite run at ecFlow's server, and records it; returns the recording's lines.
fn recorded(place: &Place, file: &str) -> String {
    let (recording, port) = recording(place, file);
    // Jobs ask there, too.
    let head = std::fs::read_to_string(place.home().join("head.h")).expect("a head");
    place.write("home/head.h", &head.replace("%ECF_PORT%", &port));
    place.script("s/f/a", "ecflow_client --event=e; ecflow_client --meter=m 5");
    place.script("s/f/b", "ecflow_client --label=none x || true");
    let definition = place.write("s.def", SUITE).display().to_string();
    let ask = |words: &[&str]| {
        let fails = words[0] == "!";
        let output = place.client_of(&words[usize::from(fails)..], &[("ECF_PORT", &port)]);
        assert_eq!(output.status.success(), !fails, "{words:?}: {output:?}");
    };
    ask(&[&format!("--load={definition}")]);
    ask(&["--restart"]);
    ask(&["--begin=s"]);
    place.until_state("/s", "complete");
    COMMANDS.iter().for_each(|words| ask(words));
    recording.terminate();
    let (out, error, code) = recording.end();
    assert!(code == 0 && out.contains(" 0 not understood, 0 not answered"), "{out}{error}");
    std::fs::read_to_string(file).expect("a recording")
}

#[test]
fn what_was_recorded_at_ecflow_s_server_is_answered_alike_by_this_one() {
    if !has_ecflow() {
        return;
    }
    let (theirs, ours) = (Place::new(), Place::new());
    let served = Served::theirs(&theirs);
    let file = theirs.home().with_file_name("day.jsonl").display().to_string();
    let lines = recorded(&theirs, &file);
    served.kill();
    let job = std::fs::read_to_string(theirs.home().join("s/f/a.job1")).expect("a job");
    let password = job.split("ECF_PASS=").nth(1).and_then(|rest| rest.split_whitespace().next());
    assert!(!lines.contains(password.expect("a password")), "passwords are left out");
    let _served = Served::by_command(&ours, &["--dis_job_gen"], &[]);
    let at = format!("localhost:{}", ours.port);
    let (out, error, code) = run(&["replay", &file, &at, "--json"]);
    let json: Json = serde_json::from_str(&out).unwrap_or_else(|why| panic!("{why}: {out}{error}"));
    assert_eq!(code, 0, "{json:#}");
    let requests = json["requests"].as_array().expect("requests");
    let of = |name: &str| requests.iter().find(|row| row["request"] == name).expect(name);
    for name in ["chd:init", "chd:complete", "chd:event", "chd:meter", "--suspend", "--load"] {
        let row = of(name);
        assert_eq!(row["same_bytes"], row["count"], "{row}");
    }
    assert_eq!(of("--query")["same_bytes"], of("--query")["count"], "{json:#}");
    let count: u64 = requests.iter().filter_map(|row| row["count"].as_u64()).sum();
    assert_eq!(count, lines.lines().count() as u64 - 1);
    assert_eq!(ours.told(&["--query", "state", "/s"]).trim(), "complete");
    // A server that has the suite already answers otherwise, and it takes as long as it says.
    let (out, _, code) = run(&["replay", &file, &at, "--speed", "100"]);
    assert!(
        code == 3 && out.contains("--load") && out.contains("already exist\") was StcCmd 0"),
        "{out}"
    );
}

/// A suite whose jobs do nothing, and whose other commands leave files.
const MARKED: &str = "\
suite s
  edit ECF_JOB_CMD true
  edit ECF_NO_SCRIPT 1
  edit ECF_KILL_CMD 'touch %ECF_HOME%/killed'
  edit ECF_STATUS_CMD 'touch %ECF_HOME%/asked'
  task t
  task u
    defstatus complete
endsuite
";

/// Asks through a recording that listens at this port, as the job of `/s/t`.
fn as_job(place: &Place, words: &[&str], port: &str) {
    let job = [("ECF_NAME", "/s/t"), ("ECF_PASS", "_DJP_"), ("ECF_TRYNO", "1"), ("ECF_RID", "1")];
    let output = place.client_of(words, &[&job[..], &[("ECF_PORT", port)]].concat());
    assert!(output.status.success(), "{words:?}: {output:?}");
}

/// Starts a recording, and returns the port at which it listens.
fn recording(place: &Place, file: &str) -> (Running, String) {
    let server = format!("localhost:{}", place.port);
    let mut recording = Running::start(&["record", &server, "--to", file]);
    let line = recording.line();
    let at = line.split(' ').next().unwrap_or_default();
    let port = at.rsplit(':').next().expect("a port").to_owned();
    (recording, port)
}

#[test]
fn what_acts_beyond_the_tree_is_not_asked_again_nor_done_by_a_server_without_jobs() {
    if !has_ecflow() {
        return;
    }
    let (first, second) = (Place::new(), Place::new());
    let served = Served::by_command(&first, &[], &[]);
    let file = first.home().with_file_name("day.jsonl").display().to_string();
    let (recording, port) = recording(&first, &file);
    let definition = first.write("s.def", MARKED).display().to_string();
    let ask = |words: &[&str]| {
        let output = first.client_of(words, &[("ECF_PORT", &port)]);
        assert!(output.status.success(), "{words:?}: {output:?}");
    };
    ask(&[&format!("--load={definition}")]);
    ask(&["--restart"]);
    ask(&["--begin=s"]);
    first.until_state("/s/t", "submitted");
    as_job(&first, &["--init=1"], &port);
    // A zombie, which is none again.
    let [path, password, process_id] = ["/s/u", "of-a-zombie", "9"].map(ToOwned::to_owned);
    let zombie = Child { path, password, process_id, try_no: 1 };
    assert!(asked(&port, Body::Child(zombie, Report::Init(Vec::new()))));
    ask(&["--zombie_get"]);
    // What tells those who ask the passwords of jobs that run.
    for words in [&["--migrate"][..], &["--migrate=/s/t"], &["--sync_full", "0"], &["--log=get"]] {
        ask(words);
    }
    let state = first.told(&["--migrate"]);
    let password = state.split(" passwd:").nth(1).and_then(|rest| rest.split_whitespace().next());
    ask(&["--kill=/s/t"]);
    ask(&["--status=/s/t"]);
    let is_there = |place: &Place, name: &str| place.home().join(name).exists();
    first.until("ECF_KILL_CMD has run", || is_there(&first, "killed"));
    first.until("ECF_STATUS_CMD has run", || is_there(&first, "asked"));
    // In this program's own protocol.
    let through = format!("localhost:{port}");
    assert!(printed(&["get", &through, "--level", "1"]).contains("suite s"));
    ask(&["--group=suspend=/s/u; kill=/s/t; terminate=yes"]);
    recording.terminate();
    let (out, error, code) = recording.end();
    let meant = " 1 not understood, 0 not answered";
    assert!(code == 0 && out.contains(meant), "{out}{error}");
    let lines = std::fs::read_to_string(&file).expect("a recording");
    assert!(!lines.contains(password.expect("a password")), "passwords are left out");
    assert!(lines.contains("BlockClientZombieCmd") && !lines.contains("of-a-zombie"), "{lines}");
    let mode = std::fs::metadata(&file).expect("a recording").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    drop(served);
    let _served = Served::by_command(&second, &["--dis_job_gen"], &[]);
    let at = format!("localhost:{}", second.port);
    let (out, error, code) = run(&["replay", &file, &at, "--json"]);
    let json: Json = serde_json::from_str(&out).unwrap_or_else(|why| panic!("{why}: {out}{error}"));
    assert_eq!((code, &json["left_out"]), (0, &4.into()), "{json:#}");
    assert_eq!(second.told(&["--query", "state", "/s/t"]).trim(), "active");
    assert!(second.told(&["--get_state=/s/u"]).contains("suspended:1"), "the group's rest is done");
    // Nor does the server, whoever asks.
    second.told(&["--kill=/s/t"]);
    second.told(&["--status=/s/t"]);
    let output = second.client(&["--plug", "/s/u", "localhost:1/x"]);
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && why.contains("--dis_job_gen"), "{output:?}");
    second.until("the log says so", || {
        let log = second.told(&["--log=get"]);
        ["ECF_KILL_CMD", "ECF_STATUS_CMD"]
            .iter()
            .all(|name| log.contains(&format!("{name} of /s/t is not started")))
    });
    assert!(!is_there(&second, "killed") && !is_there(&second, "asked"));
}

#[test]
fn what_is_no_recording_is_refused_with_its_line() {
    let place = Place::new();
    let header = "{\"loadline_traffic\": 1, \"server\": \"x\", \"begun\": 1}\n";
    let address = format!("localhost:{}", place.port);
    for (text, meant) in [
        ("", ":1: this is no recording"),
        ("suite s\n", ":1: this is no recording"),
        (&header.replace(": 1, \"s", ": 9, \"s"), ":1: it has version 9"),
        (&format!("{header}{{}}\n"), ":2: missing field `at_us`"),
    ] {
        let file = place.write("x.jsonl", text);
        let (_, error, code) = run(&["replay", file.to_str().expect("a path"), &address]);
        assert!(code == 2 && error.contains(meant), "{error}");
    }
    let file = place.write("x.jsonl", header).display().to_string();
    let (_, error, code) = run(&["replay", &file, &address]);
    assert!(code == 1 && error.contains(&address), "{error}");
    let _server = Served::ours(&place);
    let (_, error, code) = run(&["record", &address, "--to", &file]);
    assert!(code == 2 && error.contains("name another file"), "{error}");
    // What can't be listened at leaves no file, by whose name the next try would be refused.
    let new = place.home().with_file_name("new.jsonl").display().to_string();
    let taken = format!("127.0.0.1:{}", place.port);
    let (_, error, code) = run(&["record", &address, "--to", &new, "--listen", &taken]);
    assert!(code == 1 && error.contains("--listen"), "{error}");
    assert!(!std::path::Path::new(&new).exists());
    let (_, error, code) = run(&["record", &address, "--to", "/nowhere/x.jsonl"]);
    assert!(code == 1 && error.contains("/nowhere/x.jsonl"), "{error}");
    let far = ["record", &address, "--to", "/nowhere", "--listen", "0.0.0.0:0"];
    let (_, error, code) = run(&far);
    assert!(code == 2 && error.contains("--public"), "{error}");
    printed(&["replay", &file, &address]);
}

/// Asks at a port of this machine, and returns whether an answer came.
fn asked(port: &str, body: Body) -> bool {
    let request = Request { host: "h".to_owned(), body };
    let mut bytes = Vec::new();
    frame(&mut bytes, |out| out.extend_from_slice(&write(&request)));
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("it listens");
    stream.write_all(&bytes).expect("sent");
    let mut answer = Vec::new();
    // A connection that is closed without an answer may be reset.
    stream.read_to_end(&mut answer).is_ok() && !answer.is_empty()
}

#[test]
fn a_request_that_is_not_answered_in_time_is_replayed_and_compared_with_nothing() {
    let place = Place::new();
    // It answers one ping, by which the recording begins, and takes all else.
    let mute = TcpListener::bind("127.0.0.1:0").expect("a port");
    let server = format!("localhost:{}", mute.local_addr().expect("bound").port());
    let mut ping = Vec::new();
    Reply::OK.write(&mut ping);
    std::thread::spawn(move || {
        let (mut first, _) = mute.accept().expect("a client");
        first.write_all(&ping).expect("answered");
        let rest: Vec<_> = mute.incoming().map_while(Result::ok).collect();
        drop(rest);
    });
    let file = place.home().with_file_name("day.jsonl").display().to_string();
    let words = ["record", &server, "--to", &file, "--timeout", "1s"];
    let mut recording = Running::start(&words);
    let line = recording.line();
    let at = line.split(' ').next().unwrap_or_default();
    let port = at.rsplit(':').next().expect("a port");
    let ping = Command::Server(ServerCommand::Ping);
    assert!(!asked(port, Body::User(User::default(), ping)));
    recording.terminate();
    let (out, error, code) = recording.end();
    assert!(code == 0 && out.starts_with("1 request recorded; "), "{out}{error}");
    assert!(out.contains("1 not answered"), "{out}");
    let _served = Served::ours(&place);
    let at = format!("localhost:{}", place.port);
    let (out, error, code) = run(&["replay", &file, &at, "--json"]);
    let json: Json = serde_json::from_str(&out).unwrap_or_else(|why| panic!("{why}: {out}{error}"));
    assert_eq!((code, &json["unanswered"]), (0, &1.into()), "{json:#}");
    assert_eq!(json["requests"][0]["count"], 1, "{json:#}");
}
