//! Exports, and what two versions show differently.

use conditions::protocol::{encode_insert, split_insert};
use serde_json::{Value as Json, json};

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
