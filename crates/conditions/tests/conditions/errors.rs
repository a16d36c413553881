//! What is refused, and how that is answered.

use std::io::{Read as _, Write as _};

use serde_json::json;
use service::Tokens;

use crate::served::{Said, folder, get, insert, post, serve};

const JSON: (&str, &str) = ("content-type", "application/json");

/// Changes that are refused: the path, the body, the status, and a part of the error.
const CHANGES: &[(&str, &str, u16, &str)] = &[
    ("/folders", "{", 400, "the body: EOF"),
    ("/folders", r#"{"path":"/x","versioning":"none","columns":[]}"#, 400, "`single` or `multi`"),
    ("/folders", r#"{"path":"x","versioning":"multi","columns":[]}"#, 400, "\"x\" is no name"),
    ("/folders", r#"{"path":"/a/../b","versioning":"multi","columns":[]}"#, 400, "is no name"),
    (
        "/folders",
        r#"{"path":"/one/x","versioning":"multi","columns":[]}"#,
        409,
        "\"/one\" is there",
    ),
    ("/folders", r#"{"path":"/set","versioning":"multi","columns":[]}"#, 409, "/many\" is there"),
    ("/columns", r#"{"folder":"/one","column":{"name":"value","kind":"bool"}}"#, 409, "is there"),
    ("/columns/rename", r#"{"folder":"/one","from":"x","to":"y"}"#, 404, "no column \"x\""),
    ("/truncate", r#"{"folder":"/set/many","until":1}"#, 409, "several versions"),
    (
        "/objects",
        r#"{"batches":[{"folder":"/none","objects":[{"channel":1,"since":0}]}]}"#,
        404,
        "no folder \"/none\"",
    ),
    (
        "/objects",
        r#"{"batches":[{"folder":"/one","tag":"t",
            "objects":[{"channel":1,"since":0,"values":[1]}]}]}"#,
        409,
        "one version",
    ),
    ("/tags", r#"{"name":"HEAD","path":"/"}"#, 409, "\"HEAD\" is there already"),
    ("/tags", r#"{"name":"t","path":"/","revision":99}"#, 404, "no revision 99 yet"),
    ("/tags", r#"{"name":"t","path":"/none"}"#, 404, "no folder \"/none\""),
    ("/tags/delete", r#"{"name":"t"}"#, 404, "no tag \"t\""),
    ("/tags", r#"{"name":"g","path":"/set","picks":[],"revision":1}"#, 400, "what other tags show"),
    ("/tags", r#"{"name":"g","path":"/one","picks":[]}"#, 409, "\"/one\" is a folder"),
    ("/tags", r#"{"name":"g","path":"/","picks":["t"]}"#, 404, "no tag \"t\""),
    ("/tags/pick", r#"{"name":"t"}"#, 404, "no tag \"t\""),
    ("/nothing", "{}", 404, "no such request"),
    ("/slice", "{}", 405, "not with this method"),
];

/// Objects that are refused, in a folder where channel 1 has [10, 20).
const OBJECTS: &[(&str, u16, &str)] = &[
    (r#"{"channel":1,"since":15,"values":[1]}"#, 409, "meets [10, 20)"),
    (r#"{"channel":1,"since":5,"until":5,"values":[1]}"#, 400, "[5, 5) is no interval"),
    (r#"{"channel":1,"since":18446744073709551615,"values":[1]}"#, 400, "is no interval"),
    (
        r#"{"channel":1,"since":30,"values":["high"]}"#,
        400,
        "column \"value\": \"high\" is no float",
    ),
    (r#"{"channel":-1,"since":30,"values":[1]}"#, 400, "expected u32"),
];

/// Questions that are refused.
const QUESTIONS: &[(&str, u16, &str)] = &[
    ("/find?folder=/one", 400, "t is missing"),
    ("/find?folder=/one&t=1&t=2", 400, "\"t\" is given twice"),
    ("/find?folder=/one&t=-1", 400, "write a time"),
    ("/find?folder=/one&t=1&names=x", 404, "no channel \"x\""),
    ("/find?folder=/one&t=1&color=x", 400, "\"color\" is no parameter"),
    ("/find?folder=/one&t=1&revision=1&as_of=2026-11-23T07:00:00Z", 400, "both revision and as_of"),
    ("/find?folder=/one&t=1&as_of=2999-01-01T00:00:00Z", 404, "Z is in the future: it is "),
    ("/slice?t=1&as_of=2999-01-01T00:00:00Z", 404, ", and the last change was 2"),
    ("/find?folder=/set/many/&t=1&revision=1", 404, "is there since revision 2"),
    ("/export?under=/set&format=csv", 404, "a CSV is of one folder"),
    ("/find?folder=/one&t=1&where=x=1", 400, "where=x=1: write COLUMN"),
    ("/find?folder=/one&t=1&where=value%3E=high", 400, "\"high\" is no float"),
    ("/slice/1/0?user=1&global=1", 400, "exclude each other"),
    ("/slice/1/0?global=1", 404, "no tag of revision 1"),
    ("/find?folder=/set&t=1", 404, "no folder \"/set\""),
    ("/find?folder=%ff&t=1", 404, "no folder"),
    ("/browse?folder=/one&since=2&until=1", 400, "since 2 is after until 1"),
    ("/slice/99/0", 404, "no revision 99"),
    ("/slice/x/0", 400, "\"x\" is no revision"),
    ("/slice/1/0?under=/none", 404, "no folder \"/none\""),
    ("/slice/1/0?user=77", 404, "no tag of revision 77"),
    ("/slice?t=1&tag=none", 404, "no tag \"none\""),
    ("/slice?t=1&redirect=no", 400, "redirect=no: write true or false"),
];

fn check(refused: &Said, status: u16, said: &str, asked: &str) {
    assert_eq!(refused.status, status, "{asked}: {refused:?}");
    let body = refused.json();
    let error = body["error"].as_str().expect("an error");
    assert!(error.contains(said), "{asked}: {error}");
    assert!(body["fix"].as_str().is_some_and(|fix| !fix.is_empty()), "{asked}: {error}");
    assert_eq!(refused.header("cache-control"), "no-store");
}

#[test]
fn every_refusal_has_its_status_and_says_what_can_be_done() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    folder(at, "/one", "single");
    folder(at, "/set/many", "multi");
    insert(at, "/one", 1, (10, Some(20)), 1.0);
    for (path, body, status, said) in CHANGES {
        check(&post(at, path, &[JSON], body.as_bytes()), *status, said, body);
    }
    for (object, status, said) in OBJECTS {
        let body = format!(r#"{{"batches":[{{"folder":"/one","objects":[{object}]}}]}}"#);
        check(&post(at, "/objects", &[JSON], body.as_bytes()), *status, said, object);
    }
    for (path, status, said) in QUESTIONS {
        check(&get(at, &format!("/api/v1{path}"), &[]), *status, said, path);
    }
    let page = String::from_utf8(get(at, "/metrics", &[]).body).expect("text");
    assert!(page.contains("\nconditions_objects 1\n"), "{page}");
    assert!(page.contains("\nconditions_refused_total 4"), "{page}");
}

#[test]
fn a_body_has_to_be_json_of_a_stated_length_within_the_limit() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    assert_eq!(post(at, "/folders", &[], b"{}").status, 415);
    assert_eq!(post(at, "/folders", &[("content-type", "text/plain")], b"{}").status, 415);
    // No byte of it is waited for.
    for (length, said) in
        [("content-length: 99999999", "413 "), ("transfer-encoding: chunked", "411 ")]
    {
        let mut socket = std::net::TcpStream::connect(at).expect("a connection");
        let head = "POST /api/v1/folders HTTP/1.1\r\ncontent-type: application/json\r\n";
        write!(socket, "{head}host: {at}\r\n{length}\r\n\r\n").expect("sent");
        let mut answer = [0; 13];
        socket.read_exact(&mut answer).expect("an answer");
        assert_eq!(String::from_utf8_lossy(&answer), format!("HTTP/1.1 {said}"));
    }
}

#[test]
fn changes_need_a_token_where_there_are_tokens_and_questions_do_not() {
    let data = tempfile::tempdir().expect("a folder");
    let path = data.path().join("tokens");
    std::fs::write(&path, "0123456789abcdef\n").expect("written");
    let tokens = Tokens::read(path).expect("tokens");
    let server = serve(&data.path().join("data"), Some(tokens));
    let at = server.addresses()[0];
    let body = json!({ "path": "/x", "versioning": "multi", "columns": [] }).to_string();
    assert_eq!(post(at, "/folders", &[JSON], body.as_bytes()).status, 401);
    let wrong = ("authorization", "Bearer 0123456789abcdee");
    assert_eq!(post(at, "/folders", &[JSON, wrong], body.as_bytes()).status, 401);
    let right = ("authorization", "Bearer 0123456789abcdef");
    assert_eq!(post(at, "/folders", &[JSON, right], body.as_bytes()).status, 200);
    assert_eq!(get(at, "/api/v1/folders", &[]).status, 200);
    // Also those that are too long for a query.
    let form = ("content-type", "application/x-www-form-urlencoded");
    for (path, of) in [("/find", "folder=/x&t=1"), ("/export", "under=/x")] {
        assert_eq!(post(at, path, &[form], of.as_bytes()).status, 200, "{path}");
        assert_eq!(post(at, path, &[JSON], of.as_bytes()).status, 415, "{path}");
    }
    assert_eq!(post(at, "/tags", &[form], b"").status, 401);
}

#[test]
fn a_batch_without_objects_is_refused_and_named_in_both_forms() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    let made = folder(at, "/a", "multi");
    let object = json!({ "channel": 1, "since": 0, "values": [1] });
    let batches = [json!([object]), json!([])].map(|all| json!({ "folder": "/a", "objects": all }));
    let bodies = [
        json!({ "batches": batches }).to_string(),
        format!(r#"{{"batches":[{}{}]}}"#, batches[0], format!(",{}", batches[1]).repeat(100_000)),
    ];
    for body in bodies {
        let json = [("content-type", "application/json")];
        let refused = post(at, "/objects", &json, body.as_bytes());
        let said = String::from_utf8_lossy(&refused.body).into_owned();
        assert_eq!(refused.status, 400, "{said}");
        assert!(said.contains("batch 1 of the insertion has no objects"), "{said}");
        assert!(said.contains("leave batches without objects out"), "{said}");
    }
    assert_eq!(insert(at, "/a", 1, (0, None), 1.0), made + 1, "nothing was changed");
}
