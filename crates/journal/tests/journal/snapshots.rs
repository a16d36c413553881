//! Snapshots, backups and checks.

use journal::{Error, FaultyDisk, Options};

use super::{append, open, open_with, put, record, snapshot};

fn names(disk: &FaultyDisk) -> Vec<String> {
    journal::Disk::list(disk).expect("listed")
}

#[test]
fn a_snapshot_takes_the_place_of_the_files_before_it() {
    let disk = FaultyDisk::default();
    let options = Options { segment_bytes: 1000, ..Options::default() };
    let (mut journal, ..) = open_with(disk.clone(), options).expect("a new journal");
    for _ in 0..10 {
        put(&mut journal, 3).expect("acknowledged");
    }
    assert!(names(&disk).len() > 3, "{:?}", names(&disk));
    snapshot(&mut journal).expect("made");
    let after = ["00000000000000000030.snapshot", "00000000000000000031.log"];
    assert_eq!(names(&disk), after);
    put(&mut journal, 2).expect("goes on");
    drop(journal);
    let (mut journal, report, count) = open(disk.clone()).expect("opens");
    assert_eq!((count, report.snapshot, report.records), (32, Some(30), 32));
    snapshot(&mut journal).expect("made");
    assert_eq!(names(&disk), ["00000000000000000032.snapshot", "00000000000000000033.log"]);
}

#[test]
fn records_go_on_while_a_snapshot_is_written_and_there_is_one_at_a_time() {
    let disk = FaultyDisk::default();
    let (mut journal, ..) = open(disk.clone()).expect("a new journal");
    put(&mut journal, 3).expect("acknowledged");
    let mut begun = journal.snapshot().expect("begun");
    put(&mut journal, 3).expect("goes on");
    assert!(matches!(journal.snapshot(), Err(Error::Occupied)));
    let copy = FaultyDisk::default();
    assert!(matches!(journal.watch().backup(&copy), Err(Error::Occupied)));
    for seq in 1..=3 {
        begun.append(&record(seq)).expect("written");
    }
    begun.finish().expect("made");
    journal.watch().backup(&copy).expect("it is over");
    drop(journal);
    let (_, report, count) = open(disk).expect("opens");
    assert_eq!((count, report.snapshot), (6, Some(3)));
    assert_eq!(open(copy).expect("opens").2, 6);
}

#[test]
fn a_snapshot_that_is_given_up_or_finds_no_room_changes_nothing() {
    let disk = FaultyDisk::default();
    let (mut journal, ..) = open(disk.clone()).expect("a new journal");
    put(&mut journal, 3).expect("acknowledged");
    let mut begun = journal.snapshot().expect("begun");
    begun.append(&vec![0; 1 << 20]).expect("written");
    assert!(names(&disk).contains(&"snapshot.new".to_owned()));
    drop(begun);
    assert!(!names(&disk).contains(&"snapshot.new".to_owned()));
    disk.set_room(Some(300));
    assert!(snapshot(&mut journal).expect_err("no room").is_no_space());
    disk.set_room(None);
    put(&mut journal, 3).expect("goes on");
    drop(journal);
    let (_, report, count) = open(disk).expect("opens");
    assert_eq!((count, report.snapshot), (6, None));
}

#[test]
fn a_snapshot_that_is_damaged_anywhere_is_named_and_not_served() {
    let disk = FaultyDisk::default();
    let (mut journal, ..) = open(disk.clone()).expect("a new journal");
    put(&mut journal, 6).expect("acknowledged");
    snapshot(&mut journal).expect("made");
    drop(journal);
    let name = "00000000000000000006.snapshot";
    let bytes = disk.bytes(name).expect("a snapshot");
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        for damaged in [&damaged[..], &bytes[..at]] {
            disk.put(name, damaged);
            let Err(Error::Damaged(damage)) = open(disk.clone()) else { panic!("byte {at}") };
            assert!(damage.path.ends_with(name), "{damage}");
            let report = journal::check(&disk).expect("read");
            assert_eq!(report.damaged, [damage], "byte {at}");
        }
    }
}

#[test]
fn a_file_that_is_missing_between_a_snapshot_and_the_end_is_named() {
    let disk = FaultyDisk::default();
    let options = Options { segment_bytes: 600, ..Options::default() };
    let (mut journal, ..) = open_with(disk.clone(), options).expect("a new journal");
    put(&mut journal, 3).expect("acknowledged");
    snapshot(&mut journal).expect("made");
    for _ in 0..6 {
        put(&mut journal, 3).expect("acknowledged");
    }
    journal.close().expect("closed");
    let all = names(&disk);
    assert!(all.len() >= 4, "{all:?}");
    for name in &all[..all.len() - 1] {
        let disk = disk.after_kill();
        journal::Disk::remove(&disk, name).expect("removed");
        let error = open(disk.clone()).expect_err("refused").to_string();
        assert!(error.contains("missing"), "without {name}: {error}");
        assert_eq!(journal::check(&disk).expect("read").damaged.len(), 1);
    }
    // All logs gone: the snapshot alone is not the whole.
    let alone = FaultyDisk::default();
    alone.put(
        "00000000000000000003.snapshot",
        &disk.bytes("00000000000000000003.snapshot").expect("it"),
    );
    let error = open(alone).expect_err("refused").to_string();
    assert!(error.contains("00000000000000000004.log, byte 0: the file is missing"), "{error}");
}

#[test]
fn a_backup_holds_what_was_acknowledged_when_it_began_and_opens_as_a_journal() {
    let disk = FaultyDisk::default();
    let options = Options { segment_bytes: 1000, ..Options::default() };
    let (mut journal, ..) = open_with(disk.clone(), options).expect("a new journal");
    put(&mut journal, 10).expect("acknowledged");
    snapshot(&mut journal).expect("made");
    for _ in 0..5 {
        put(&mut journal, 4).expect("acknowledged");
    }
    let copy = FaultyDisk::default();
    let report = journal.watch().backup(&copy).expect("copied");
    assert_eq!((report.last, report.snapshot, report.dropped), (30, Some(10), None));
    assert!(report.damaged.is_empty());
    append(&mut journal, 5).expect("goes on");
    assert!(matches!(journal.watch().backup(&copy), Err(Error::NotEmpty { .. })));
    for seed in 0..5 {
        let (mut journal, _, count) = open(copy.after_power_loss(seed)).expect("opens");
        assert_eq!(count, 30);
        put(&mut journal, 1).expect("goes on by itself");
    }
}

#[test]
fn a_check_names_every_file_that_is_damaged() {
    let disk = FaultyDisk::default();
    let options = Options { segment_bytes: 300, ..Options::default() };
    let (mut journal, ..) = open_with(disk.clone(), options).expect("a new journal");
    for _ in 0..8 {
        put(&mut journal, 2).expect("acknowledged");
    }
    journal.close().expect("closed");
    let all = names(&disk);
    let report = journal::check(&disk).expect("read");
    assert_eq!((report.files as usize, report.last, report.damaged.len()), (all.len(), 16, 0));
    for name in [&all[1], &all[3]] {
        let mut bytes = disk.bytes(name).expect("a file");
        bytes[100] ^= 1;
        disk.put(name, &bytes);
    }
    let report = journal::check(&disk).expect("read");
    let damaged: Vec<_> = report.damaged.iter().map(|one| one.path.clone()).collect();
    assert!(damaged.iter().any(|path| path.ends_with(&all[1])), "{damaged:?}");
    assert!(damaged.iter().any(|path| path.ends_with(&all[3])), "{damaged:?}");
}
