//! A store whose seals, readers or clients are held up: what waits is limited, and whatever ends
//! badly, the rest goes on.

use std::any::Any;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use journal::{Disk, DiskFile, FaultyDisk, SyncPolicy};

use super::crash::{count, folder, insert, make, segments};
use super::log::{Followed, Log, NewBase, NotWritten};
use super::segments::Segments;
use super::shared::Shared;
use super::store::Store;
use crate::model::{
    Batch, Change, ColumnSpec, Kind, Object, Revision, Table, Value, Versioning, segment_id,
};

/// What is called before a segment is made.
type Hook = Box<dyn FnMut() + Send>;

/// A disk that calls something before a segment is made.
struct Hooked {
    disk: FaultyDisk,
    hook: Mutex<Hook>,
}

impl Disk for Hooked {
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.open(name)
    }

    fn edit(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.edit(name)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        if segment_id(name).is_some() {
            // A panic in it is meant for its caller only.
            (self.hook.lock().unwrap_or_else(std::sync::PoisonError::into_inner))();
        }
        self.disk.create(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.sync()
    }

    fn lock(&self) -> io::Result<Box<dyn Any + Send + Sync>> {
        self.disk.lock()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.disk.path(name)
    }
}

fn open(disk: &FaultyDisk, seal_after: u64) -> Store {
    let disk = Arc::new(disk.clone());
    let segments = Segments::in_memory(disk.clone());
    Store::open_on(disk, segments, (seal_after, u64::MAX), SyncPolicy::Always).expect("a store")
}

/// A store that seals when it is asked to, or after these bytes, of which there may be as many.
fn open_hooked(disk: &FaultyDisk, hook: Hook, seal_after: u64, most: u64) -> Store {
    let segments = Arc::new(Hooked { disk: disk.clone(), hook: Mutex::new(hook) });
    let segments = Segments::in_memory(segments);
    let disk = Arc::new(disk.clone());
    Store::open_on(disk, segments, (seal_after, most), SyncPolicy::Always).expect("a store")
}

/// Waits, on a disk that is fast, until a snapshot of the journal is there.
fn wait_for_snapshot(disk: &FaultyDisk) {
    let begun = std::time::Instant::now();
    let is_there = || journal::check(disk).is_ok_and(|report| report.snapshot.is_some());
    while !is_there() {
        assert!(begun.elapsed().as_secs() < 20, "nothing is sealed");
        std::thread::yield_now();
    }
}

/// A folder of several versions with 1,000 objects in a tag of users.
fn tagged(store: &Store) {
    let columns = vec![ColumnSpec { name: "value".to_owned(), kind: Kind::Bool }];
    let (path, description, versioning) = ("/t".to_owned(), String::new(), Versioning::Multi);
    make(store, Change::CreateFolder { path, description, versioning, columns }).expect("made");
    let mut payload = Table::new([Kind::Bool]);
    payload.columns[0].push(&Value::Bool(true)).expect("a value");
    payload.rows = 1;
    // All but the first have no record.
    let object = |n| Object { channel: 1, since: n, until: n + 1, records: u32::from(n == 0) };
    let (folder, tag, only_tag) = ("/t".to_owned(), Some("mine".to_owned()), true);
    let batch = Batch { folder, tag, only_tag, objects: (0..1_000).map(object).collect(), payload };
    make(store, Change::Insert(vec![batch])).expect("a change");
}

#[test]
fn a_segment_is_kept_until_a_snapshot_names_it_no_more() {
    for has_failed_seal in [false, true] {
        let disk = FaultyDisk::default();
        let store = open(&disk, u64::MAX);
        tagged(&store);
        folder(&store, "/a").expect("a folder");
        insert(&store, "/a", 0).expect("a change");
        store.seal().expect("a seal");
        make(&store, Change::DeleteTag("mine".to_owned())).expect("a change");
        if has_failed_seal {
            insert(&store, "/a", 1).expect("a change");
            disk.set_room(Some(0));
            assert!(store.seal().is_err(), "there is no room for a segment");
            disk.set_room(None);
        }
        drop(store);
        for _ in 0..2 {
            let store = open(&disk.after_kill(), u64::MAX);
            assert_eq!(store.shared().read().damages(true), [], "{has_failed_seal}");
            drop(open(&disk, u64::MAX));
        }
        let store = open(&disk, u64::MAX);
        let there = count(&store, "/a").expect("nothing is damaged");
        insert(&store, "/a", there).expect("a change");
        store.seal().expect("a seal");
        assert_eq!(segments(&disk).len(), 1, "a block of /a, with what was cut");
    }
}

