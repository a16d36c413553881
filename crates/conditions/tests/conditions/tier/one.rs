//! One server, which may lose all that is on its own disk.

use std::fs;

use super::place::Place;
use crate::served::{ask, change, client, folder, get, insert, post};
use serde_json::json;

/// What a server says of some revisions, with the digests of slices.
pub(super) fn said(at: std::net::SocketAddr, last: u64) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for revision in (1..=last).step_by(last.div_ceil(8) as usize).chain([last]) {
        let browse = format!("/api/v1/browse?folder=/a/b&revision={revision}");
        all.push(get(at, &browse, &[]).body);
        let slice = get(at, &format!("/api/v1/slice/{revision}/15?under=/a"), &[]);
        assert_eq!(slice.status, 200, "{:?}", String::from_utf8_lossy(&slice.body));
        all.push(slice.header("etag").as_bytes().to_vec());
        all.push(slice.body);
    }
    all
}

#[test]
fn a_server_without_its_copies_answers_as_before() {
    let Some(place) = Place::new() else { return };
    let (killed, at) = place.start("a", 3_000);
    folder(at, "/a/b", "multi");
    let (mut number, mut last) = (0, 0);
    // Through two seals, and beyond.
    let (mut seals, mut more) = (Vec::new(), 0);
    while more < 10 {
        last = insert(at, "/a/b", number % 3, (u64::from(number), None), f64::from(number));
        number += 1;
        let sealed = place.sealed();
        if sealed > 0 && !seals.contains(&sealed) {
            seals.push(sealed);
        }
        more += u64::from(seals.len() > 2);
    }
    let tag = change(at, "/tags", &json!({ "name": "t", "path": "/a/b", "revision": last - 7 }));
    let content = vec![7_u8; 200_000];
    let put =
        ask(at, "PUT", "/upload/k", &[("content-type", "application/octet-stream")], &content);
    assert_eq!(put.status, 201, "{}", String::from_utf8_lossy(&put.body));
    let last = tag + 1;
    let before = said(at, last);
    drop(killed);
    place.lose("a");
    let (killed, at) = place.start("a", 3_000);
    assert!(said(at, last) == before, "without copies");
    assert!(get(at, "/dbstore/k", &[]).body == content);
    let tagged = client(at).get_json("/browse", &[("folder", "/a/b".into()), ("tag", "t".into())]);
    let there = client(at)
        .get_json("/browse", &[("folder", "/a/b".into()), ("revision", (tag - 8).to_string())]);
    assert_eq!(tagged.expect("an answer")["objects"], there.expect("an answer")["objects"]);

    // A copy that was damaged is fetched again, and so is one that was cut.
    drop(killed);
    let copies: Vec<_> = fs::read_dir(place.copies("a")).expect("a folder").collect();
    let copies: Vec<_> = copies.into_iter().map(|copy| copy.expect("a file").path()).collect();
    assert!(copies.len() >= 2, "{copies:?}");
    let mut bytes = fs::read(&copies[0]).expect("read");
    bytes[130] ^= 1;
    fs::write(&copies[0], bytes).expect("written");
    let bytes = fs::read(&copies[1]).expect("read");
    fs::write(&copies[1], &bytes[..bytes.len() / 2]).expect("written");
    let (killed, at) = place.start("a", 3_000);
    assert!(said(at, last) == before, "with damaged copies");
    drop(killed);
}

#[test]
fn a_damaged_segment_is_refused_with_its_folder_and_a_server_without_copies_serves_the_others() {
    let Some(place) = Place::new() else { return };
    let (killed, at) = place.start("a", 1 << 20);
    let json = [("content-type", "application/json")];
    let seal = || assert_eq!(post(at, "/compact", &json, b"{}").status, 200);
    for (path, versioning) in [("/a/many", "multi"), ("/a/one", "single")] {
        folder(at, path, versioning);
        insert(at, path, 1, (0, Some(10)), 0.5);
    }
    seal();
    let damaged = place.objects();
    assert!(damaged.len() >= 2, "{damaged:?}");
    folder(at, "/b", "multi");
    insert(at, "/b", 1, (0, None), 1.5);
    seal();
    // Groups that a start applies over what is damaged.
    for path in ["/a/many", "/a/one", "/b"] {
        insert(at, path, 1, (20, None), 2.5);
    }
    drop(killed);
    place.lose("a");
    damaged.iter().for_each(|name| place.put(name, b"no segment"));

    let (_killed, at) = place.start("a", 1 << 20);
    // Each twice, at once: the first ones that any of them is asked.
    for (path, expected) in [("/b", 200), ("/a/many", 500), ("/a/one", 500)].repeat(2) {
        let find = get(at, &format!("/api/v1/find?folder={path}&t=5"), &[]);
        assert_eq!(find.status, expected, "{path}: {}", String::from_utf8_lossy(&find.body));
        let object = json!({ "channel": 1, "since": 30, "until": 40, "values": [1] });
        let body = json!({ "batches": [{ "folder": path, "objects": [object] }] }).to_string();
        let inserted = post(at, "/objects", &json, body.as_bytes());
        let said = String::from_utf8_lossy(&inserted.body);
        assert_eq!(inserted.status, expected, "{path}: {said}");
    }
}

