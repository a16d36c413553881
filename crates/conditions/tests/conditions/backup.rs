//! Copies of data directories whose servers go on.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use conditions::server::{backup, check};

use crate::served::{client, folder, get, insert, serve, serve_sealing};

const WRITERS: u32 = 4;

/// How many objects each channel of a folder has; the n-th is [n, n + 1) with the value n.
fn counts(data: &Path) -> BTreeMap<u32, usize> {
    let server = serve(data, None);
    let asked = [("folder", "/f".to_owned())];
    let client = client(server.addresses()[0]);
    let found = client.get_json("/browse", &asked).expect("an answer");
    let mut counts = BTreeMap::new();
    for object in found["objects"].as_array().expect("a list") {
        let channel = object["channel"].as_u64().expect("a number") as u32;
        let count = counts.entry(channel).or_insert(0);
        assert_eq!(object["since"], serde_json::json!(count));
        assert_eq!(object["records"], serde_json::json!([[*count as f64]]));
        *count += 1;
    }
    counts
}

#[test]
fn a_backup_holds_the_changes_through_one_revision_while_insertions_and_seals_go_on() {
    let folders = tempfile::tempdir().expect("a folder");
    let data = folders.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    // Sealing is under way most of the time.
    let server = serve_sealing(&data, 2_000);
    let at = server.addresses()[0];
    folder(at, "/f", "single");
    let (acknowledged, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let last = AtomicU64::new(1);
    let copies: Vec<_> = std::thread::scope(|scope| {
        for channel in 0..WRITERS {
            let (acknowledged, is_over, last) = (&acknowledged, &is_over, &last);
            scope.spawn(move || {
                for n in 0.. {
                    let revision = insert(at, "/f", channel, (n, Some(n + 1)), n as f64);
                    acknowledged.lock().expect("whole").push((revision, channel));
                    last.fetch_max(revision, Relaxed);
                    if is_over.load(Relaxed) {
                        break;
                    }
                }
            });
        }
        let copies = (0..8).map(|number| {
            // Some have come since the last one.
            let before = last.load(Relaxed);
            while last.load(Relaxed) < before + 20 {
                std::thread::yield_now();
            }
            let (begun, out) = (last.load(Relaxed), folders.path().join(number.to_string()));
            let made = backup(&data, &out, &mut |_| {}).expect("a copy");
            (out, begun, made.checked.journal.last)
        });
        let copies = copies.collect();
        is_over.store(true, Relaxed);
        copies
    });
    drop(server);
    let acknowledged = acknowledged.into_inner().expect("whole");
    for (out, begun, through) in copies {
        assert!(begun <= through, "{begun} was acknowledged, and it has {through}");
        let mut expected = BTreeMap::new();
        for (_, channel) in acknowledged.iter().filter(|(revision, _)| *revision <= through) {
            *expected.entry(*channel).or_insert(0) += 1;
        }
        assert_eq!(counts(&out), expected);
        assert_eq!(check(&out).expect("read").damaged, Vec::<String>::new());
    }
}

#[test]
fn what_a_seal_removes_while_it_is_copied_is_in_the_backup_and_a_broken_one_is_none() {
    let folders = tempfile::tempdir().expect("a folder");
    let data = folders.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    let server = serve_sealing(&data, u64::MAX);
    let at = server.addresses()[0];
    let names = ["/a", "/b", "/c"];
    for name in names {
        folder(at, name, "single");
        insert(at, name, 1, (0, None), 1.0);
    }
    server.seal().expect("sealed");
    let [whole, broken] = ["whole", "broken"].map(|name| folders.path().join(name));
    let mut is_first = true;
    let made = backup(&data, &whole, &mut |copied| {
        if std::mem::take(&mut is_first) {
            assert!(copied.bytes < copied.of_bytes);
            for name in names {
                insert(at, name, 1, (10, None), 2.0);
            }
            server.seal().expect("sealed");
        }
    });
    let made = made.expect("a copy");
    assert_eq!(
        (made.checked.journal.last, made.checked.segments),
        (9, 3),
        "the journal is copied last"
    );
    assert!(0 < made.linked_bytes && made.linked_bytes < made.bytes, "{made:?}");
    let again = backup(&data, &whole, &mut |_| {}).expect_err("it is there").to_string();
    assert!(again.contains("name a new one"), "{again}");
    let none = backup(&folders.path().join("no"), &broken, &mut |_| {}).expect_err("no data");
    assert!(none.to_string().contains("no data directory") && !broken.exists(), "{none}");
    let crash = || backup(&data, &broken, &mut |_| panic!("as a crash"));
    assert!(catch_unwind(AssertUnwindSafe(crash)).is_err());
    let refused = check(&broken).expect_err("not whole").to_string();
    assert!(refused.contains("did not come to its end"), "{refused}");
    let again = backup(&data, &broken, &mut |_| {}).expect_err("it is there").to_string();
    assert!(again.contains("did not come to its end: remove it"), "{again}");
    drop(server);
    let server = serve(&whole, None);
    for name in names {
        let found = get(server.addresses()[0], &format!("/api/v1/find?folder={name}&t=20"), &[]);
        assert_eq!(found.json()["objects"][0]["since"], 10, "{name}");
    }
}

#[test]
fn a_backup_that_fails_leaves_nothing_and_can_be_made_again_under_its_name() {
    let folders = tempfile::tempdir().expect("a folder");
    let [data, out] = ["data", "out"].map(|name| folders.path().join(name));
    std::fs::create_dir(&data).expect("a folder");
    let server = serve_sealing(&data, u64::MAX);
    folder(server.addresses()[0], "/a", "single");
    insert(server.addresses()[0], "/a", 1, (0, None), 1.0);
    server.seal().expect("sealed");
    drop(server);
    let segment = std::fs::read_dir(data.join("segments")).expect("a folder").next();
    let segment = segment.expect("one").expect("a file").path();
    let whole = std::fs::read(&segment).expect("read");
    // A new file: what is mapped or linked keeps its bytes.
    let write = |bytes: &[u8]| {
        std::fs::remove_file(&segment).expect("removed");
        std::fs::write(&segment, bytes).expect("written");
    };
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    write(&damaged);
    for _ in 0..2 {
        backup(&data, &out, &mut |_| {}).expect_err("damaged");
        assert!(!out.exists());
    }
    write(&whole);
    let made = backup(&data, &out, &mut |_| {}).expect("a copy");
    assert_eq!(made.checked.segments, 1);
}
