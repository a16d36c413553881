//! Segments in a data directory: what a server serves from them after a start, and what it says of
//! damaged ones.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use conditions::server::check;
use serde_json::{Value as Json, json};

use crate::served::{WAIT, change, folder, get, insert, post, serve, serve_sealing};

const QUESTIONS: [&str; 13] = [
    "/find?folder=/a&t=25",
    "/find?folder=/a&t=25&revision=5",
    "/browse?folder=/a&order=time",
    "/browse?folder=/b&tag=mine",
    "/explain?folder=/a&t=5",
    "/folders",
    "/tags",
    "/find?folder=/b&t=20&tag=all",
    "/find?folder=/b&t=20&tag=all&revision=20",
    "/find?folder=/b&t=20&tag=all&revision=22",
    "/find?folder=/a&t=25&where=value%3E%3D2",
    "/diff?tag=all&revision=20",
    "/diff?revision=10",
];

fn answers(at: SocketAddr) -> Vec<Json> {
    let mut answers: Vec<Json> = QUESTIONS
        .iter()
        .map(|path| {
            let answer = get(at, &format!("/api/v1{path}"), &[]);
            assert_eq!(answer.status, 200, "{path}: {:?}", String::from_utf8_lossy(&answer.body));
            answer.json()
        })
        .collect();
    let led = get(at, "/api/v1/slice?t=25&format=json", &[]);
    answers.push(get(at, led.header("location"), &[]).json());
    answers
}

/// Two folders, of one version and of several, with a tag of users, and what was cut.
fn fill(at: SocketAddr) {
    folder(at, "/a", "single");
    folder(at, "/b", "multi");
    for n in 0..5 {
        insert(at, "/a", 1, (10 * n, None), n as f64);
        insert(at, "/a", 2, (10 * n, Some(10 * n + 7)), 0.5 + n as f64);
        insert(at, "/b", 3, (8 * n, Some(8 * n + 12)), n as f64);
    }
    let object = json!({ "channel": 3, "since": 4, "until": 40, "values": [9.0] });
    let batch = json!({ "folder": "/b", "tag": "mine", "only_tag": true, "objects": [object] });
    change(at, "/objects", &json!({ "batches": [batch] }));
    // A global tag that picks the one, then none, then the other.
    change(at, "/tags", &json!({ "name": "other", "path": "/b", "revision": 9 }));
    change(at, "/tags", &json!({ "name": "all", "path": "/", "picks": ["mine"] }));
    change(at, "/tags/pick", &json!({ "name": "all", "unpick": ["/b"] }));
    let revision = change(at, "/tags/pick", &json!({ "name": "all", "picks": ["other"] }));
    assert_eq!(revision, 22);
}

fn segments(data: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(data.join("segments")).expect("a folder");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files
}

#[test]
fn answers_are_the_same_before_and_after_data_are_sealed_and_after_a_start() {
    let folder_of_data = tempfile::tempdir().expect("a folder");
    let data = folder_of_data.path();
    let server = serve_sealing(data, u64::MAX);
    let at = server.addresses()[0];
    fill(at);
    let expected = answers(at);
    server.seal().expect("a seal");
    assert_eq!(answers(at), expected);
    // Over what is sealed, and then sealed with it.
    insert(at, "/a", 1, (55, None), 5.0);
    change(at, "/truncate", &json!({ "folder": "/a", "until": 42, "channels": "2" }));
    insert(at, "/b", 3, (0, Some(100)), 7.0);
    let expected = answers(at);
    server.seal().expect("a seal");
    assert_eq!(answers(at), expected);
    server.seal().expect("a seal of nothing new");
    drop(server);
    let known = segments(data);
    // What an interrupted seal left is removed, and no other file.
    let [stray, other] =
        ["00000000000000000999.segment", "notes"].map(|name| data.join("segments").join(name));
    std::fs::write(&stray, "x").expect("a file");
    std::fs::write(&other, "x").expect("a file");
    let server = serve(data, None);
    assert_eq!(answers(server.addresses()[0]), expected);
    assert!(!stray.exists() && other.exists());
    let checked = check(data).expect("beside a server");
    assert_eq!((checked.segments, checked.damaged.len()), (known.len(), 0));
    assert_eq!(checked.journal.snapshot, Some(checked.journal.last));
}