#[test]
fn a_refused_change_waits_for_no_reader() {
    let store = open(&FaultyDisk::default(), u64::MAX);
    folder(&store, "/a").expect("a folder");
    let shared = store.shared();
    let reader = shared.read();
    for _ in 0..3 {
        let refused = folder(&store, "/a").expect_err("it is there");
        assert!(refused.contains("is there already"), "{refused}");
    }
    drop(reader);
}

#[test]
fn a_seal_that_panics_fails_and_the_next_one_is_made() {
    let (disk, mut calls) = (FaultyDisk::default(), 0);
    let hook = move || {
        calls += 1;
        assert_ne!(calls, 2, "a test's panic");
    };
    let store = open_hooked(&disk, Box::new(hook), u64::MAX, u64::MAX);
    for path in ["/a", "/b"] {
        folder(&store, path).expect("a folder");
        insert(&store, path, 0).expect("a change");
    }
    let (sender, sealed) = std::sync::mpsc::channel();
    let (wait, store) = (std::time::Duration::from_secs(20), Arc::new(store));
    let seals = store.clone();
    std::thread::spawn(move || sender.send([seals.seal(), seals.seal()]));
    let [failed, made] = sealed.recv_timeout(wait).expect("whoever asked is answered");
    assert!(failed.expect_err("it panics").contains("panic"));
    assert_eq!(made, Ok(()));
    assert_eq!(segments(&disk).len(), 2);
    insert(&store, "/b", 1).expect("a change");
    assert_eq!(count(&store, "/b"), Ok(2));
}

#[test]
fn what_a_short_change_takes_into_memory_is_sealed() {
    let disk = FaultyDisk::default();
    let store = open(&disk, 1 << 20);
    tagged(&store);
    for n in 0..30 {
        let (from, to) = ("mine".to_owned(), format!("mine{n}"));
        make(&store, Change::Clone { from, to, description: String::new() }).expect("a change");
    }
    wait_for_snapshot(&disk);
}

#[test]
fn a_journal_grows_no_further_over_several_starts() {
    let disk = FaultyDisk::default();
    for start in 0..3 {
        let store = open(&disk, 10_000);
        for n in 0..4 {
            make(&store, set(4 * start + n)).expect("a change");
        }
        // A store that ends gives a seal up.
        if start == 2 {
            wait_for_snapshot(&disk);
        }
    }
}

/// A runtime for what waits.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}

/// A change that can't be refused.
fn set(n: usize) -> Change {
    Change::CreateSet { path: format!("/set{n}"), description: "x".repeat(1_000) }
}

#[test]
fn changes_wait_for_a_seal_once_too_much_has_come_and_are_made_then() {
    let (disk, runtime) = (FaultyDisk::default(), runtime());
    let (go, gate) = std::sync::mpsc::channel::<()>();
    // Until the sender is dropped.
    let hook = move || while gate.recv().is_ok() {};
    let store = open_hooked(&disk, Box::new(hook), 500, 10_000);
    folder(&store, "/a").expect("a folder");
    insert(&store, "/a", 0).expect("a change");
    insert(&store, "/a", 1).expect("a change");
    let writer = store.writer();
    let mut waiting = Vec::new();
    for n in 0..20 {
        let change = set(n);
        let bytes = change.encode();
        let mut made = Box::pin(writer.make(change, bytes, None));
        // The first ones are made, and with enough of them the others wait.
        let soon = std::time::Duration::from_millis(if n <= 5 { 20_000 } else { 100 });
        let is_made = runtime.block_on(async { tokio::time::timeout(soon, &mut made).await });
        assert!(is_made.is_ok() || n > 5, "change {n}");
        if is_made.is_err() {
            waiting.push(made);
        }
    }
    let there = store.shared().read().revision();
    assert!(waiting.len() > 5 && there < 16, "{there} changes are made");
    drop(go);
    for made in waiting {
        runtime.block_on(made).expect("a change");
    }
    assert_eq!(store.shared().read().revision(), 23);
}

