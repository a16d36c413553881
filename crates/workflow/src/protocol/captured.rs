//! Requests of ecFlow 5.9.2's client and the answers of its server, as they went over a socket;
//! `captured.lines` is what the server logged meanwhile.

use super::frame::{self, HEAD_BYTES};
use super::reply::{Changes, News, Reply, Standard};
use super::request::{Alteration, Body, Command, Report, Request, ServerCommand};
use super::{Answer, Stats, read, read_answer, write};

const REQUESTS: &[u8] = include_bytes!("captured.requests");
const REPLIES: &[u8] = include_bytes!("captured.replies");
const LINES: &str = include_str!("captured.lines");

fn documents(mut frames: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while let Some((head, rest)) = frames.split_first_chunk::<HEAD_BYTES>() {
        let bytes = frame::length(*head, 1 << 20).expect("a length") as usize;
        let (document, rest) = rest.split_at(bytes);
        all.push(document);
        frames = rest;
    }
    all
}

fn requests() -> Vec<Request> {
    let all = documents(REQUESTS);
    all.iter().map(|document| read(document).expect("a request")).collect()
}

#[test]
fn every_captured_request_is_read_and_logged_as_ecflow_logs_it() {
    let requests = requests();
    assert_eq!(requests.len(), LINES.lines().count());
    for (request, line) in requests.iter().zip(LINES.lines()) {
        assert_eq!(request.line(), line, "{request:?}");
    }
}

#[test]
fn requests_have_what_the_client_was_told() {
    let all = requests();
    let has = |body: &dyn Fn(&Body) -> bool| all.iter().any(|request| body(&request.body));
    assert!(has(&|body| matches!(body, Body::User(user, Command::Server(ServerCommand::Ping))
        if user.name == "root" && user.password.is_empty())));
    assert!(has(&|body| matches!(body, Body::Child(child, Report::Init(added))
        if child.path == "/t/f/a" && child.try_no == 1 && added.len() == 2)));
    assert!(has(&|body| matches!(body, Body::Child(_, Report::Event { is_set: false, .. }))));
    assert!(has(&|body| matches!(body, Body::User(_, Command::Load { definition, .. })
        if definition.starts_with("#5.9.2\n") && definition.contains("\nsuite t\n"))));
    assert!(has(&|body| matches!(body, Body::User(_, Command::Group(all)) if all.len() == 4)));
    assert!(has(&|body| matches!(body, Body::User(_, Command::Alter { alteration, .. })
        if *alteration == Alteration::Flag(7, true))));
}

#[test]
fn every_captured_request_is_written_again_as_the_client_wrote_it() {
    let captured = documents(REQUESTS);
    for (document, request) in captured.iter().zip(requests()) {
        let written = write(&request);
        assert!(written == *document, "{}", String::from_utf8_lossy(&written));
    }
}

/// A reply that stands among those captured, byte for byte.
fn is_captured(reply: &Reply) {
    let mut out = Vec::new();
    reply.write(&mut out);
    let all = documents(REPLIES);
    let kind = format!("{:?}", reply.kind());
    let same_kind = all.iter().filter(|one| find(one, kind.as_bytes()));
    let similar: Vec<_> = same_kind.map(|one| String::from_utf8_lossy(one)).collect();
    let own = String::from_utf8_lossy(&out[HEAD_BYTES..]).into_owned();
    assert!(similar.iter().any(|one| **one == own), "{own}\nis none of\n{similar:#?}");
}

fn find(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|window| window == what)
}