#[test]
fn a_damaged_segment_is_named_to_clients_and_by_a_check_and_the_rest_is_served() {
    let folder_of_data = tempfile::tempdir().expect("a folder");
    let data = folder_of_data.path();
    let server = serve_sealing(data, u64::MAX);
    let at = server.addresses()[0];
    fill(at);
    folder(at, "/c", "single");
    insert(at, "/c", 1, (0, None), 1.0);
    server.seal().expect("a seal");
    drop(server);
    // The last one is of the folder that was made last.
    let damaged = segments(data).pop().expect("a segment");
    let bytes = std::fs::read(&damaged).expect("a file");
    let name = damaged.file_name().and_then(|name| name.to_str()).expect("text").to_owned();
    let mut payload = bytes.clone();
    *payload.last_mut().expect("a byte") ^= 1;
    let mut index = bytes.clone();
    index[bytes.len() / 2] ^= 1;
    for (bytes, takes_changes) in [(Some(payload), true), (Some(index), false), (None, false)] {
        match &bytes {
            Some(bytes) => std::fs::write(&damaged, bytes).expect("a file"),
            None => std::fs::remove_file(&damaged).expect("a file"),
        }
        let server = serve(data, None);
        let at = server.addresses()[0];
        let refused = get(at, "/api/v1/find?folder=/c&t=1", &[]);
        assert_eq!(refused.status, 500);
        let error = refused.json()["error"].as_str().expect("text").to_owned();
        assert!(error.contains(&name) && error.contains("byte "), "{error}");
        assert_eq!(get(at, "/api/v1/find?folder=/a&t=25", &[]).status, 200);
        let condition = "/find?folder=/c&t=1&where=value%3D1";
        for path in ["/export?under=/c", "/diff?revision=1", condition] {
            let refused = get(at, &format!("/api/v1{path}"), &[]);
            assert_eq!(refused.status, 500, "{path}");
            assert_eq!(refused.json()["error"], error, "{path}");
        }
        let led = get(at, "/api/v1/slice?t=25", &[]);
        let slice = if led.status == 307 { get(at, led.header("location"), &[]) } else { led };
        assert_eq!(slice.status, 500, "a part of the answer can't be given");
        if !takes_changes {
            let object = json!({ "channel": 1, "since": 5, "values": [1.0] });
            let body = json!({ "batches": [{ "folder": "/c", "objects": [object] }] });
            let headers = [("content-type", "application/json")];
            let refused = post(at, "/objects", &headers, body.to_string().as_bytes());
            assert_eq!(refused.status, 500);
        }
        // It stays named where all else is sealed anew.
        insert(at, "/b", 9, (0, None), 1.0);
        server.seal().expect("a seal");
        drop(server);
        let checked = check(data).expect("files that can be read");
        assert_eq!(checked.damaged.len(), 1, "{:?}", checked.damaged);
        assert!(checked.damaged[0].contains(&name), "{:?}", checked.damaged);
    }
}

#[test]
fn a_segment_that_is_cut_or_written_over_while_it_is_served_is_named() {
    let folder_of_data = tempfile::tempdir().expect("a folder");
    let data = folder_of_data.path();
    let server = serve_sealing(data, u64::MAX);
    let at = server.addresses()[0];
    for path in ["/a", "/b", "/c"] {
        folder(at, path, "single");
        insert(at, path, 1, (0, None), 1.0);
    }
    server.seal().expect("a seal");
    let find = |folder: &str| get(at, &format!("/api/v1/find?folder={folder}&t=1"), &[]);
    let written =
        |segment: &Path| std::fs::OpenOptions::new().write(true).open(segment).expect("a file");
    let files = segments(data);
    let [cut, over, whole] = &files[..] else { panic!("three segments") };
    // What is behind the end of a file is read as zeros in its last page: nothing would be shown.
    written(cut).set_len(200).expect("cut");
    let mut bytes = std::fs::read(over).expect("a file");
    *bytes.last_mut().expect("a byte") ^= 1;
    written(over).write_all(&bytes).expect("written over");
    let content = std::fs::read(whole).expect("a file");
    written(whole).write_all(&content).expect("written as it was");
    for (folder, segment) in [("/a", cut), ("/b", over)] {
        let name = segment.file_name().and_then(|name| name.to_str()).expect("text");
        let end = Instant::now() + WAIT;
        let refused = loop {
            let answer = find(folder);
            if answer.status == 500 || Instant::now() > end {
                break answer;
            }
        };
        let error = refused.json()["error"].as_str().unwrap_or_default().to_owned();
        assert!(refused.status == 500 && error.contains(name), "{refused:?}");
        let object = json!({ "channel": 1, "since": 5, "values": [1.0] });
        let body = json!({ "batches": [{ "folder": folder, "objects": [object] }] });
        let headers = [("content-type", "application/json")];
        assert_eq!(post(at, "/objects", &headers, body.to_string().as_bytes()).status, 500);
    }
    assert_eq!(find("/c").status, 200);
    insert(at, "/c", 1, (5, None), 2.0);
}

