//! A store on a faulty disk: whatever fails and whenever, what was acknowledged is there
//! afterwards, and what is damaged is named and never served.

use std::sync::Arc;

use journal::{FaultyDisk, SyncPolicy};

use super::segments::Segments;
use super::store::Store;
use crate::model::{
    Batch, Change, ColumnSpec, Kind, MAX_TIME, Object, Order, Refusal, Selection, Table, Value,
    Version, Versioning, segment_id,
};

const FOLDERS: [&str; 2] = ["/a", "/b"];

fn open(disk: &FaultyDisk) -> anyhow::Result<Store> {
    open_synced(disk, SyncPolicy::Always)
}

fn open_synced(disk: &FaultyDisk, sync: SyncPolicy) -> anyhow::Result<Store> {
    let disk = Arc::new(disk.clone());
    Store::open_on(disk.clone(), Segments::in_memory(disk), (u64::MAX, u64::MAX), sync)
}

pub(super) fn make(store: &Store, change: Change) -> Result<u64, String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let bytes = change.encode();
    runtime.block_on(store.writer().make(change, bytes, None)).map_err(|why| why.to_string())
}

pub(super) fn folder(store: &Store, path: &str) -> Result<u64, String> {
    let columns = vec![ColumnSpec { name: "value".to_owned(), kind: Kind::Uint64 }];
    let (path, description) = (path.to_owned(), String::new());
    make(store, Change::CreateFolder { path, description, versioning: Versioning::Single, columns })
}

/// The object [10 n, open) with the value n, which ends the one before.
pub(super) fn insert(store: &Store, path: &str, n: u64) -> Result<u64, String> {
    let mut payload = Table::new([Kind::Uint64]);
    payload.columns[0].push(&Value::Integer(n.into())).expect("a number");
    payload.rows = 1;
    let object = Object { channel: 7, since: 10 * n, until: MAX_TIME, records: 1 };
    let (folder, objects) = (path.to_owned(), vec![object]);
    let batch = Batch { folder, tag: None, only_tag: false, objects, payload };
    make(store, Change::Insert(vec![batch]))
}

/// How many objects there are; each is where it should be, with its value, now and in the past.
pub(super) fn count(store: &Store, path: &str) -> Result<u64, Refusal> {
    let state = store.shared();
    let state = state.read();
    let Ok(folder) = state.folder(path) else { return Ok(0) };
    let version = Version { revision: state.revision(), user_tag: None };
    let found = folder.browse((0, MAX_TIME), &Selection::default(), Order::Time, version)?;
    let count = found.objects.len() as u64;
    for (n, object) in found.objects.iter().enumerate() {
        assert_eq!(object.since, 10 * n as u64);
        let until = if n as u64 + 1 == count { MAX_TIME } else { object.since + 10 };
        assert_eq!(object.until, until);
        assert_eq!(found.payload.columns[0].value(n), Value::Integer(n as i128));
        // Before the next one came it was open.
        let why = state.explain(path, 7, object.since, version)?.expect("it is shown");
        let then = Version { revision: why.revision, user_tag: None };
        let found = folder.find(MAX_TIME - 1, &Selection::default(), then)?;
        assert_eq!(found.payload.columns[0].value(0), Value::Integer(n as i128));
    }
    Ok(count)
}

/// Inserts and seals until something fails; returns how much was acknowledged in each folder.
fn work(disk: &FaultyDisk, seals: &mut u64) -> [u64; 2] {
    let mut known = [0; 2];
    let Ok(store) = open(disk) else { return known };
    for n in 0..8 {
        for (place, path) in FOLDERS.into_iter().enumerate() {
            let made = if n == 0 { folder(&store, path) } else { Ok(0) };
            if made.is_err() || insert(&store, path, n).is_err() {
                return known;
            }
            known[place] = n + 1;
        }
        if n % 3 == 1 {
            // Whether it fails or not, changes go on.
            *seals += u64::from(store.seal().is_ok());
        }
    }
    known
}

