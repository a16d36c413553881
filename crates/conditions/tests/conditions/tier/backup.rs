//! A backup of what several servers share, by the programs of PostgreSQL and of S3.

use std::net::SocketAddr;

use serde_json::json;

use super::one::said;
use super::place::Place;
use crate::served::{ask, folder, get, insert, post};

pub(super) fn seal(at: SocketAddr) {
    let sealed = post(at, "/compact", &[("content-type", "application/json")], b"{}");
    assert_eq!(sealed.status, 200, "{}", String::from_utf8_lossy(&sealed.body));
}

#[test]
fn a_dump_with_the_objects_that_are_copied_after_it_is_a_whole_backup() {
    let Some(mut place) = Place::new() else { return };
    let (killed, at) = place.start("a", 1 << 20);
    folder(at, "/a/b", "multi");
    let put = ask(at, "PUT", "/upload/k", &[("content-type", "application/octet-stream")], b"abc");
    assert_eq!(put.status, 201);
    insert(at, "/a/b", 1, (0, None), 0.5);
    seal(at);
    let last = insert(at, "/a/b", 1, (10, None), 1.5);
    let before = said(at, last);
    place.dump();
    // What comes meanwhile, and one seal, take nothing away from it.
    insert(at, "/a/b", 1, (20, None), 2.5);
    seal(at);
    place.copy_objects();
    insert(at, "/a/b", 1, (30, None), 3.5);
    drop(killed);

    place.restore();
    let checked = place.check();
    assert_eq!((&checked["damaged"], &checked["numbers"][0]), (&json!(""), &json!(last)));
    let (killed, at) = place.start("restored", 1 << 20);
    assert!(said(at, last) == before);
    assert_eq!(get(at, "/dbstore/k", &[]).body, b"abc");
    assert_eq!(insert(at, "/a/b", 1, (20, None), 9.5), last + 1, "it goes on from there");
    // Its own seals take the names of objects that were made after the dump.
    let before = said(at, last + 1);
    for since in [40, 50, 60] {
        let last = insert(at, "/a/b", 1, (since, None), 0.5);
        seal(at);
        assert_eq!(place.sealed(), i64::try_from(last).expect("a revision"));
    }
    assert!(said(at, last + 1) == before);
    drop(killed);
    let checked = place.check();
    assert_eq!((&checked["damaged"], &checked["numbers"][0]), (&json!(""), &json!(last + 4)));
    place.lose("restored");
    let (_killed, at) = place.start("restored", 1 << 20);
    assert!(said(at, last + 1) == before, "of what it has sealed itself");
    assert_eq!(get(at, "/dbstore/k", &[]).body, b"abc");
}
