//! A backup of what several servers share, by the programs of PostgreSQL and of S3.

use serde_json::json;

use super::one::said;
use super::place::Place;
use crate::served::{ask, folder, get, insert, post};

#[test]
fn a_dump_with_the_objects_that_are_copied_after_it_is_a_whole_backup() {
    let Some(mut place) = Place::new() else { return };
    let (killed, at) = place.start("a", 1 << 20);
    let seal = || {
        let sealed = post(at, "/compact", &[("content-type", "application/json")], b"{}");
        assert_eq!(sealed.status, 200);
    };
    folder(at, "/a/b", "multi");
    let put = ask(at, "PUT", "/upload/k", &[("content-type", "application/octet-stream")], b"abc");
    assert_eq!(put.status, 201);
    insert(at, "/a/b", 1, (0, None), 0.5);
    seal();
    let last = insert(at, "/a/b", 1, (10, None), 1.5);
    let before = said(at, last);
    place.dump();
    // What comes meanwhile, and one seal, take nothing away from it.
    insert(at, "/a/b", 1, (20, None), 2.5);
    seal();
    place.copy_objects();
    insert(at, "/a/b", 1, (30, None), 3.5);
    drop(killed);

    place.restore();
    let checked = place.check();
    assert_eq!((&checked["damaged"], &checked["numbers"][0]), (&json!(""), &json!(last)));
    let (_killed, at) = place.start("restored", 1 << 20);
    assert!(said(at, last) == before);
    assert_eq!(get(at, "/dbstore/k", &[]).body, b"abc");
    assert_eq!(insert(at, "/a/b", 1, (20, None), 9.5), last + 1, "it goes on from there");
}
