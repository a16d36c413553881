//! Limits that keep one client from others, and what caches may keep.

use std::io::Write as _;
use std::net::TcpStream;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::served::{change, folder, get, insert, serve};

#[test]
fn bodies_that_do_not_come_take_no_room_from_those_that_do() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    let idle: Vec<TcpStream> = (0..5)
        .map(|_| {
            let mut socket = TcpStream::connect(at).expect("a connection");
            let head = "POST /api/v1/folders HTTP/1.1\r\ncontent-type: application/json\r\n";
            write!(socket, "{head}host: {at}\r\ncontent-length: 67108864\r\n\r\n{{").expect("sent");
            socket
        })
        .collect();
    folder(at, "/a", "single");
    drop(idle);
}

#[test]
fn an_answer_of_too_many_bytes_is_refused_before_they_are_copied() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    let columns = json!([{ "name": "b", "kind": "blob" }]);
    change(at, "/folders", &json!({ "path": "/b", "versioning": "multi", "columns": columns }));
    let large = STANDARD.encode(vec![7; 1 << 20]);
    // One object, cut into pieces that each show all of it.
    let mut objects = vec![json!({ "channel": 1, "since": 0, "values": [large] })];
    let small = (0..300).map(|n| 2 * n);
    objects.extend(small.map(
        |since| json!({ "channel": 1, "since": since, "until": since + 1, "values": [null] }),
    ));
    change(at, "/objects", &json!({ "batches": [{ "folder": "/b", "objects": objects }] }));
    let refused = get(at, "/api/v1/browse?folder=/b", &[]);
    assert_eq!(refused.status, 413, "{:?}", refused.json());
    assert!(refused.json()["error"].as_str().expect("text").contains("bytes of an answer"));
    assert_eq!(get(at, "/api/v1/browse?folder=/b&until=100", &[]).status, 200);
}

#[test]
fn what_a_cache_may_keep_stays_right() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    folder(at, "/det/a", "single");
    insert(at, "/det/a", 1, (100, Some(200)), 1.0);
    let lead = |more: &str| {
        let led = get(at, &format!("/api/v1/slice?t=150&{more}"), &[]);
        assert_eq!(led.status, 307, "{led:?}");
        (led.header("cache-control").to_owned(), led.header("location").to_owned())
    };
    assert_eq!(lead("").0, "no-cache");
    assert_eq!(lead("as_of=2999-01-01T00:00:00Z").0, "no-cache", "changes come before that");
    let long = "public, max-age=31536000";
    assert_eq!(lead("as_of=2001-01-01T00:00:00Z").0, long);
    // Its place may be another after a change in a gap, with the same answer.
    assert_eq!(lead("revision=2").0, long);
    assert_eq!(lead("under=/det").1, lead("under=/det///").1);
    let slashes = "/".repeat(10_000);
    assert_eq!(get(at, &format!("/api/v1/slice/2/0?under=/det{slashes}"), &[]).status, 200);
    assert_eq!(get(at, "/api/v1/slice/2/9223372036854775808", &[]).status, 400);
    change(at, "/truncate", &json!({ "folder": "/det/a", "until": "max" }));
}