fn check(disk: &FaultyDisk, known: [u64; 2], what: &str) {
    let store = open(disk).unwrap_or_else(|why| panic!("{what}: {why}"));
    let there = FOLDERS.map(|path| count(&store, path).expect("nothing is damaged"));
    for (there, known) in there.into_iter().zip(known) {
        assert!((known..=known + 1).contains(&there), "{what}: {there} objects, {known} known");
    }
    // It goes on, over what was found.
    if there[0] > 0 {
        insert(&store, FOLDERS[0], there[0]).expect("a change");
        store.seal().expect("a seal");
        assert_eq!(count(&store, FOLDERS[0]), Ok(there[0] + 1), "{what}");
        drop(store);
        let store = open(&disk.after_kill()).expect("a store");
        assert_eq!(count(&store, FOLDERS[0]), Ok(there[0] + 1), "{what}");
    }
}

#[test]
fn what_was_acknowledged_is_there_after_a_loss_of_power_at_any_call() {
    let (disk, mut seals) = (FaultyDisk::default(), 0);
    assert_eq!((work(&disk, &mut seals), seals), ([8, 8], 3));
    let calls = disk.calls();
    for after in (0..calls).step_by(5) {
        let disk = FaultyDisk::default();
        disk.lose_power_after(after);
        let known = work(&disk, &mut 0);
        for seed in 0..3 {
            let what = format!("power lost after {after} calls, seed {seed}");
            check(&disk.after_power_loss(seed), known, &what);
        }
        check(&disk.after_kill(), known, &format!("killed after {after} calls"));
    }
}

#[test]
fn a_failed_fsync_or_a_full_disk_loses_nothing_that_was_acknowledged() {
    for syncs in 0..30 {
        let disk = FaultyDisk::default();
        disk.fail_sync_after(syncs);
        disk.shorten_writes(syncs);
        let known = work(&disk, &mut 0);
        check(&disk.after_power_loss(syncs), known, &format!("fsync {syncs} failed"));
    }
    let disk = FaultyDisk::default();
    let store = open(&disk).expect("a store");
    folder(&store, "/a").expect("a folder");
    insert(&store, "/a", 0).expect("a change");
    // None at all: a log that ends gives back the zeros that were written ahead of it.
    disk.set_room(Some(0));
    assert!(store.seal().is_err(), "there is no room for a segment");
    assert_eq!(count(&store, "/a"), Ok(1));
    disk.set_room(None);
    // The journal tries again by itself; until then it takes nothing.
    while insert(&store, "/a", 1).is_err() {}
    store.seal().expect("there is room again");
    assert_eq!(count(&store, "/a"), Ok(2));
    drop(store);
    assert_eq!(count(&open(&disk).expect("a store"), "/a"), Ok(2));
}

#[test]
fn what_need_not_be_on_the_disk_is_answered_without_and_survives_a_kill() {
    for (sync, is_made) in [(SyncPolicy::Always, false), (SyncPolicy::Never, true)] {
        let disk = FaultyDisk::default();
        let store = open_synced(&disk, sync).expect("a store");
        folder(&store, "/a").expect("a folder");
        disk.fail_sync_after(0);
        assert_eq!(insert(&store, "/a", 0).is_ok(), is_made, "{sync:?}");
        if is_made {
            let store = open(&disk.after_kill()).expect("a store");
            assert_eq!(count(&store, "/a"), Ok(1));
        }
    }
}

#[test]
fn a_seal_whose_snapshot_has_no_room_leaves_no_segments() {
    let (disk, folder_of_segments) = (FaultyDisk::default(), FaultyDisk::default());
    let in_memory = Segments::in_memory(Arc::new(folder_of_segments.clone()));
    let (disk_too, never) = (Arc::new(disk.clone()), (u64::MAX, u64::MAX));
    let store = Store::open_on(disk_too, in_memory, never, SyncPolicy::Always);
    let store = store.expect("a store");
    folder(&store, "/a").expect("a folder");
    insert(&store, "/a", 0).expect("a change");
    // Of a snapshot as small as this one everything is written at its end.
    disk.set_room(Some(0));
    assert!(store.seal().is_err(), "there is no room for the snapshot");
    assert_eq!(segments(&folder_of_segments), [""; 0], "it can't count");
    disk.set_room(None);
    while insert(&store, "/a", 1).is_err() {}
    store.seal().expect("there is room again");
    assert_eq!(segments(&folder_of_segments).len(), 1);
    assert_eq!(count(&store, "/a"), Ok(2));
}

