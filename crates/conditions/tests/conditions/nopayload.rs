//! The interface of NoPayloadDB from outside: what it answers and refuses, and what is left of it.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::kill;
use crate::served::{Said, ask, serve, serve_sealing};

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

fn request(at: SocketAddr, method: &str, path: &str, body: &Json) -> Said {
    ask(at, method, &format!("/api/cdb_rest/{path}"), JSON, body.to_string().as_bytes())
}

fn made(at: SocketAddr, method: &str, path: &str, body: &Json) -> Json {
    let answer = request(at, method, path, body);
    assert_eq!(answer.status, 200, "{method} {path} {body}: {answer:?}");
    if answer.body.is_empty() { Json::Null } else { answer.json() }
}

fn get(at: SocketAddr, path: &str) -> Json {
    let answer = ask(at, "GET", &format!("/api/cdb_rest/{path}"), &[], &[]);
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.json()
}

/// A tag with one list of each type.
fn tag(at: SocketAddr, name: &str, types: &[&str]) -> Vec<String> {
    for status in ["unlocked", "locked", "frozen"] {
        // The second tag finds them there.
        request(at, "POST", "gtstatus", &json!({ "name": status }));
    }
    made(at, "POST", "gt", &json!({ "name": name, "status": "unlocked" }));
    let list = |payload_type: &&str| {
        request(at, "POST", "pt", &json!({ "name": payload_type }));
        let list = made(at, "POST", "pl", &json!({ "payload_type": payload_type }));
        let list = list["name"].as_str().expect("a name").to_owned();
        made(at, "PUT", "pl_attach", &json!({ "global_tag": name, "payload_list": list }));
        list
    };
    types.iter().map(list).collect()
}

fn iov(at: SocketAddr, url: &str, start: (u64, u64), end: Option<(u64, u64)>) -> u64 {
    let mut body = json!({
        "payload_url": url, "checksum": "md5:0", "major_iov": start.0, "minor_iov": start.1,
    });
    if let Some((major, minor)) = end {
        body["major_iov_end"] = json!(major);
        body["minor_iov_end"] = json!(minor);
    }
    made(at, "POST", "piov", &body)["id"].as_u64().expect("a number")
}

fn attach(at: SocketAddr, list: &str, id: u64) -> Said {
    request(at, "PUT", "piov_attach", &json!({ "payload_list": list, "piov_id": id }))
}

fn attached(at: SocketAddr, list: &str, url: &str, start: u64, end: u64) -> Json {
    let answer = attach(at, list, iov(at, url, (start, 0), Some((end, 0))));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

fn query(at: SocketAddr, tag: &str, major: u64, more: &str) -> Json {
    get(at, &format!("payloadiovs/?gtName={tag}&majorIOV={major}&minorIOV=0{more}"))
}

#[test]
fn both_generations_of_paths_and_both_forms_of_rows_say_the_same() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    let lists = tag(at, "T", &["A", "B"]);
    attached(at, &lists[0], "a", 0, 10);
    attached(at, &lists[0], "b", 10, 20);
    let c = attached(at, &lists[0], "c", 5, 15);
    assert_eq!(
        (&c["payload_list"], &c["comb_iov"]),
        (&json!("A_1"), &json!("5.0000000000000000000"))
    );
    let shown = |major| query(at, "T", major, "");
    assert_eq!(shown(4), json!([["A", "a", "md5:0", null, 0, 0, 5, 0, null]]));
    assert_eq!(shown(5), json!([["A", "c", "md5:0", null, 5, 0, 15, 0, null]]));
    assert_eq!(shown(15), json!([["A", "b", "md5:0", null, 15, 0, 20, 0, null]]));
    // An end is of no account, unless it is asked for.
    assert_eq!((shown(25), query(at, "T", 25, "&strict=1")), (shown(20), json!([])));
    assert_eq!(query(at, "none", 5, ""), json!([]));
    let dict = json!([{
        "payload_type_name": "A", "payload_url": "c", "checksum": "md5:0", "size": null,
        "major_iov": 5, "minor_iov": 0, "major_iov_end": 15, "minor_iov_end": 0, "revision": null,
    }]);
    assert_eq!(query(at, "T", 7, "&shape=dict"), dict);
    for (old, new) in [
        (
            "payloadiovs/?gtName=T&majorIOV=7&minorIOV=0",
            "payload-iovs/query/?gtName=T&majorIOV=7&minorIOV=0",
        ),
        (
            "payloadiovs?gtName=T&majorIOV=7&minorIOV=0",
            "payload-iovs/query?gtName=T&majorIOV=7&minorIOV=0",
        ),
        ("globalTags", "global-tags"),
        ("globalTag/T", "global-tags/T"),
        ("globalTag/T", "gt/1"),
        ("gtPayloadLists/T", "global-tags/T/payload-lists"),
        ("gtstatus", "global-tags/statuses"),
        ("pt?page=1", "payload-types?page=1"),
        ("pl", "payload-lists"),
        ("pl/1", "payload-lists/1"),
        ("piov", "payload-iovs"),
        ("piov/2", "payload-iovs/2"),
        ("user_settings/CDB_IOV_MODE/", "settings/CDB_IOV_MODE/"),
    ] {
        assert_eq!(get(at, old), get(at, new), "{old} and {new}");
    }
    // Longer ago than a tag is old, and at moments that no interval has.
    let far = get(at, "payloadiovs/?gtName=T&majorIOV=-1&minorIOV=5");
    assert_eq!(far, json!([]));
    let late = get(at, "payloadiovs/?gtName=T&majorIOV=99999999999999999999&minorIOV=0");
    assert_eq!(late, shown(25));
}

