//! Two servers among clients of both, of which one is killed now and then, while their connections
//! to PostgreSQL are broken: no wrong answer, and nothing lost that was acknowledged.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use super::one::said;
use super::place::Place;
use crate::kill::Killed;
use crate::served::{folder, try_ask};

const CLIENTS: u32 = 4;
const KILLS: usize = 6;
/// Insertions between two kills.
const BETWEEN: u64 = 60;
/// So small that one of them seals most of the time.
const SEAL_AFTER: u64 = 2_000;

type Servers = [Mutex<(Option<Killed>, SocketAddr)>; 2];

fn at(servers: &Servers, which: usize) -> SocketAddr {
    servers[which].lock().expect("whole").1
}

/// The objects of a channel, at a server that knows at least this revision; `None` where the server
/// can't say. The n-th has to be [n, n + 1) with the value n.
fn count(at: SocketAddr, channel: u32, seen: u64, pinned: bool) -> Option<u64> {
    let revision = if pinned { format!("&revision={seen}") } else { String::new() };
    let path = format!("/api/v1/browse?folder=/a/b&channels={channel}{revision}");
    let has_seen = ("conditions-revision", &*seen.to_string());
    let answer = try_ask(at, "GET", &path, &[has_seen], &[]);
    let answer = answer.filter(|answer| answer.status == 200)?;
    let known: u64 = answer.header("conditions-revision").parse().expect("a revision");
    assert!(known >= seen, "revision {known} is older than {seen}");
    let objects = answer.json()["objects"].as_array().expect("a list").clone();
    for (number, object) in objects.iter().enumerate() {
        assert_eq!(object["since"], json!(number), "channel {channel} has a gap");
        assert_eq!(object["records"], json!([[number as f64]]));
    }
    Some(objects.len() as u64)
}

/// One client: inserts the next object at either server, and reads at the other one what it has
/// inserted. Returns how many were acknowledged, of how many that may be there.
fn work(servers: &Servers, channel: u32, made: &AtomicU64, ends: &AtomicBool) -> (u64, u64) {
    let mut random = SmallRng::seed_from_u64(u64::from(channel) + 11);
    // What is there for sure, with the last revision that was seen.
    let (mut there, mut seen, mut is_sure) = (0_u64, 0_u64, true);
    while !ends.load(Relaxed) || !is_sure {
        let which = random.random_range(0..2);
        let other = at(servers, 1 - which);
        if !is_sure {
            // Whether the last one was made: any server that answers knows.
            let Some(found) = count(other, channel, seen, false) else { continue };
            assert!((there..=there + 1).contains(&found), "{found} of {there} objects");
            // It may still be made after this: then the next insertion is refused.
            (there, is_sure) = (found, true);
        }
        let object = json!({
            "channel": channel, "since": there, "until": there + 1, "values": [there],
        });
        let body = json!({ "batches": [{ "folder": "/a/b", "objects": [object] }] }).to_string();
        let server = at(servers, which);
        let json = [("content-type", "application/json")];
        let answer = try_ask(server, "POST", "/api/v1/objects", &json, body.as_bytes());
        let Some(answer) = answer else {
            is_sure = false;
            continue;
        };
        match answer.status {
            200 => {
                let revision = answer.json()["revision"].as_u64().expect("a revision");
                assert!(revision > seen);
                (there, seen) = (there + 1, revision);
                made.fetch_add(1, Relaxed);
                for pinned in [false, true] {
                    let found = count(other, channel, seen, pinned);
                    assert!(found.is_none_or(|found| found == there), "{found:?} of {there}");
                }
            }
            // The one whose answer was lost is there after all, or it isn't known.
            409 | 503 => is_sure = false,
            status => panic!("{status}: {}", String::from_utf8_lossy(&answer.body)),
        }
    }
    (there, seen)
}

#[test]
fn one_of_two_servers_is_killed_and_nothing_is_lost_or_wrong() {
    let Some(place) = Place::new() else { return };
    let start = |name: &str| place.start(name, SEAL_AFTER);
    let servers: Servers = ["a", "b"].map(|name| {
        let (killed, at) = start(name);
        Mutex::new((Some(killed), at))
    });
    folder(at(&servers, 0), "/a/b", "single");
    let (made, ends) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut random = SmallRng::seed_from_u64(5);
    let mut postgres = place.postgres();
    let sums = std::thread::scope(|scope| {
        let (servers, made, ends) = (&servers, &made, &ends);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|channel| scope.spawn(move || work(servers, channel, made, ends)))
            .collect();
        for kill in 0..KILLS {
            let enough = made.load(Relaxed) + BETWEEN;
            while made.load(Relaxed) < enough {
                assert!(!clients.iter().any(|client| client.is_finished()), "a client has failed");
                // All sessions end at any point of what they do.
                let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                           WHERE application_name = 'loadline conditions' AND random() < 0.01";
                postgres.query(end, &[]).expect("an answer");
            }
            let which = random.random_range(0..2);
            let name = ["a", "b"][which];
            drop(servers[which].lock().expect("whole").0.take());
            if kill % 2 == 0 {
                place.lose(name);
            }
            let (killed, at) = start(name);
            *servers[which].lock().expect("whole") = (Some(killed), at);
        }
        ends.store(true, Relaxed);
        clients.into_iter().map(|client| client.join().expect("no failure")).collect::<Vec<_>>()
    });
    let last = sums.iter().map(|(_, seen)| *seen).max().unwrap_or(0);
    for which in 0..2 {
        for (channel, (there, _)) in sums.iter().enumerate() {
            let found = count(at(&servers, which), channel as u32, last, false);
            assert_eq!(found, Some(*there), "channel {channel} at server {which}");
        }
    }
    assert!(said(at(&servers, 0), last) == said(at(&servers, 1), last), "they differ");
    let sealed = place.sealed();
    assert!(sealed > 0, "nothing was sealed");
    println!("{last} revisions, sealed through {sealed}, {} segments", place.objects().len());
}