#[test]
fn a_segment_that_is_written_over_is_named_and_never_copied_into_another() {
    // In its payload, and in its index.
    for (at, change) in [(None, 1), (Some(150), 1), (Some(150), 255)] {
        let data = tempfile::tempdir().expect("a folder");
        // Without whoever looks for what is written to files.
        let store = Store::open(data.path(), u64::MAX, SyncPolicy::Always).expect("a store");
        folder(&store, "/a").expect("a folder");
        (0..40).for_each(|n| _ = insert(&store, "/a", n).expect("a change"));
        store.seal().expect("a seal");
        assert_eq!(count(&store, "/a"), Ok(40), "all of it was read, and found right");
        let files: Vec<_> =
            std::fs::read_dir(data.path().join("segments")).expect("there").collect();
        assert_eq!(files.len(), 1);
        let path = files[0].as_ref().expect("a file").path();
        let bytes = std::fs::read(&path).expect("read");
        let at = at.unwrap_or(bytes.len() - 4);
        let file = std::fs::OpenOptions::new().write(true).open(&path).expect("opened");
        let written = std::os::unix::fs::FileExt::write_all_at;
        written(&file, &[bytes[at] ^ change], at as u64).expect("written");
        // It ends the last one: its payload is copied into what comes.
        insert(&store, "/a", 40).expect("a change");
        let why = store.seal().expect_err("it is damaged");
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(why.contains(name), "{at}: {why}");
        assert!(count(&store, "/a").is_err(), "{at}: it is served by now");
        drop(file);
    }
}

/// The segments that there are.
pub(super) fn segments(disk: &FaultyDisk) -> Vec<String> {
    let names = journal::Disk::list(disk).expect("names");
    names.into_iter().filter(|name| segment_id(name).is_some()).collect()
}

#[test]
fn what_is_damaged_is_named_and_refused_and_all_else_is_served() {
    let whole = FaultyDisk::default();
    let store = open(&whole).expect("a store");
    for path in FOLDERS {
        folder(&store, path).expect("a folder");
        for n in 0..3 {
            insert(&store, path, n).expect("a change");
        }
    }
    store.seal().expect("a seal");
    // What is not sealed yet.
    insert(&store, "/b", 3).expect("a change");
    drop(store);
    let names = segments(&whole);
    assert_eq!(names.len(), 2, "a block for each folder, with what was cut: {names:?}");
    for name in &names {
        let bytes = whole.bytes(name).expect("a file");
        for at in (0..=bytes.len()).step_by(3) {
            let disk = whole.after_kill();
            let mut bytes = bytes.clone();
            match bytes.get_mut(at) {
                Some(byte) => *byte ^= 1,
                None => bytes.truncate(at - 1),
            }
            disk.put(name, &bytes);
            let store = open(&disk).expect("it starts all the same");
            let counts = FOLDERS.map(|path| count(&store, path));
            let (damaged, place): (Vec<_>, Vec<_>) = counts
                .iter()
                .enumerate()
                .filter_map(|(place, count)| Some((count.clone().err()?, place)))
                .unzip();
            let [Refusal::Damaged(damage)] = &damaged[..] else {
                panic!("byte {at} of {name}: {counts:?}")
            };
            assert_eq!(&damage.file, name, "byte {at}");
            assert!(damage.offset <= at as u64, "byte {at}: {damage}");
            let other = 1 - place[0];
            assert_eq!(counts[other], Ok(3 + other as u64));
            // Its index may be whole, and only what it holds may be not: that is known later.
            if !store.shared().read().damages(false).is_empty() {
                let refused = insert(&store, FOLDERS[place[0]], 9).expect_err("it is unknown");
                assert!(refused.contains(name.as_str()), "{refused}");
            }
            insert(&store, FOLDERS[other], 3 + other as u64).expect("a change elsewhere");
        }
    }
}