#[test]
fn what_is_sealed_is_compacted_once_and_then_there_is_nothing_to_do() {
    let Some(place) = Place::new() else { return };
    let (_killed, at) = place.start("a", 3_000);
    folder(at, "/a/b", "multi");
    let last = insert(at, "/a/b", 1, (0, None), 2.5);
    let before = said(at, last);
    let compact = || {
        let answer = post(at, "/compact", &[("content-type", "application/json")], b"{}");
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        serde_json::from_slice::<serde_json::Value>(&answer.body).expect("JSON")
    };
    let (first, again) = (compact(), compact());
    assert_eq!(first["segments"], again["segments_before"]);
    assert_eq!(again["segments_before"], again["segments"]);
    // What comes then is sealed by the next one.
    let last = insert(at, "/a/b", 2, (0, None), 3.5).max(last);
    assert!(compact()["segments"].as_u64() > Some(0));
    assert!(said(at, last - 1) == before);
    let ahead = (last + 1).to_string();
    let seen = |seen: &str| get(at, "/api/v1/folders", &[("conditions-revision", seen)]).status;
    assert_eq!([seen(&last.to_string()), seen(&ahead), seen("x")], [200, 404, 400]);
}

#[test]
fn without_postgresql_known_revisions_are_served_and_changes_refused() {
    let Some(mut place) = Place::new() else { return };
    let (_killed, at) = place.start("a", 3_000);
    folder(at, "/a/b", "multi");
    let last = insert(at, "/a/b", 1, (0, None), 2.5);
    let before = said(at, last);
    let object = json!({ "channel": 1, "since": 5, "values": [1] });
    let body = json!({ "batches": [{ "folder": "/a/b", "objects": [object] }] }).to_string();
    place.end_postgres();
    // Its processes end one after another: until then a change may be made.
    let json = [("content-type", "application/json")];
    let refused = (0..1_000).map(|_| post(at, "/objects", &json, body.as_bytes()));
    let refused = refused.map(|one| one.status).find(|status| *status != 200);
    assert_eq!(refused, Some(503));
    assert!(said(at, last) == before, "what was known");
    let unknown = format!("/api/v1/browse?folder=/a/b&revision={}", last + 2_000);
    assert_eq!(get(at, &unknown, &[]).status, 503);
}

#[test]
fn a_database_and_a_bucket_that_are_not_of_each_other_are_refused() {
    let Some(place) = Place::new() else { return };
    drop(place.start("a", 3_000));
    let mut client = place.postgres();
    client.batch_execute("UPDATE conditions_head SET store = 'another'").expect("a change");
    let said = place.refused("b");
    assert!(said.contains("another store than --metadata"), "{said}");
    client.batch_execute("UPDATE conditions_head SET version = 999").expect("a change");
    let said = place.refused("b");
    assert!(said.contains("its tables are of version 999"), "{said}");
}

#[test]
fn what_is_shared_is_whole_and_a_changed_segment_and_a_missing_group_are_named() {
    let Some(place) = Place::new() else { return };
    let (killed, at) = place.start("a", 3_000);
    folder(at, "/a", "multi");
    let mut number = 0;
    while place.sealed() == 0 {
        insert(at, "/a", number % 3, (u64::from(number), None), f64::from(number));
        number += 1;
    }
    let put = ask(at, "PUT", "/upload/k", &[("content-type", "application/octet-stream")], b"abc");
    assert_eq!(put.status, 201);
    let last = insert(at, "/a", 1, (1_000, None), 0.5);
    drop(killed);
    let checked = place.check();
    assert_eq!((&checked["damaged"], &checked["files"]), (&json!(""), &json!(1)));
    let numbers: Vec<u64> = serde_json::from_value(checked["numbers"].clone()).expect("numbers");
    assert!(numbers[0] == last && numbers.iter().all(|number| *number > 0), "{checked}");
    let damaged = || place.check()["damaged"].as_str().expect("text").to_owned();

    let name = &place.objects()[0];
    let copy = place.copies("a").join(name.rsplit('/').next().expect("a name"));
    let segment = fs::read(copy).expect("a copy");
    let mut changed = segment.clone();
    let middle = changed.len() - 10;
    changed[middle] ^= 1;
    place.put(name, &changed);
    let said = damaged();
    assert!(said.contains(".segment"), "{said}");
    place.put(name, &segment[1..]);
    let said = damaged();
    assert!(said.contains("of another size"), "{said}");
    place.put(name, &segment);
    assert_eq!(damaged(), "");
    let last = "(SELECT max(first) FROM conditions_groups)";
    let gone = format!("DELETE FROM conditions_groups WHERE first = {last}");
    place.postgres().batch_execute(&gone).expect("deleted");
    let said = damaged();
    assert!(said.contains("are missing"), "{said}");
}