#[test]
fn replies_are_written_as_ecflow_writes_them() {
    is_captured(&Reply::OK);
    is_captured(&Reply::Standard(Standard::Wait));
    is_captured(&Reply::error("DeleteCmd:Delete: Could not find node at path '/nope'"));
    is_captured(&Reply::Text("5.9.2".to_owned()));
    is_captured(&Reply::Suites(vec!["t".to_owned(), "u".to_owned()]));
    is_captured(&Reply::LogPath("/e/cf/homes1/vm.14141.ecf.log".to_owned()));
    is_captured(&Reply::Handle(1));
    is_captured(&Reply::Zombies(Vec::new()));
    let suites = vec!["t".to_owned(), "u".to_owned()];
    is_captured(&Reply::Handles(vec![("root".to_owned(), vec![1])], vec![(1, suites)]));
    let mut counters = vec![0; 66];
    (counters[1], counters[7], counters[63]) = (1, 1, 1);
    is_captured(&Reply::Stats(Box::new(Stats {
        suites: 0,
        rates: String::new(),
        state: 0,
        host: "vm".to_owned(),
        port: "14141".to_owned(),
        up_since: "2026-Nov-23 18:31:33".to_owned(),
        version: "Ecflow version(5.9.2) boost(1.74.0) compiler(gcc 12.2.0) \
                  protocol(JSON cereal 1.3.0) openssl(enabled) Debian build"
            .to_owned(),
        job_interval: 60,
        check_interval: 120,
        check_alarm: 20,
        check_mode: 1,
        home: "/e/cf/homes1".to_owned(),
        check_file: "/e/cf/homes1/vm.14141.ecf.check".to_owned(),
        log_file: "/e/cf/homes1/vm.14141.ecf.log".to_owned(),
        encryption: "disabled".to_owned(),
        counters,
    })));
}

#[test]
fn versions_and_names_of_types_come_once_in_a_document() {
    let mut out = Vec::new();
    Reply::Group(vec![Reply::Suites(Vec::new()), Reply::Suites(Vec::new())]).write(&mut out);
    let text = String::from_utf8(out).expect("text");
    assert_eq!(text.matches("\"SSuitesCmd\"").count(), 1);
    assert_eq!(text.matches("cereal_class_version").count(), 3);
    assert!(text.contains("\"polymorphic_id\": 2,\n") && text.contains("\"suites_\": []"));
    let mut out = Vec::new();
    Reply::News(News::Full).write(&mut out);
    Reply::Changes(Changes::Since { state_change_no: 7, modify_change_no: 2, nodes: Vec::new() })
        .write(&mut out);
    assert!(String::from_utf8(out).expect("text").contains("\"server_state_change_no_\": 7,"));
}

#[test]
fn compact_json_in_any_order_of_members_is_read_too() {
    let compact = br#"{"x":{"cmd_":{"polymorphic_id":2147483649,"polymorphic_name":"CtsNodeCmd",
        "ptr_wrapper":{"id":1,"data":{"later":{"a":[1]},"absNodePath_":"/t","api_":3,
        "value0":{"user_":"me","value0":{"cl_host_":"h"}}}}}}}"#;
    assert_eq!(read(compact).expect("a request").line(), "--get=/t :me@h");
    for wrong in [
        &br#"{"x":{"cmd_":{"polymorphic_name":"NoCmd","ptr_wrapper":{"data":{"user_":""}}}}}"#[..],
        br#"{"x":{"cmd_":{"polymorphic_name":"CtsCmd","ptr_wrapper":{"data":{"user_":""}}}}}"#,
        br#"{"x":{"cmd_":{"polymorphic_id":3,"ptr_wrapper":{"data":{}}}}}"#,
        b"{}",
        b"",
        b"GET / HTTP/1.1",
    ] {
        read(wrong).expect_err("no request");
    }
}

#[test]
fn answers_are_read_by_their_kind() {
    let mut kinds: Vec<_> = documents(REPLIES)
        .iter()
        .map(|document| match read_answer(document).expect("an answer") {
            Answer::Standard(number) => format!("{number}"),
            Answer::Error(_) => "error".to_owned(),
            Answer::Text(_) => "text".to_owned(),
            Answer::Definition(text) => text.lines().next().unwrap_or_default().to_owned(),
            Answer::Other(kind) => kind.into_owned(),
        })
        .collect();
    kinds.sort();
    kinds.dedup();
    for kind in ["#5.9.2", "0", "2", "error", "text"] {
        assert!(kinds.iter().any(|one| one == kind), "{kind} is none of {kinds:?}");
    }
    read_answer(b"{}").expect_err("no answer");
    let mut out = Vec::new();
    let failures = ["first", "second"].map(Reply::error);
    Reply::Group([vec![Reply::Suites(Vec::new())], failures.to_vec()].concat()).write(&mut out);
    assert_eq!(read_answer(&out[HEAD_BYTES..]), Ok(Answer::Error("first".into())));
}