#[test]
fn an_answer_is_not_sent_again_until_the_tag_shows_something_else() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    let lists = tag(at, "T", &["A"]);
    tag(at, "Other", &["A"]);
    attached(at, &lists[0], "a", 0, 10);
    let path = "/api/cdb_rest/payloadiovs/?gtName=T&majorIOV=3&minorIOV=0";
    let entity = ask(at, "GET", path, &[], &[]).header("etag").to_owned();
    let again = || ask(at, "GET", path, &[("if-none-match", &entity)], &[]).status;
    assert_eq!(again(), 304);
    made(at, "PUT", "gt_change_status/T/locked", &Json::Null);
    attached(at, "A_2", "x", 0, 10);
    assert_eq!(again(), 304);
    attached(at, &lists[0], "b", 10, 20);
    assert_eq!(again(), 200);
}

#[test]
fn many_are_added_at_once_and_all_or_none() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    let lists = tag(at, "T", &["A", "B"]);
    let row = |list: &str, url: &str, major: u64| {
        let mut row = json!({ "payload_url": url, "payload_list": list, "minor_iov": 0 });
        row["major_iov"] = major.into();
        row
    };
    let rows = json!([row(&lists[0], "a", 0), row(&lists[1], "b", 5), row(&lists[0], "c", 9)]);
    assert_eq!(made(at, "POST", "payload-iovs/bulk", &rows), Json::Null);
    let urls = |major| {
        let rows = query(at, "T", major, "&strict=1");
        let rows = rows.as_array().expect("rows").iter();
        rows.map(|row| row[1].as_str().expect("text").to_owned()).collect::<String>()
    };
    assert_eq!((urls(0), urls(5), urls(9)), ("a".to_owned(), "ab".to_owned(), "cb".to_owned()));
    let rows = json!([row(&lists[0], "d", 20), row("none", "e", 20)]);
    assert_eq!(request(at, "POST", "bulk_piov", &rows).status, 404);
    made(at, "PUT", "gt_change_status/T/locked", &Json::Null);
    let met = json!([row(&lists[0], "d", 20), row(&lists[0], "e", 7)]);
    assert_eq!(request(at, "POST", "bulk_piov", &met).status, 409);
    assert_eq!(urls(20), "cb");
    let follow = json!([row(&lists[0], "e", 30), row(&lists[0], "d", 20)]);
    made(at, "POST", "bulk_piov", &follow);
    assert_eq!((urls(20), urls(30)), ("db".to_owned(), "eb".to_owned()));
}

