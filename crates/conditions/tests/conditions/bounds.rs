//! Limits that keep one client from others, and what caches may keep.

use std::io::Write as _;
use std::net::TcpStream;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::served::{change, folder, get, insert, post, serve, serve_unsynced};

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
    let soon = jiff::Timestamp::now() + jiff::Span::new().seconds(30);
    assert_eq!(lead(&format!("as_of={soon}")).0, "no-cache", "changes come before that");
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

#[test]
fn a_cache_keeps_an_answer_of_a_revision_and_asks_again_for_one_of_the_head() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    folder(at, "/a", "multi");
    let revision = insert(at, "/a", 1, (0, Some(9)), 1.0);
    change(at, "/channels", &json!({ "folder": "/a", "channel": 1, "name": "one" }));
    change(at, "/tags", &json!({ "name": "then", "path": "/a" }));
    let ask = |question: &str, tag: &str| {
        let (path, more) = question.split_once(' ').unwrap_or((question, ""));
        let asked = format!("/api/v1/{path}?folder=/a&{more}");
        let answer = get(at, &asked, &[("if-none-match", tag)]);
        assert!([200, 304].contains(&answer.status), "{question}: {answer:?}");
        assert_eq!(answer.status == 304, answer.body.is_empty(), "{question}");
        if answer.status == 200 {
            let digest = STANDARD.encode(Sha256::digest(&answer.body));
            for name in ["content-digest", "repr-digest"] {
                assert_eq!(answer.header(name), format!("sha-256=:{digest}:"), "{question}");
            }
        }
        answer
    };
    let of_revision = format!("t=3&revision={revision}");
    let for_ever = [
        format!("find {of_revision}"),
        format!("find {of_revision}&channels=1&tag=HEAD&where=value%3E0"),
        format!("browse revision={revision}"),
        format!("count since=1&revision={revision}"),
    ];
    let for_now = [
        "find t=3".to_owned(),
        format!("find t=3&as_of={}", jiff::Timestamp::now() + jiff::Span::new().seconds(30)),
        // The name may be given to another channel, and the tag made anew.
        format!("find {of_revision}&names=one"),
        format!("find {of_revision}&tag=then"),
        // Channels are listed that are made later.
        format!("explain {of_revision}"),
        "browse".to_owned(),
        "channels".to_owned(),
    ];
    let lasts = |all: &[String], kept: &str| -> Vec<_> {
        let one = |question: &String| {
            let answer = ask(question, "\"x\"");
            assert_eq!(answer.header("cache-control"), kept, "{question}");
            let again = ask(question, answer.header("etag"));
            assert_eq!(again.status, 304, "{question}");
            assert_eq!(again.header("cache-control"), kept, "{question}");
            (question.clone(), answer)
        };
        all.iter().map(one).collect()
    };
    let kept = lasts(&for_ever, "public, max-age=31536000, immutable");
    lasts(&for_now, "no-cache");
    let before = ask("find t=3", "");
    insert(at, "/a", 2, (20, None), 2.0);
    assert_eq!(ask("find t=3", before.header("etag")).status, 304, "the same at that time");
    insert(at, "/a", 2, (0, Some(5)), 2.0);
    let after = ask("find t=3", before.header("etag"));
    assert_eq!(after.status, 200);
    assert!(after.body != before.body);
    for (question, answer) in kept {
        assert_eq!(ask(&question, "").body, answer.body, "{question}");
    }
    assert_eq!(get(at, "/api/v1/find?folder=/none&t=1", &[]).header("cache-control"), "no-store");
}

#[test]
fn where_a_tag_leads_is_kept_only_while_its_objects_are_the_same() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    folder(at, "/a", "multi");
    let object = json!({ "channel": 1, "since": 0, "values": [1.0] });
    let batch = json!({ "folder": "/a", "objects": [object], "tag": "mine" });
    change(at, "/objects", &json!({ "batches": [batch] }));
    change(at, "/tags", &json!({ "name": "then", "path": "/a" }));
    change(at, "/tags", &json!({ "name": "all", "path": "/", "picks": ["then"] }));
    let kept = |more: &str| {
        let led = get(at, &format!("/api/v1/slice?t=1&{more}"), &[]);
        assert_eq!(led.status, 307, "{led:?}");
        led.header("cache-control").to_owned()
    };
    assert_eq!(kept("under=/a&tag=then"), "public, max-age=60");
    assert_eq!(kept("under=/a&tag=mine"), "no-cache", "users insert into it");
    assert_eq!(kept("tag=all"), "no-cache", "it picks others");
    assert_eq!(kept("tag=all&revision=4"), "public, max-age=60");
}

