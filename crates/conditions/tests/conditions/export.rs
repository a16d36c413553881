//! Exports, and what two versions show differently.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conditions::protocol::{encode_insert, split_insert};
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use crate::served::{change, client, folder, get, insert, serve};

/// Inserts `objects` objects into channels 0 to 9 of a folder, by the binary form of an export.
fn objects(count: usize) -> Json {
    let object = |n: usize| {
        let (channel, since, until) = (n % 10, n, n + 10);
        json!({ "channel": channel, "since": since, "until": until, "values": [n as f64 / 2.0] })
    };
    json!((0..count).map(object).collect::<Vec<_>>())
}

#[test]
fn an_export_of_many_parts_is_inserted_elsewhere_and_shows_the_same() {
    let (one, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir());
    let server = serve(one.path(), None);
    let at = server.addresses()[0];
    for name in ["/det/a", "/det/b", "/det/empty"] {
        folder(at, name, "multi");
    }
    let batch = |folder: &str, count| json!({ "folder": folder, "objects": objects(count) });
    let batches = json!([batch("/det/a", 20_000), batch("/det/b", 10)]);
    let revision = change(at, "/objects", &json!({ "batches": batches }));
    // Of the revision that it was begun at.
    insert(at, "/det/b", 77, (0, None), 1.0);
    let asked = |format: &str| {
        let url = format!("/api/v1/export?under=/det&revision={revision}&format={format}");
        let export = get(at, &url, &[]);
        assert_eq!(export.status, 200, "{export:?}");
        assert_eq!(export.header("conditions-revision"), revision.to_string());
        export.body
    };
    let again = serve(other.as_ref().expect("a folder").path(), None);
    let copy = again.addresses()[0];
    for name in ["/det/a", "/det/b", "/det/empty"] {
        folder(copy, name, "multi");
    }
    let (bytes, mut parts) = (asked("binary"), 0);
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let (bulks, after) = split_insert(rest).expect("an insertion");
        client(copy).insert(&encode_insert(bulks.iter())).expect("inserted");
        (rest, parts) = (after, parts + 1);
    }
    assert!(parts >= 4, "{parts} parts");
    let browse = |at, path: &str| {
        let asked = [("folder", path.to_owned()), ("channels", "0-9".to_owned())];
        client(at).get_json("/browse", &asked).expect("an answer")
    };
    for path in ["/det/a", "/det/b", "/det/empty"] {
        assert_eq!(browse(at, path), browse(copy, path), "{path}");
    }
    let lines = asked("jsonl");
    let lines: Vec<Json> = lines
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 20_010);
    let first = json!({
        "folder": "/det/a", "channel": 0, "since": 0, "until": 10, "records": [[0.0]],
    });
    assert_eq!((&lines[0], &lines[1]["since"]), (&first, &json!(10)));
    let url = "/api/v1/export?under=/det/b&format=csv&until=12&channels=1-2";
    let csv = String::from_utf8(get(at, url, &[]).body).expect("text");
    assert_eq!(csv, "channel,since,until,record,value\n1,1,11,0,0.5\n2,2,12,0,1.0\n");
    for (query, status) in
        [("format=json", 400), ("format=csv", 404), ("under=/x", 404), ("revision=99", 404)]
    {
        assert_eq!(get(at, &format!("/api/v1/export?{query}"), &[]).status, status, "{query}");
    }
}

/// The chunks of an answer, without their sizes, and the fields behind the last one.
fn dechunked(mut rest: &[u8]) -> (Vec<u8>, String) {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n").expect("a size");
        let size = std::str::from_utf8(&rest[..end]).expect("text");
        let size = usize::from_str_radix(size, 16).expect("a size");
        rest = &rest[end + 2..];
        if size == 0 {
            return (body, String::from_utf8(rest.to_vec()).expect("text"));
        }
        body.extend_from_slice(&rest[..size]);
        rest = &rest[size + 2..];
    }
}