#[test]
fn changes_are_refused_where_too_much_has_come_and_nothing_can_be_sealed() {
    let (disk, fails) = (FaultyDisk::default(), Arc::new(Mutex::new(true)));
    let is_failing = fails.clone();
    let hook = move || assert!(!*is_failing.lock().expect("a lock"), "a test's panic");
    let store = open_hooked(&disk, Box::new(hook), u64::MAX, 10_000);
    folder(&store, "/a").expect("a folder");
    insert(&store, "/a", 0).expect("a change");
    store.seal().expect_err("it panics");
    let refused = (0..).find_map(|n| make(&store, set(n)).err()).expect("there is a limit");
    assert!(refused.contains("panicked"), "{refused}");
    *fails.lock().expect("a lock") = false;
    // What is refused has it tried again.
    let mut n = 100;
    while make(&store, set(n)).is_err() {
        n += 1;
    }
    assert_eq!(segments(&disk).len(), 1);
}

/// Changes of several servers, of which others' can't be taken in.
struct Stuck {
    is_behind: bool,
}

impl Log for Stuck {
    fn write(
        &mut self,
        _: Revision,
        _: &[Vec<u8>],
        _: &std::sync::atomic::AtomicBool,
    ) -> Result<(), NotWritten> {
        Ok(())
    }

    fn unsealed_bytes(&self) -> u64 {
        10_000
    }

    fn begin_base(&mut self, _: Revision) -> anyhow::Result<Box<dyn NewBase>> {
        anyhow::bail!("it is stuck")
    }

    fn may_seal(&self) -> bool {
        false
    }

    fn sealed(&mut self, _: Revision) {}

    fn pause(&self) -> Option<std::time::Duration> {
        Some(std::time::Duration::from_millis(1))
    }

    fn stuck(&self) -> Option<&str> {
        Some("--cache-size is too little")
    }

    fn follow(&mut self, _: &Shared, _: bool, _: bool) -> anyhow::Result<Followed> {
        Ok(Followed { is_replaced: false, is_behind: self.is_behind })
    }
}

#[test]
fn where_what_servers_share_has_no_room_changes_are_refused_at_once_and_say_why() {
    for (is_behind, most) in [(true, u64::MAX), (false, 10_000)] {
        let segments = Segments::in_memory(Arc::new(FaultyDisk::default()));
        let (log, limits) = (Box::new(Stuck { is_behind }), (u64::MAX, most));
        let store = Store::begin(Shared::default(), log, segments, limits).expect("a store");
        let begun = std::time::Instant::now();
        let refused = make(&store, set(0)).expect_err("there is no room");
        assert!(refused.contains("nothing can be changed here: --cache-size is"), "{refused}");
        let unsealed = store.seal().expect_err("there is no room");
        assert!(unsealed.contains("--cache-size is"), "{unsealed}");
        assert!(begun.elapsed().as_secs() < 20, "it waited");
    }
}

#[test]
fn a_change_keeps_its_room_until_it_is_made_whoever_has_gone_away() {
    let (store, runtime) = (open(&FaultyDisk::default(), u64::MAX), runtime());
    let all = Arc::new(tokio::sync::Semaphore::new(10));
    let (shared, writer) = (store.shared(), store.writer());
    let reader = shared.read();
    // The first is written, and waits for the reader; the other waits for the first.
    for (n, room) in [4, 5].into_iter().enumerate() {
        let (change, room) = (set(n), all.clone().try_acquire_many_owned(room));
        let bytes = change.encode();
        let mut made = Box::pin(writer.make(change, bytes, Some(room.expect("room"))));
        let sent = runtime.block_on(async { made.as_mut().now_or_never() });
        assert!(sent.is_none());
        while n == 0 && !shared.is_awaited() {
            std::thread::yield_now();
        }
    }
    assert_eq!(all.available_permits(), 1);
    drop(reader);
    drop(runtime.block_on(all.acquire_many(10)).expect("all of it again"));
    assert_eq!(shared.read().revision(), 1);
}