#[test]
fn more_ranges_than_a_head_has_room_for_are_asked_in_a_body() {
    const RANGES: u32 = 20_000;
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    folder(at, "/many", "single");
    let object = |channel| json!({ "channel": channel, "since": 5, "values": [channel] });
    for channels in [[0, 1, 2, 3], [39_997, 39_998, 39_999, 40_000]] {
        let batch = json!({ "folder": "/many", "objects": channels.map(object) });
        change(at, "/objects", &json!({ "batches": [batch] }));
    }
    let ranges: Vec<_> = (0..RANGES).map(|n| (2 * n).to_string()).collect();
    let ranges = ranges.join(",");
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let ask = |path: &str, body: &str| post(at, path, &form, body.as_bytes());
    let body = format!("folder=%2Fmany&t=7&channels={ranges}");
    let found = ask("/find", &body);
    let channels = |objects: &serde_json::Value| -> Vec<u64> {
        let objects = objects.as_array().expect("a list");
        objects.iter().map(|object| object["channel"].as_u64().expect("a number")).collect()
    };
    assert_eq!(channels(&found.json()["objects"]), [0, 2, 39_998]);
    assert_eq!(found.header("cache-control"), "no-cache");
    assert_eq!(channels(&ask("/explain", &body).json()["channels"]), [0, 2, 39_998]);
    let range = format!("since=0&until=max&channels={ranges}");
    assert_eq!(ask("/count", &format!("folder=/many&{range}")).json()["objects"], 3);
    let browsed = ask("/browse", &format!("folder=/many&{range}&where=value%3E1"));
    assert_eq!(channels(&browsed.json()["objects"]), [2, 39_998]);
    let diff = ask("/diff", &format!("under=/many&{range}&revision=1"));
    assert_eq!(channels(&diff.json()["folders"][0]["differences"]), [0, 2, 39_998]);
    let exported = ask("/export", &format!("under=/many&{range}"));
    assert_eq!(exported.body.iter().filter(|byte| **byte == b'\n').count(), 3);
    for (path, body, said) in [
        ("/find", "folder=/many&t=7&t=8", "given twice"),
        ("/find?t=7", "folder=/many", "in the query and in the body"),
        ("/find", "folder=/many&t=7&channels=x", "no range of channels"),
        ("/export", "under=/many&no=1", "is no parameter here"),
    ] {
        let refused = ask(path, body);
        let error = refused.json()["error"].as_str().expect("text").to_owned();
        assert!(refused.status == 400 && error.contains(said), "{error}");
    }
    // What a client sent, however much, is not sent back.
    let long = "x".repeat(1 << 20);
    for more in ["names", "where", "folder"] {
        let folder = if more == "folder" { "" } else { "folder=/many&" };
        let refused = ask("/find", &format!("{folder}t=7&{more}={long}"));
        assert!([400, 404].contains(&refused.status), "{}", refused.status);
        assert!(refused.body.len() < 10_000, "{more}: {} bytes", refused.body.len());
    }
}

#[test]
fn no_cache_keeps_what_a_crash_of_the_machine_may_undo() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve_unsynced(data.path());
    let at = server.addresses()[0];
    folder(at, "/a", "multi");
    let revision = insert(at, "/a", 1, (0, Some(9)), 1.0);
    let led = get(at, &format!("/api/v1/slice?t=3&revision={revision}"), &[]);
    assert_eq!((led.status, led.header("cache-control")), (307, "no-cache"));
    let find = format!("/api/v1/find?folder=/a&t=3&revision={revision}");
    for place in [led.header("location"), &find] {
        let found = get(at, place, &[]);
        assert_eq!((found.status, found.header("cache-control")), (200, "no-cache"), "{place}");
    }
}