#[test]
fn a_segment_that_can_not_be_opened_is_no_reason_to_restore_it() {
    let folder_of_data = tempfile::tempdir().expect("a folder");
    let data = folder_of_data.path();
    let server = serve_sealing(data, u64::MAX);
    folder(server.addresses()[0], "/a", "single");
    insert(server.addresses()[0], "/a", 1, (0, None), 1.0);
    server.seal().expect("a seal");
    drop(server);
    let segment = segments(data).pop().expect("a segment");
    let aside = data.join("aside");
    std::fs::rename(&segment, &aside).expect("a file");
    for (is_there, advice) in [(false, "restore all files"), (true, "start again")] {
        if is_there {
            std::fs::create_dir(&segment).expect("a folder");
        }
        let server = serve(data, None);
        let refused = get(server.addresses()[0], "/api/v1/find?folder=/a&t=1", &[]);
        let error = refused.json()["error"].as_str().expect("text").to_owned();
        assert!(refused.status == 500 && error.contains(advice), "{error}");
        assert_eq!(error.contains("backup"), !is_there, "{error}");
    }
    std::fs::remove_dir(&segment).expect("a folder");
    std::fs::rename(&aside, &segment).expect("a file");
    let server = serve(data, None);
    let found = get(server.addresses()[0], "/api/v1/find?folder=/a&t=1", &[]);
    assert_eq!(found.status, 200);
}

#[test]
fn what_a_deleted_tag_held_is_kept_until_a_seal_and_the_folder_goes_on() {
    let folder_of_data = tempfile::tempdir().expect("a folder");
    let data = folder_of_data.path();
    let server = serve_sealing(data, u64::MAX);
    fill(server.addresses()[0]);
    server.seal().expect("a seal");
    let before = segments(data);
    change(server.addresses()[0], "/tags/delete", &json!({ "name": "all" }));
    change(server.addresses()[0], "/tags/delete", &json!({ "name": "mine" }));
    drop(server);
    // The snapshot names what the tag held, whatever the journal says behind it.
    for _ in 0..2 {
        drop(serve_sealing(data, u64::MAX));
        assert_eq!(segments(data), before);
        let checked = check(data).expect("read");
        assert_eq!((checked.segments, checked.damaged.len()), (before.len(), 0));
    }
    let server = serve_sealing(data, u64::MAX);
    insert(server.addresses()[0], "/b", 3, (7, Some(9)), 1.0);
    server.seal().expect("a seal");
    // Those of a folder's tags are made last.
    let of_tag = before.last().expect("segments");
    assert!(!of_tag.exists());
}

#[test]
fn changes_are_refused_once_the_data_directory_is_removed_and_reads_go_on() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    folder(at, "/a", "single");
    insert(at, "/a", 1, (0, None), 1.0);
    std::fs::remove_dir_all(data.path()).expect("removed");
    let object = json!({ "channel": 1, "since": 10, "values": [2.0] });
    let body = json!({ "batches": [{ "folder": "/a", "objects": [object] }] }).to_string();
    for said in ["unknown whether", "nothing can be written"] {
        let refused =
            post(at, "/objects", &[("content-type", "application/json")], body.as_bytes());
        assert_eq!(refused.status, 503, "{refused:?}");
        let text = refused.json()["error"].as_str().expect("text").to_owned();
        assert!(text.contains(said) && text.contains("has been removed"), "{text}");
    }
    let found = get(at, "/api/v1/find?folder=/a&t=20", &[]);
    assert_eq!((found.status, &found.json()["objects"][0]["since"]), (200, &json!(0)));
}
