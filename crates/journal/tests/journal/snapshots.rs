//! Snapshots, copies and checks.

use std::sync::Arc;

use journal::{Directory, Error, FaultyDisk, Held, Options};

use super::{append, open, open_with, put, record, snapshot};

pub(super) fn names(disk: &FaultyDisk) -> Vec<String> {
    journal::Disk::list(disk).expect("listed")
}

fn hold(disk: &FaultyDisk) -> Held {
    Held::open(Arc::new(disk.clone())).expect("held")
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
    assert!(matches!(journal.snapshot(), Err(Error::Exclusive)));
    let held = hold(&disk);
    for seq in 1..=3 {
        begun.append(&record(seq)).expect("written");
    }
    begun.prepare().expect("durable");
    let late = begun.append(&record(4)).expect_err("it would be in no group");
    assert!(late.to_string().contains("it has been made durable"), "{late}");
    begun.finish().expect("made");
    put(&mut journal, 1).expect("goes on");
    // The files that are held go on, whatever the snapshot has removed since.
    for (held, through) in [(held, None), (hold(&disk), Some(3))] {
        let copy = FaultyDisk::default();
        assert!(held.copy(&copy).expect("copied").damaged.is_empty());
        let (_, report, there) = open(copy).expect("opens");
        assert_eq!((there, report.snapshot), (7, through));
    }
    drop(journal);
    let (_, report, count) = open(disk).expect("opens");
    assert_eq!((count, report.snapshot), (7, Some(3)));
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
    // The new file that the snapshot began may have found no room, either: it is tried again.
    let patiently = |again: &mut dyn FnMut() -> Result<(), journal::Error>| {
        while let Err(why) = again() {
            assert!(why.is_no_space(), "{why}");
            std::thread::yield_now();
        }
    };
    for seq in 4..=6 {
        patiently(&mut || journal.append(&record(seq)).map(drop));
    }
    journal.commit();
    patiently(&mut || journal.watch().wait(6));
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
    assert!(error.contains("00000000000000000004.log: the file is missing"), "{error}");
}

