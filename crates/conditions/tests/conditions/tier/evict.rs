//! A server whose disk has room for less than all segments.

use std::fs;
use std::net::SocketAddr;

use serde_json::json;

use super::backup::seal;
use super::place::Place;
use crate::served::{Said, change, folder, get, insert, post};

const FOLDERS: u64 = 8;

/// The channels of a folder, each with a text of 1,000 bytes.
const CHANNELS: u64 = 40;

fn path(folder: u64) -> String {
    format!("/a/f{folder}")
}

/// Makes folders with objects, of which a segment each is sealed.
fn fill(at: SocketAddr) -> u64 {
    let columns = json!([{ "name": "value", "kind": "string" }]);
    for n in 0..FOLDERS {
        let folder = json!({ "path": path(n), "versioning": "multi", "columns": columns });
        change(at, "/folders", &folder);
        let object = |channel: u64| {
            let value = format!("{n} {channel} ").repeat(300);
            json!({ "channel": channel, "since": 10 * n, "values": [&value[..1_000]] })
        };
        let objects: Vec<_> = (0..CHANNELS).map(object).collect();
        change(at, "/objects", &json!({ "batches": [{ "folder": path(n), "objects": objects }] }));
    }
    let tag = change(at, "/tags", &json!({ "name": "t", "path": "/a" }));
    seal(at);
    tag
}

/// The questions that need payload, of all kinds.
fn questions(revision: u64) -> Vec<String> {
    let api = "/api/v1";
    let of_folder = |n: u64| {
        let folder = path(n);
        [
            format!("{api}/find?folder={folder}&t=100&revision={revision}"),
            format!("{api}/browse?folder={folder}&channels=3-9"),
            format!("{api}/count?folder={folder}&where=value!=x"),
            format!("{api}/explain?folder={folder}&t=100"),
            format!("{api}/slice?t=100&under={folder}&redirect=false"),
            format!("{api}/slice/{revision}/100?under={folder}&format=binary"),
            format!("{api}/export?under={folder}&format=csv"),
            format!("/page/folder?folder={folder}"),
            format!("/page/at?under={folder}&t=100"),
        ]
    };
    let whole = ["jsonl", "binary"].map(|form| format!("{api}/export?under=/a&format={form}"));
    let diff = [format!("{api}/diff?under={}&to_revision=1", path(0))];
    (0..FOLDERS).flat_map(of_folder).chain(whole).chain(diff).collect()
}

fn ask(at: SocketAddr, question: &str) -> Said {
    get(at, question, &[])
}

fn said(answer: &Said) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