#[test]
fn an_export_ends_with_its_digest_in_a_trailer_or_a_line() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    folder(at, "/det/a", "multi");
    let batches = json!([{ "folder": "/det/a", "objects": objects(20_000) }]);
    change(at, "/objects", &json!({ "batches": batches }));
    let digest = |bytes: &[u8]| format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(bytes)));
    for of in ["format=jsonl", "format=csv", "format=binary", "channels=77"] {
        let url = format!("/api/v1/export?under=/det/a&{of}");
        let plain = get(at, &url, &[]);
        assert_eq!((plain.status, plain.header("trailer")), (200, ""));
        let line = get(at, &format!("{url}&digest=true"), &[]).body;
        let (bytes, line) = line.split_at(plain.body.len());
        assert!(bytes == plain.body, "{of}");
        assert_eq!(String::from_utf8_lossy(line), format!("{}\n", digest(bytes)), "{of}");

        let mut socket = TcpStream::connect(at).expect("a connection");
        let head = format!("GET {url} HTTP/1.1\r\nhost: {at}\r\nte: trailers\r\n");
        write!(socket, "{head}connection: te, close\r\n\r\n").expect("sent");
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).expect("an answer");
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
        assert!(head.contains("trailer: content-digest, repr-digest"), "{head}");
        let (body, fields) = dechunked(&answer[end + 4..]);
        assert!(body == plain.body, "{of}");
        let fields = fields.to_lowercase();
        for name in ["content-digest", "repr-digest"] {
            let field = format!("{name}: {}\r\n", digest(&body)).to_lowercase();
            assert!(fields.contains(&field), "{of}: {fields}");
        }
    }
    let mut out = Vec::new();
    let bytes = client(at).export(&[("under", "/det/a".to_owned())], &mut out).expect("an export");
    assert_eq!(out.len() as u64, bytes);
    assert!(out == get(at, "/api/v1/export?under=/det/a", &[]).body);
}

#[test]
fn two_versions_differ_where_they_show_other_records() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    folder(at, "/det/a", "multi");
    folder(at, "/det/b", "multi");
    insert(at, "/det/a", 1, (0, Some(10)), 1.0);
    change(at, "/tags", &json!({ "name": "before", "path": "/det" }));
    insert(at, "/det/a", 1, (4, Some(6)), 2.0);
    // Another object that shows the same is no difference.
    insert(at, "/det/a", 1, (8, Some(9)), 1.0);
    let revision = insert(at, "/det/b", 2, (5, None), 3.0);
    let diff = |query: &str| get(at, &format!("/api/v1/diff?{query}"), &[]).json();
    let open = i64::MAX;
    let columns = json!([{ "name": "value", "kind": "float" }]);
    let line = |channel: u32, (since, until): (u64, i64), before: Json, after: Json| {
        json!({
            "channel": channel, "since": since, "until": until, "before": before, "after": after,
        })
    };
    let expected = json!({ "folders": [
        {
            "folder": "/det/a", "columns": columns,
            "differences": [line(1, (4, 6), json!([[1.0]]), json!([[2.0]]))],
        },
        {
            "folder": "/det/b", "columns": columns,
            "differences": [line(2, (5, open), Json::Null, json!([[3.0]]))],
        },
    ] });
    assert_eq!(diff("under=/det&tag=before"), expected);
    assert_eq!(diff(&format!("under=/det&tag=before&to_revision={revision}")), expected);
    let cut = diff("under=/det&to_tag=before&since=5&until=6&channels=1");
    let own = json!([line(1, (5, 6), json!([[2.0]]), json!([[1.0]]))]);
    assert_eq!(cut["folders"][0]["differences"], own);
    assert_eq!(cut["folders"].as_array().map(Vec::len), Some(1));
    assert_eq!(diff("under=/det"), json!({ "folders": [] }));
    change(at, "/columns/rename", &json!({ "folder": "/det/b", "from": "value", "to": "volt" }));
    let renamed = diff(&format!("revision={revision}"));
    assert_eq!(renamed["folders"][0]["columns_after"][0]["name"], "volt");
    assert_eq!(renamed["folders"][0]["differences"], json!([]));
}
