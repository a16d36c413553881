//! What is refused, and how that is answered.

use std::io::{Read as _, Write as _};

use serde_json::json;
use service::Tokens;

use crate::served::{folder, get, insert, post, serve};

const JSON: (&str, &str) = ("content-type", "application/json");

#[test]
fn every_refusal_has_its_status_and_says_what_can_be_done() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    folder(at, "/one", "single");
    folder(at, "/set/many", "multi");
    insert(at, "/one", 1, (10, Some(20)), 1.0);
    let object = |object: serde_json::Value| {
        json!({ "batches": [{ "folder": "/one", "objects": [object] }] }).to_string()
    };
    for (path, body, status, said) in [
        ("/folders", "{".to_owned(), 400, "the body: EOF"),
        (
            "/folders",
            json!({ "path": "/x", "versioning": "none", "columns": [] }).to_string(),
            400,
            "`single` or `multi`",
        ),
        (
            "/folders",
            json!({ "path": "x", "versioning": "multi", "columns": [] }).to_string(),
            400,
            "\"x\" is no name of a folder",
        ),
        (
            "/folders",
            json!({ "path": "/a/../b", "versioning": "multi", "columns": [] }).to_string(),
            400,
            "is no name of a folder",
        ),
        (
            "/folders",
            json!({ "path": "/one/x", "versioning": "multi", "columns": [] }).to_string(),
            409,
            "folder \"/one\" is there already",
        ),
        (
            "/folders",
            json!({ "path": "/set", "versioning": "multi", "columns": [] }).to_string(),
            409,
            "\"/set/many\" is there already",
        ),
        (
            "/objects",
            object(json!({ "channel": 1, "since": 15, "values": [1] })),
            409,
            "meets [10, 20)",
        ),
        (
            "/objects",
            object(json!({ "channel": 1, "since": 5, "until": 5, "values": [1] })),
            400,
            "[5, 5) is no interval",
        ),
        (
            "/objects",
            object(json!({ "channel": 1, "since": 30, "values": ["high"] })),
            400,
            "column \"value\": \"high\" is no float",
        ),
        (
            "/objects",
            object(json!({ "channel": -1, "since": 30, "values": [1] })),
            400,
            "expected u32",
        ),
        (
            "/objects",
            object(json!({ "channel": 1, "since": u64::MAX, "values": [1] })),
            400,
            "is no interval",
        ),
        (
            "/objects",
            json!({ "batches": [{ "folder": "/none", "objects": [] }] }).to_string(),
            404,
            "no folder \"/none\"",
        ),
        (
            "/objects",
            json!({ "batches": [{ "folder": "/one", "tag": "t", "objects": [] }] }).to_string(),
            409,
            "one version",
        ),
        (
            "/columns",
            json!({ "folder": "/one", "column": { "name": "value", "kind": "bool" } }).to_string(),
            409,
            "column \"value\"",
        ),
        (
            "/columns/rename",
            json!({ "folder": "/one", "from": "x", "to": "y" }).to_string(),
            404,
            "no column \"x\"",
        ),
        (
            "/truncate",
            json!({ "folder": "/set/many", "until": 1 }).to_string(),
            409,
            "several versions",
        ),
        (
            "/tags",
            json!({ "name": "HEAD", "path": "/" }).to_string(),
            409,
            "\"HEAD\" is there already",
        ),
        (
            "/tags",
            json!({ "name": "t", "path": "/", "revision": 99 }).to_string(),
            404,
            "no revision 99 yet",
        ),
        ("/tags", json!({ "name": "t", "path": "/none" }).to_string(), 404, "no folder \"/none\""),
        ("/tags/delete", json!({ "name": "t" }).to_string(), 404, "no tag \"t\""),
        ("/nothing", json!({}).to_string(), 404, "no such request"),
        ("/find", json!({}).to_string(), 405, "not with this method"),
    ] {
        let refused = post(at, path, &[JSON], body.as_bytes());
        assert_eq!(refused.status, status, "{path} {body}: {refused:?}");
        let body = refused.json();
        let error = body["error"].as_str().expect("an error");
        assert!(error.contains(said), "{path}: {error}");
        assert!(body["fix"].as_str().is_some_and(|fix| !fix.is_empty()), "{error}");
    }
    for (path, status, said) in [
        ("/find?folder=/one", 400, "t is missing"),
        ("/find?folder=/one&t=1&t=2", 400, "\"t\" is given twice"),
        ("/find?folder=/one&t=-1", 400, "write a time"),
        ("/find?folder=/one&t=1&names=x", 404, "no channel \"x\""),
        ("/find?folder=/one&t=1&color=x", 400, "\"color\" is no parameter"),
        ("/find?folder=/set&t=1", 404, "no folder \"/set\""),
        ("/browse?folder=/one&since=2&until=1", 400, "is no interval"),
        ("/slice/99/0", 404, "no revision 99"),
        ("/slice/x/0", 400, "\"x\" is no revision"),
        ("/slice/1/0?under=/none", 404, "no folder \"/none\""),
        ("/slice/1/0?user=77", 404, "no tag \"number 77\""),
        ("/slice?t=1&tag=none", 404, "no tag \"none\""),
        ("/find?folder=%ff&t=1", 404, "no folder"),
    ] {
        let refused = get(at, &format!("/api/v1{path}"), &[]);
        assert_eq!(refused.status, status, "{path}: {refused:?}");
        let error = refused.json()["error"].as_str().expect("an error").to_owned();
        assert!(error.contains(said), "{path}: {error}");
        assert_eq!(refused.header("cache-control"), "no-store");
    }
    let page = String::from_utf8(get(at, "/metrics", &[]).body).expect("text");
    assert!(page.contains("\nconditions_objects 1\n"), "{page}");
    assert!(page.contains("\nconditions_refused_total 3"), "{page}");
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
}