#[test]
fn a_disk_that_is_smaller_than_the_data_answers_every_question_rightly() {
    let Some(place) = Place::new() else { return };
    let (killed, at) = place.start("large", 1 << 20);
    let revision = fill(at);
    let questions = questions(revision);
    let expected: Vec<_> = questions.iter().map(|question| ask(at, question)).collect();
    drop(killed);
    let names = place.objects();
    assert_eq!(names.len() as u64, FOLDERS);
    let sizes: Vec<_> = names.iter().map(|name| place.object(name).len() as u64).collect();
    let most = sizes.iter().sum::<u64>() / 2;
    let used = |copies: &str| -> u64 {
        let files = fs::read_dir(place.copies(copies)).expect("a folder");
        files.map(|file| file.expect("a file").metadata().expect("there").len()).sum()
    };
    // One starts without any copy, the other with more than it may have.
    for copies in ["small", "large"] {
        let (killed, at) = place.start_within(copies, most);
        assert!(used(copies) <= most, "{} of {most} bytes", used(copies));
        for (question, expected) in questions.iter().zip(&expected) {
            let answer = ask(at, question);
            let is_same = (answer.status, &answer.body) == (expected.status, &expected.body);
            assert!(is_same, "{question}: {} {}", answer.status, said(&answer));
            assert!(used(copies) <= most, "{question}: {} of {most} bytes", used(copies));
        }
        let post = |n: u64| {
            let form = [("content-type", "application/x-www-form-urlencoded")];
            post(at, "/browse", &form, format!("folder={}&channels=3-9", path(n)).as_bytes())
        };
        for n in 0..FOLDERS {
            let browse = questions
                .iter()
                .position(|one| one.contains(&format!("browse?folder={}&", path(n))));
            assert_eq!(post(n).body, expected[browse.expect("asked")].body);
        }
        let too_much = ask(at, &format!("/api/v1/slice/{revision}/100?under=/a"));
        assert_eq!(too_much.status, 503, "{}", said(&too_much));
        assert!(said(&too_much).contains("--cache-size lets"), "{}", said(&too_much));
        // All at once, each of several at once.
        std::thread::scope(|scope| {
            for (question, expected) in questions.iter().zip(&expected).take(24) {
                scope.spawn(move || {
                    // What others read takes the room, for a while.
                    let answers = std::iter::repeat_with(|| ask(at, question));
                    let answer = answers.take(1_000).find(|answer| answer.status != 503);
                    assert_eq!(answer.expect("an answer").body, expected.body, "{question}");
                });
            }
        });
        drop(killed);
    }

    // It is sealed, too: what is read for that is fetched, and what is written has room.
    let (killed, at) = place.start_within("small", most);
    for n in 0..FOLDERS {
        let object = json!({ "channel": 1, "since": 500, "values": ["new"] });
        change(at, "/objects", &json!({ "batches": [{ "folder": path(n), "objects": [object] }] }));
    }
    seal(at);
    assert!(used("small") <= most, "{} of {most} bytes", used("small"));
    let pinned = questions.iter().zip(&expected);
    let pinned = pinned.filter(|(question, _)| question.contains("/find"));
    for (question, expected) in pinned {
        assert_eq!(ask(at, question).body, expected.body, "{question}");
    }
    drop(killed);
    assert_eq!(place.check()["damaged"], json!(""));
}

#[test]
fn a_segment_that_cannot_be_fetched_is_named_and_refused_until_it_can() {
    let Some(place) = Place::new() else { return };
    let (killed, at) = place.start("large", 1 << 20);
    let revision = fill(at);
    drop(killed);
    let names = place.objects();
    let bytes = place.object(&names[0]);
    let (_killed, at) = place.start_within("small", 3 * bytes.len() as u64);
    let all = [
        format!("/api/v1/find?folder={}&t=100", path(0)),
        format!("/api/v1/slice/{revision}/100?under={}", path(0)),
        format!("/api/v1/slice/{revision}/100?under=/a"),
        format!("/api/v1/export?under={}", path(0)),
        format!("/page/at?under={}&t=100", path(0)),
    ];
    let other = format!("/api/v1/find?folder={}&t=100", path(1));
    let name = names[0].rsplit('/').next().expect("a name");
    let mut damaged = bytes.clone();
    damaged[bytes.len() - 100] ^= 1;
    for spoil in [None, Some(&damaged)] {
        // All others are read, so that it is evicted.
        for n in 1..FOLDERS {
            let question = format!("/api/v1/find?folder={}&t=100", path(n));
            assert_eq!(ask(at, &question).status, 200, "{question}");
        }
        match spoil {
            None => place.delete(&names[0]),
            Some(damaged) => place.put(&names[0], damaged),
        }
        for question in &all {
            let answer = ask(at, question);
            assert_eq!(answer.status, 503, "{question}: {}", said(&answer));
            let whole = question.contains("under=/a&") || question.ends_with("under=/a");
            assert!(whole || said(&answer).contains(name), "{question}: {}", said(&answer));
        }
        assert_eq!(ask(at, &other).status, 200);
        // What takes no payload is answered.
        let count = format!("/api/v1/count?folder={}", path(0));
        assert_eq!(ask(at, &count).json()["objects"], json!(CHANNELS));
        place.put(&names[0], &bytes);
        let found = ask(at, &all[0]);
        assert_eq!(
            (found.status, found.json()["objects"].as_array().map(Vec::len)),
            (200, Some(40))
        );
    }
    folder(at, "/b", "multi");
    assert_eq!(insert(at, "/b", 1, (0, None), 0.5), revision + 2);
}