#[test]
fn a_copy_holds_what_was_acknowledged_when_it_began_and_opens_as_a_journal() {
    let disk = FaultyDisk::default();
    let options = Options { segment_bytes: 1000, ..Options::default() };
    let (mut journal, ..) = open_with(disk.clone(), options).expect("a new journal");
    put(&mut journal, 10).expect("acknowledged");
    snapshot(&mut journal).expect("made");
    for _ in 0..5 {
        put(&mut journal, 4).expect("acknowledged");
    }
    let copy = FaultyDisk::default();
    let report = hold(&disk).copy(&copy).expect("copied");
    assert_eq!((report.last, report.snapshot, report.dropped), (30, Some(10), None));
    assert!(report.damaged.is_empty());
    append(&mut journal, 5).expect("goes on");
    assert!(matches!(hold(&disk).copy(&copy), Err(Error::NotEmpty { .. })));
    for seed in 0..5 {
        let (mut journal, _, count) = open(copy.after_power_loss(seed)).expect("opens");
        assert_eq!(count, 30);
        put(&mut journal, 1).expect("goes on by itself");
    }
    // A group that is being written, or a log that has no head yet, is left for the next copy.
    drop(journal);
    let last = names(&disk).pop().expect("a log");
    let whole = disk.bytes(&last).expect("it");
    let new = "00000000000000000036.log".to_owned();
    for (name, bytes) in [(last, &whole[..whole.len() - 1]), (new, &[0; 9])] {
        let (disk, copy) = (disk.after_kill(), FaultyDisk::default());
        disk.put(&name, bytes);
        let report = hold(&disk).copy(&copy).expect("copied");
        assert_eq!((report.damaged.len(), report.dropped), (0, None), "{name}");
        assert!((30..=35).contains(&open(copy).expect("opens").2), "{name}");
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
    assert!(damaged[0].ends_with(&all[1]), "{damaged:?}");
    assert!(damaged[1].ends_with(&all[3]), "{damaged:?}");
    assert_eq!(damaged.len(), 2, "and none that is whole: {damaged:?}");
}

#[test]
fn a_snapshot_without_the_log_after_it_is_not_the_whole() {
    let disk = FaultyDisk::default();
    let (mut journal, ..) = open(disk.clone()).expect("a new journal");
    put(&mut journal, 10).expect("acknowledged");
    let old = disk.bytes("00000000000000000001.log").expect("a log");
    snapshot(&mut journal).expect("made");
    put(&mut journal, 2).expect("acknowledged");
    drop(journal);
    // As a crash before the removal leaves it.
    disk.put("00000000000000000001.log", &old);
    assert_eq!(open(disk.after_kill()).expect("opens").2, 12);
    journal::Disk::remove(&disk, "00000000000000000011.log").expect("removed");
    let error = open(disk.clone()).expect_err("refused").to_string();
    assert!(error.contains("00000000000000000011.log"), "{error}");
    assert_eq!(journal::check(&disk).expect("read").damaged.len(), 1);
}

#[test]
fn a_copy_that_did_not_come_to_its_end_is_refused_or_whole() {
    for segment_bytes in [1000, 1 << 20] {
        let disk = FaultyDisk::default();
        let options = Options { segment_bytes, ..Options::default() };
        let (mut journal, ..) = open_with(disk.clone(), options).expect("a new journal");
        put(&mut journal, 5).expect("acknowledged");
        (0..5).for_each(|_| put(&mut journal, 4).expect("acknowledged"));
        for calls in 0.. {
            let copy = FaultyDisk::default();
            copy.shorten_writes(calls);
            copy.lose_power_after(calls);
            let is_over = hold(&disk).copy(&copy).is_ok();
            for seed in 0..8 {
                let copy = if seed == 0 { copy.after_kill() } else { copy.after_power_loss(seed) };
                let place = format!("{calls} calls, seed {seed}: {:?}", names(&copy));
                match open(copy.clone()) {
                    Ok((_, _, 0)) => assert!(!is_over && names(&copy).len() == 1, "{place}"),
                    Ok((.., count)) => assert_eq!(count, 25, "{place}"),
                    Err(error) => assert!(!is_over, "{place}: {error}"),
                }
            }
            if is_over {
                break;
            }
        }
    }
}

#[test]
fn what_is_behind_the_end_of_a_closed_file_does_no_harm() {
    let disk = FaultyDisk::default();
    let options = Options { segment_bytes: 1000, ..Options::default() };
    let (mut journal, ..) = open_with(disk.clone(), options).expect("a new journal");
    for _ in 0..5 {
        put(&mut journal, 4).expect("acknowledged");
    }
    drop(journal);
    let name = &names(&disk)[0];
    let bytes = disk.bytes(name).expect("a log");
    assert_ne!(bytes[bytes.len() - 100..], [0; 100], "no zeros");
    for behind in [&[0; 5000][..], b"half a group"] {
        disk.put(name, &[&bytes[..], behind].concat());
        let (_, report, count) = open(disk.after_kill()).expect("opens");
        assert_eq!((count, report.dropped), (20, None));
        assert!(journal::check(&disk).expect("read").damaged.is_empty());
    }
    let last = bytes.len() - 1;
    disk.put(name, &[&bytes[..last], b"?"].concat());
    let error = open(disk).expect_err("refused").to_string();
    assert!(error.contains(&name[..]), "{error}");
}

#[test]
fn a_directory_is_open_in_one_journal_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = || Directory::new(folder.path());
    let (mut journal, ..) = open(directory()).expect("a new journal");
    put(&mut journal, 2).expect("acknowledged");
    let error = open(directory()).expect_err("refused").to_string();
    assert!(error.contains("in use"), "{error}");
    assert_eq!(journal::check(&directory()).expect("read").last, 2, "a check needs no lock");
    // A snapshot renames and removes files, so it keeps the others out too.
    let begun = journal.snapshot().expect("begun");
    drop(journal);
    open(directory()).expect_err("refused");
    drop(begun);
    assert_eq!(open(directory()).expect("opens").2, 2);
}