/// Requests that are refused: method, path, body, status and a part of the error.
const REFUSED: &[(&str, &str, &str, u16, &str)] = &[
    ("POST", "gt", "{", 400, "JSON parse error"),
    ("POST", "gt", "[]", 400, "Expected a dictionary"),
    ("POST", "gt", r#"{"status":"unlocked"}"#, 400, r#"{"name":["This field is required."]}"#),
    ("POST", "gt", r#"{"name":"X","status":"odd"}"#, 404, "GlobalTagStatus odd doesn't exist"),
    (
        "POST",
        "gt",
        r#"{"name":"T","status":"unlocked"}"#,
        400,
        r#"{"name":["global tag with this name already exists."]}"#,
    ),
    ("POST", "pt", r#"{"name":"  "}"#, 400, "This field may not be blank."),
    ("POST", "pt", r#"{"name":"a\u0000b"}"#, 400, "Null characters are not allowed."),
    ("POST", "pt", r#"{"name":{"a":1}}"#, 400, "Not a valid string."),
    ("POST", "pl", r#"{"payload_type":"none"}"#, 404, "PayloadType none doesn't exist"),
    (
        "POST",
        "piov",
        r#"{"payload_url":"u","checksum":"c","major_iov":-1,"minor_iov":"x"}"#,
        400,
        r#""major_iov":["Ensure this value is greater than or equal to 0."]"#,
    ),
    (
        "POST",
        "piov",
        r#"{"payload_url":"u","checksum":"c","major_iov":1,"minor_iov":0,
            "major_iov_end":1,"minor_iov_end":0}"#,
        400,
        "ending IOVs should be greater",
    ),
    ("POST", "bulk_piov", r#"[{"payload_url":"u"}]"#, 400, "missing field `payload_list`"),
    ("PUT", "piov_attach", r#"{"payload_list":"A_1","piov_id":99}"#, 404, "PayloadIOV 99 doesn't"),
    ("PUT", "piov_attach", r#"{"payload_list":"none","piov_id":1}"#, 404, "PayloadList none"),
    ("PUT", "pl_attach", r#"{"payload_list":"A_1","global_tag":"none"}"#, 404, "GlobalTag none"),
    ("PUT", "gt_change_status/T/odd", "", 404, "GlobalTagStatus odd doesn't exist"),
    ("POST", "cloneGlobalTag/none/X", "", 404, "GlobalTag none doesn't exist"),
    ("POST", "cloneGlobalTag/T/T", "", 400, "already exists"),
    ("DELETE", "deleteGlobalTag/none", "", 404, "GlobalTag none doesn't exist"),
    ("DELETE", "deletePayloadIOV/T/A/0/1", "", 404, "with given parameters"),
    ("DELETE", "deletePayloadIOV/T/A/x/1", "", 404, "Not found."),
    ("DELETE", "deletePayloadList/A_1", "", 409, "contains 1 PayloadIOVs"),
    ("DELETE", "deletePayloadType/A", "", 409, "used by 1 PayloadLists"),
    ("GET", "global-tags/none", "", 404, "Not found."),
    ("GET", "gt/99999999999999999999", "", 404, "Not found."),
    ("GET", "piov/0", "", 404, "Not found."),
    ("GET", "piov/+1", "", 404, "Not found."),
    ("GET", "globalTag/%ff", "", 400, "no UTF-8"),
    ("GET", "settings/JWT_SECRET/", "", 404, "Setting 'JWT_SECRET' not found."),
    ("GET", "payloadiovs/?gtName=T&majorIOV=1", "", 400, "minorIOV is missing"),
    ("GET", "payloadiovs/?gtName=T&majorIOV=1e9&minorIOV=0", "", 400, "write an integer"),
    ("GET", "nothing", "", 404, "no such request"),
    ("PATCH", "gt", "", 405, "Not with this method."),
];

#[test]
fn every_refusal_is_json_with_its_status_and_changes_nothing() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    let lists = tag(at, "T", &["A"]);
    attached(at, &lists[0], "a", 0, 10);
    let before = get(at, "global-tags/T");
    for (method, path, body, status, said) in REFUSED {
        let path = format!("/api/cdb_rest/{path}");
        let answer = ask(at, method, &path, JSON, body.as_bytes());
        assert_eq!(answer.status, *status, "{method} {path} {body}: {answer:?}");
        assert_eq!(answer.header("content-type"), "application/json", "{method} {path}");
        assert!(answer.json().is_object());
        let words = String::from_utf8(answer.body).expect("text");
        assert!(words.contains(said), "{method} {path} {body}: {words}");
    }
    let text = ask(at, "POST", "/api/cdb_rest/pt", &[("content-type", "text/plain")], b"{}");
    assert_eq!(
        (text.status, &text.json()["detail"]),
        (415, &json!("Unsupported media type \"text/plain\" in request."),)
    );
    let long = json!({ "name": "é".repeat(81) });
    let long = request(at, "POST", "pt", &long);
    assert_eq!(
        long.json(),
        json!({ "name": ["Ensure this field has no more than 80 characters."] })
    );
    assert_eq!(get(at, "global-tags/T"), before);
    assert_eq!(get(at, "pt").as_array().map(Vec::len), Some(1));
}

#[test]
fn lists_of_locked_tags_are_added_to_and_those_of_frozen_tags_stay_as_they_are() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    let lists = tag(at, "T", &["A", "B"]);
    let free = made(at, "POST", "pl", &json!({ "payload_type": "A" }));
    let (a, free) = (&lists[0], free["name"].as_str().expect("a name"));
    attached(at, a, "a", 0, 10);
    made(at, "PUT", "global-tags/T/change-status/locked", &Json::Null);
    let refused = |answer: &Said, said: &str| {
        let words = answer.json()["detail"].as_str().expect("words").to_owned();
        assert!(answer.status == 409 && words.contains(said), "{answer:?}");
    };
    let met = attach(at, a, iov(at, "x", (9, 0), Some((11, 0))));
    let said = "(9,0,11,0). Conflicts with existing IOV a (0,0,10,0)";
    refused(&met, said);
    // It must not run into the next one, either.
    attached(at, a, "b", 20, 30);
    refused(&attach(at, a, iov(at, "x", (15, 0), Some((25, 0)))), "IOV b (20,0,30,0)");
    attached(at, a, "between", 12, 20);
    // What is open is followed by what is open.
    assert_eq!(attach(at, a, iov(at, "open", (30, 0), None)).status, 200);
    assert_eq!(attach(at, a, iov(at, "next", (40, 0), None)).status, 200);
    refused(&attach(at, a, iov(at, "x", (35, 0), None)), "IOV open");
    assert_eq!(query(at, "T", 45, "")[0][1], "next");
    let other = json!({ "global_tag": "T", "payload_list": free });
    refused(&request(at, "PUT", "pl_attach", &other), "type A already attached");
    refused(&request(at, "DELETE", "deleteGlobalTag/T", &Json::Null), "Global Tag is locked.");
    // Neither may an interval, or a list, leave for another tag.
    tag(at, "Other", &[]);
    let away = json!({ "global_tag": "Other", "payload_list": a });
    refused(&request(at, "PUT", "pl_attach", &away), "Global Tag is locked.");
    let b = get(at, &format!("payload-iovs?page=1&payload_list={a}&search=b&sort=id"));
    let b = b["results"][0]["id"].as_u64().expect("a number");
    refused(&attach(at, free, b), "Global Tag is locked.");
    made(at, "PUT", "global-tags/T/change-status/frozen", &Json::Null);
    let shown = get(at, "global-tags/T");
    let frozen = "Global Tag is frozen.";
    refused(&attach(at, a, iov(at, "x", (90, 0), None)), frozen);
    let add = json!([{ "payload_url": "x", "payload_list": a, "major_iov": 90, "minor_iov": 0 }]);
    refused(&request(at, "POST", "bulk_piov", &add), frozen);
    refused(&request(at, "DELETE", "deletePayloadIOV/T/A/40/0", &Json::Null), frozen);
    refused(
        &request(at, "DELETE", &format!("deletePayloadList/{}", lists[1]), &Json::Null),
        frozen,
    );
    refused(&request(at, "PUT", "pl_attach", &other), frozen);
    assert_eq!(get(at, "global-tags/T"), shown);
}

#[test]
fn a_key_is_a_relative_path_and_leads_to_the_same_bytes_for_ever() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    let put = |key: &str, bytes: &[u8]| ask(at, "PUT", &format!("/upload/{key}"), &[], bytes);
    let stored = put("a/b%20c.bin", b"bytes");
    assert_eq!(stored.status, 201, "{stored:?}");
    let sum = "sha256:277089d91c0bdf4f2e6862ba7e4a07605119431f5d13f726dd352b06f1b206a9";
    assert_eq!(stored.json(), json!({ "key": "a/b c.bin", "checksum": sum, "size": 5 }));
    assert_eq!(put("a/b%20c.bin", b"bytes").status, 200);
    assert_eq!(put("a/b%20c.bin", b"other").status, 409);
    assert_eq!(put("empty", b"").status, 201);
    for key in [
        "../a",
        "a/../../b",
        "%2e%2e/a",
        "a%2f..%2fb",
        "/etc/passwd",
        "%2fetc/passwd",
        "a//b",
        "a/",
        "./a",
        "a%5cb",
        "a%00b",
        "%ff",
    ] {
        for method in ["PUT", "GET"] {
            let place = if method == "PUT" { "upload" } else { "dbstore" };
            let answer = ask(at, method, &format!("/{place}/{key}"), &[], &[]);
            assert!([400, 404].contains(&answer.status), "{method} {key}: {answer:?}");
            assert!(answer.json().is_object(), "{method} {key}");
        }
    }
    let file = ask(at, "GET", "/dbstore/a/b%20c.bin", &[], &[]);
    assert_eq!((file.status, &file.body[..]), (200, &b"bytes"[..]));
    assert_eq!(file.header("cache-control"), "public, max-age=31536000, immutable");
    assert_eq!(
        file.header("repr-digest"),
        "sha-256=:J3CJ2RwL308uaGK6fkoHYFEZQx9dE/cm3TUrBvGyBqk=:"
    );
    let known = ("if-none-match", file.header("etag"));
    assert_eq!(ask(at, "GET", "/dbstore/a/b%20c.bin", &[known], &[]).status, 304);
    assert_eq!(ask(at, "GET", "/dbstore/empty", &[], &[]).body, b"");
    assert_eq!(ask(at, "GET", "/dbstore/none", &[], &[]).status, 404);
    // Nothing lies outside of what the service named itself.
    let files = std::fs::read_dir(data.path().join("files")).expect("a folder");
    let names: Vec<_> = files.map(|entry| entry.expect("an entry").file_name()).collect();
    assert!(names.iter().all(|name| name == "incoming" || name.len() == 2), "{names:?}");
    assert_eq!(names.len(), 3, "no bytes are kept that were refused");
    server.stop(Duration::from_secs(1));
    let server = serve(data.path(), None);
    let again = ask(server.addresses()[0], "GET", "/dbstore/a/b%20c.bin", &[], &[]);
    assert_eq!(again.body, b"bytes");
    // One whose bytes have changed is not given out.
    let folder = data.path().join("files/27");
    let name = std::fs::read_dir(&folder).expect("a folder").next().expect("a file");
    std::fs::write(name.expect("a file").path(), b"bytez").expect("written");
    let url = format!("http://{}/dbstore/a/b%20c.bin", server.addresses()[0]);
    // It is cut short: within the head, or behind it.
    let answer = ureq::get(url).call();
    assert!(answer.map_or(true, |answer| answer.into_body().read_to_vec().is_err()));
}

#[test]
fn bodies_that_do_not_come_take_no_room_from_those_that_do() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    let idle: Vec<TcpStream> = (0..5)
        .map(|_| {
            let mut socket = TcpStream::connect(at).expect("a connection");
            let head = "POST /api/cdb_rest/pt HTTP/1.1\r\ncontent-type: application/json\r\n";
            write!(socket, "{head}host: {at}\r\ncontent-length: 67108864\r\n\r\n{{").expect("sent");
            socket
        })
        .collect();
    // Each was begun before this one is answered.
    made(at, "POST", "pt", &json!({ "name": "A" }));
    drop(idle);
}

#[test]
fn what_a_snapshot_of_the_journal_holds_is_there_after_a_start_with_what_came_since() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve_sealing(data.path(), u64::MAX);
    let at = server.addresses()[0];
    let lists = tag(at, "T", &["A", "B"]);
    attached(at, &lists[0], "before", 5, 10);
    server.seal().expect("a seal");
    attached(at, &lists[1], "since", 0, 20);
    let expected = query(at, "T", 7, "");
    assert_eq!(expected.as_array().map(Vec::len), Some(2), "{expected}");
    drop(server);
    let server = serve(data.path(), None);
    assert_eq!(query(server.addresses()[0], "T", 7, ""), expected);
}

const CLIENTS: usize = 3;

#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    // Each client attaches [n, n + 1) to its own list, and stores a file of that number.
    let acknowledged: Vec<AtomicU32> = (0..CLIENTS).map(|_| AtomicU32::new(0)).collect();
    for round in 0..4 {
        let (killed, at) = kill::start(folder.path());
        if round == 0 {
            tag(at, "T", &["A0", "A1", "A2"]);
        }
        let lists = get(at, "gtPayloadLists/T");
        for (client, count) in acknowledged.iter().enumerate() {
            let list = lists[format!("A{client}")].as_str().expect("a list");
            let there = get(at, &format!("payload-lists/by-name/{list}"))["iov_count"].clone();
            let (there, known) = (there.as_u64().expect("a number") as u32, count.load(Relaxed));
            // One more may have been made whose answer was lost.
            assert!((known..=known + 1).contains(&there), "{there} of {known}");
            for number in 0..known {
                let key = format!("/dbstore/{client}/{number}");
                assert_eq!(ask(at, "GET", &key, &[], &[]).body, key.as_bytes());
            }
            count.store(there, Relaxed);
        }
        for number in 0..acknowledged.iter().map(|count| count.load(Relaxed)).max().unwrap_or(0) {
            let shown = query(at, "T", number.into(), "");
            for row in shown.as_array().expect("rows") {
                assert!(row[4].as_u64().expect("a start") <= number.into(), "{row}");
            }
        }
        let killed = std::sync::Mutex::new(Some(killed));
        std::thread::scope(|scope| {
            for (client, count) in acknowledged.iter().enumerate() {
                let (killed, lists) = (&killed, &lists);
                scope.spawn(move || {
                    let list = lists[format!("A{client}")].as_str().expect("a list");
                    while step(at, client, count.load(Relaxed), list).is_some() {
                        count.fetch_add(1, Relaxed);
                        if count.load(Relaxed) % 9 == 8 {
                            // While the others are in the middle of theirs.
                            drop(killed.lock().expect("whole").take());
                        }
                    }
                });
            }
        });
    }
    assert!(acknowledged.iter().any(|count| count.load(Relaxed) >= 8));
}

/// Stores a file and attaches an interval; nothing once the server is gone.
fn step(at: SocketAddr, client: usize, number: u32, list: &str) -> Option<()> {
    let url = |path: &str| format!("http://{at}{path}");
    let key = format!("/dbstore/{client}/{number}");
    let upload = url(&key.replace("dbstore", "upload"));
    ureq::put(upload).send(key.as_bytes()).ok()?;
    let json = |request: ureq::RequestBuilder<ureq::typestate::WithBody>, body: Json| {
        let answer =
            request.header("content-type", "application/json").send(body.to_string()).ok()?;
        let text = answer.into_body().read_to_vec().ok()?;
        serde_json::from_slice::<Json>(&text).ok()
    };
    let body = json!({
        "payload_url": key, "checksum": "md5:0", "major_iov": number, "minor_iov": 0,
        "major_iov_end": number + 1, "minor_iov_end": 0,
    });
    let made = json(ureq::post(url("/api/cdb_rest/piov")), body)?;
    let body = json!({ "payload_list": list, "piov_id": made["id"] });
    json(ureq::put(url("/api/cdb_rest/piov_attach")), body).map(drop)
}
