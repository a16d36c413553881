//! Little questions have the same answers whether they are taken apart in full or not.

use std::time::Duration;

use serde_json::json;

use crate::served::{Said, ask, change, folder, get, insert, post, serve};

/// What makes a request one that is taken apart in full.
const FULL: (&str, &str) = ("te", "trailers");

fn essence(said: &Said) -> (u16, Vec<(String, String)>, &[u8]) {
    let of_its_time = ["date", "server-timing"];
    let headers = said.headers.iter().filter(|(name, _)| !of_its_time.contains(&name.as_str()));
    let text = |value: &ureq::http::HeaderValue| value.to_str().expect("text").to_owned();
    let mut headers: Vec<_> =
        headers.map(|(name, value)| (name.to_string(), text(value))).collect();
    headers.sort();
    (said.status, headers, &said.body)
}

#[test]
fn a_question_has_the_same_answer_whichever_way_it_is_taken() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    folder(at, "/det/a b", "single");
    folder(at, "/det/b", "multi");
    for start in [0, 10, 20] {
        insert(at, "/det/a b", 1, (start, None), start as f64);
    }
    insert(at, "/det/b", 7, (5, Some(15)), 0.5);
    change(at, "/tags", &json!({ "name": "before", "path": "/det" }));
    for (path, body) in [
        ("/global-tags/statuses", json!({ "name": "unlocked" })),
        ("/gt", json!({ "name": "T", "status": "unlocked", "author": "x" })),
        ("/payload-types", json!({ "name": "beam" })),
        ("/payload-lists", json!({ "payload_type": "beam" })),
    ] {
        let body = serde_json::to_vec(&body).expect("JSON");
        let kind = ("content-type", "application/json");
        let made = ask(at, "POST", &format!("/api/cdb_rest{path}"), &[kind], &body);
        assert_eq!(made.status, 200, "{made:?}");
    }
    let place = get(at, "/api/v1/slice?t=12", &[]).header("location").to_owned();
    let asked = [
        "/api/v1/find?folder=/det/a%20b&t=12",
        "/api/v1/find?folder=/det/a+b&t=12&channels=1-3&revision=4",
        "/api/v1/find?folder=/none&t=12",
        "/api/v1/find?folder=/det/b&t=x",
        "/api/v1/find?folder=/det/b&t=7&where=value%3E%3D0.25",
        "/api/v1/slice?t=12",
        "/api/v1/slice?t=12&redirect=false&under=/det/",
        "/api/v1/slice?t=12&redirect=false&format=binary&tag=before",
        "/api/v1/slice?t=12&tag=none",
        "/api/v1/slice?under=/det",
        &place,
        "/api/v1/slice/999/5",
        "/api/v1/slice/1",
        "/api/v1/folders",
        "/api/cdb_rest/payload-iovs/query/?gtName=T&majorIOV=1&minorIOV=0",
        "/api/cdb_rest/payloadiovs/?gtName=none&majorIOV=1&minorIOV=0&shape=dict",
        "/api/cdb_rest/payload-iovs/query/?gtName=T",
    ];
    for path in asked {
        let (quick, full) = (get(at, path, &[]), get(at, path, &[FULL]));
        assert_eq!(essence(&quick), essence(&full), "{path}");
        let tag = quick.header("etag").to_owned();
        if !tag.is_empty() {
            let known = ("if-none-match", &*format!("\"x\", W/{tag}"));
            let (quick, full) = (get(at, path, &[known]), get(at, path, &[known, FULL]));
            assert_eq!(essence(&quick), essence(&full), "{path}");
            assert_eq!(quick.status, 304, "{path}");
        }
    }
    let made = post(
        at,
        "/sets",
        &[("content-type", "application/json")],
        br#"{"path":"/x","description":""}"#,
    );
    assert_eq!(made.status, 200, "{made:?}");
    server.stop(Duration::from_secs(1));
}
