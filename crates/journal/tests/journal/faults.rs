//! A disk that is full, fails, or does less than it is asked.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::current;
use std::time::Duration;

use journal::{Directory, Error, FaultyDisk, Journal, Options, Progress, SyncPolicy};

use super::{append, append_by, open, open_with, put, record, snapshot};

#[test]
fn a_failed_fsync_fails_all_who_wait_and_all_that_comes_later() {
    let disk = FaultyDisk::default();
    let (mut journal, _, _, progress) =
        open_with(disk.clone(), Options::default()).expect("a new journal");
    put(&mut journal, 3).expect("acknowledged");
    disk.fail_sync_after(0);
    let error = put(&mut journal, 2).expect_err("not durable");
    assert!(matches!(error, Error::Sync { .. }), "{error}");
    assert!(error.to_string().contains("00000000000000000001.log: fsync failed"), "{error}");
    assert!(matches!(progress.recv(), Ok(Progress::Acknowledged { through: 3, .. })));
    assert!(matches!(progress.recv(), Ok(Progress::Failed(Error::Sync { .. }))));
    let error = journal.append(b"more").expect_err("refused");
    assert!(matches!(error, Error::Sync { .. }), "{error}");
    assert_eq!(journal.watch().acknowledged(), 3);
    journal.close().expect_err("it has failed");
    for seed in 0..20 {
        let (_, _, count) = open(disk.after_power_loss(seed)).expect("opens");
        assert_eq!(count, 3, "the records that were acknowledged");
    }
}

#[test]
fn what_is_served_after_a_failed_fsync_is_written_to_the_disk_again() {
    let disk = FaultyDisk::default();
    let (mut journal, ..) = open(disk.clone()).expect("a new journal");
    put(&mut journal, 3).expect("acknowledged");
    disk.fail_sync_after(0);
    put(&mut journal, 2).expect_err("not durable");
    drop(journal);
    // The next process still reads what the system failed to write.
    let disk = disk.after_kill();
    let (_, _, count) = open(disk.clone()).expect("opens");
    assert_eq!(count, 5);
    for seed in 0..20 {
        assert_eq!(open(disk.after_power_loss(seed)).expect("opens").2, 5);
    }
}

#[test]
fn a_full_disk_refuses_new_records_and_loses_none_that_were_taken() {
    let disk = FaultyDisk::default();
    let (mut journal, _, _, progress) =
        open_with(disk.clone(), Options::default()).expect("a new journal");
    // Too little for zeros ahead, and for six records.
    disk.set_room(Some(700));
    put(&mut journal, 3).expect("acknowledged");
    let error = put(&mut journal, 3).expect_err("no room");
    assert!(error.is_no_space(), "{error}");
    assert!(journal.append(b"more").expect_err("no room").is_no_space());
    assert_eq!(journal.last(), 6, "what is refused gets no number");
    assert!(matches!(progress.recv(), Ok(Progress::Acknowledged { through: 3, .. })));
    assert!(matches!(progress.recv(), Ok(Progress::Stalled(_))));
    // A process that is killed now leaves no half group behind.
    let (_, report, count) = open(disk.after_kill()).expect("opens");
    assert_eq!((count, report.dropped), (3, None));
    disk.set_room(None);
    assert!(matches!(progress.recv(), Ok(Progress::Acknowledged { through: 6, .. })));
    assert!(matches!(progress.recv(), Ok(Progress::Resumed)));
    put(&mut journal, 1).expect("goes on");
    journal.close().expect("closed");
    assert_eq!(open(disk).expect("opens").2, 7);
}

#[test]
fn a_journal_that_refuses_on_a_full_disk_has_what_it_acknowledged_and_nothing_else() {
    let disk = FaultyDisk::default();
    let options = Options { refuses_when_full: true, segment_bytes: 2000, ..Options::default() };
    let (mut journal, _, _, progress) = open_with(disk.clone(), options).expect("a new journal");
    let mut acknowledged = 0;
    for round in 0..20 {
        disk.set_room(Some(300 + 37 * round));
        let last = loop {
            // What comes before the refusal is known is dropped as well.
            if append(&mut journal, 1).is_ok() {
                journal.commit();
                let _ = append(&mut journal, 1);
                journal.commit();
            }
            match progress.recv().expect("a report") {
                Progress::Acknowledged { through: number, .. } => acknowledged = number,
                Progress::Refused(last, why) => {
                    assert!(why.is_no_space(), "{why}");
                    break last;
                }
                Progress::Stalled(_) | Progress::Resumed => {}
                Progress::Failed(why) => panic!("{why}"),
            }
        };
        assert_eq!(last, acknowledged);
        assert!(append(&mut journal, 1).expect_err("no room").is_no_space());
        assert_eq!(open(disk.after_kill()).expect("opens").2, acknowledged);
        disk.set_room(None);
        journal.accept();
        assert_eq!(journal.last(), acknowledged);
        while append(&mut journal, 1).is_err() {
            std::thread::yield_now();
        }
        journal.commit();
        acknowledged += 1;
        loop {
            match progress.recv() {
                Ok(Progress::Acknowledged { through: last, .. }) if last == acknowledged => break,
                _ => {}
            }
        }
        assert!(journal.snapshot().is_ok());
    }
    journal.close().expect("closed");
    assert_eq!(open(disk).expect("opens").2, acknowledged);
}

#[test]
fn a_disk_that_is_full_when_the_next_file_is_made_can_be_emptied_too() {
    let disk = FaultyDisk::default();
    let options = Options { segment_bytes: 200, ..Options::default() };
    let (mut journal, ..) = open_with(disk.clone(), options).expect("a new journal");
    disk.set_room(Some(240));
    put(&mut journal, 2).expect("acknowledged");
    assert!(put(&mut journal, 2).expect_err("no room").is_no_space());
    disk.set_room(None);
    journal.close().expect("all is written");
    assert_eq!(open(disk).expect("opens").2, 4);
}

#[test]
fn a_journal_that_is_closed_on_a_full_disk_says_so() {
    let disk = FaultyDisk::default();
    let (mut journal, ..) = open(disk.clone()).expect("a new journal");
    disk.set_room(Some(60));
    append(&mut journal, 5).expect("appended");
    assert!(journal.close().expect_err("no room").is_no_space());
    let (_, report, count) = open(disk.after_kill()).expect("opens");
    assert_eq!((count, report.dropped), (0, None));
}

#[test]
fn more_than_may_wait_is_refused_and_so_is_a_record_that_is_too_large() {
    let options = Options { waiting_bytes: 1000, ..Options::default() };
    let disk = FaultyDisk::default();
    let (mut journal, ..) = open_with(disk.clone(), options).expect("a new journal");
    let mut count = 0;
    let error = loop {
        match journal.append(&record(count + 1)) {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Busy { most_bytes: 1000, .. }), "{error}");
    journal.commit();
    journal.watch().wait(count).expect("acknowledged");
    assert_eq!(journal.waiting_bytes(), 0);
    put(&mut journal, 1).expect("there is room again");
    let large = vec![0; journal::MAX_RECORD_BYTES + 1];
    let error = journal.append(&large).expect_err("too large");
    assert_eq!(error.to_string(), "a record of 16777217 bytes: 16777216 bytes are the most");
}

#[test]
fn a_largest_record_is_read_back() {
    let disk = FaultyDisk::default();
    let large = vec![7; journal::MAX_RECORD_BYTES];
    let nothing = |_: Progress| {};
    let shared = std::sync::Arc::new(disk.clone());
    let (mut journal, _) =
        journal::Journal::open(shared.clone(), Options::default(), |_| Ok(()), nothing)
            .expect("a new journal");
    for bytes in [&large[..10], &large[..], &[]] {
        journal.append(bytes).expect("appended");
    }
    journal.close().expect("closed");
    let mut sizes = Vec::new();
    let apply = |entry: journal::Entry<'_>| {
        let journal::Entry::Record(_, bytes) = entry else { panic!("no snapshot was made") };
        sizes.push(bytes.len());
        Ok(())
    };
    journal::Journal::open(shared, Options::default(), apply, nothing).expect("opens");
    assert_eq!(sizes, [10, large.len(), 0]);
}

#[test]
fn records_are_acknowledged_as_the_policy_says_and_all_durable_when_the_journal_is_closed() {
    for sync in [SyncPolicy::Never, SyncPolicy::Every(Duration::from_secs(3600))] {
        let disk = FaultyDisk::default();
        let options = Options { sync, ..Options::default() };
        let (mut journal, ..) = open_with(disk.clone(), options).expect("a new journal");
        put(&mut journal, 5).expect("acknowledged");
        assert_eq!(open(disk.after_kill()).expect("opens").2, 5);
        let lost = (0..20).any(|seed| open(disk.after_power_loss(seed)).expect("opens").2 < 5);
        assert!(lost, "{sync:?}: it isn't durable yet");
        journal.close().expect("closed");
        for seed in 0..20 {
            assert_eq!(open(disk.after_power_loss(seed)).expect("opens").2, 5);
        }
    }
}

#[test]
fn what_is_written_becomes_durable_after_the_time_of_the_policy() {
    let disk = FaultyDisk::default();
    let options =
        Options { sync: SyncPolicy::Every(Duration::from_millis(1)), ..Options::default() };
    let (mut journal, _, _, progress) = open_with(disk.clone(), options).expect("a new journal");
    disk.fail_sync_after(0);
    put(&mut journal, 5).expect("acknowledged");
    assert!(matches!(progress.recv(), Ok(Progress::Acknowledged { through: 5, .. })));
    assert!(matches!(progress.recv(), Ok(Progress::Failed(_))), "by itself");
}

#[test]
fn a_record_that_the_owner_refuses_keeps_the_journal_closed_and_is_named() {
    let disk = FaultyDisk::default();
    let (mut journal, ..) = open(disk.clone()).expect("a new journal");
    put(&mut journal, 3).expect("acknowledged");
    drop(journal);
    let apply = |entry: journal::Entry<'_>| match entry {
        journal::Entry::Record(2, _) => Err("it has no name".into()),
        _ => Ok(()),
    };
    let disk = std::sync::Arc::new(disk);
    let error = journal::Journal::open(disk, Options::default(), apply, |_| {});
    let error = error.expect_err("refused").to_string();
    assert!(error.ends_with("record 2 is undamaged, but was refused: it has no name"), "{error}");
}

#[test]
fn a_journal_is_closed_well_only_when_all_of_it_is_durable() {
    for sync in [SyncPolicy::Never, SyncPolicy::Every(Duration::from_secs(3600))] {
        let disk = FaultyDisk::default();
        let options = Options { sync, ..Options::default() };
        let (mut journal, ..) = open_with(disk.clone(), options).expect("a new journal");
        put(&mut journal, 5).expect("acknowledged");
        disk.fail_sync_after(0);
        let error = journal.close().expect_err("acknowledged, and not durable");
        assert!(matches!(error, Error::Sync { .. }), "{sync:?}: {error}");
    }
    // Nor when its next file can't be begun.
    let disk = FaultyDisk::default();
    let (mut journal, ..) = open(disk.clone()).expect("a new journal");
    put(&mut journal, 5).expect("acknowledged");
    disk.fail_sync_after(0);
    let begun = journal.snapshot().expect("begun");
    journal.close().expect_err("the next file isn't durable");
    begun.finish().expect_err("nor is the snapshot");
}

#[test]
fn a_file_whose_first_fsync_failed_is_written_again_with_its_head() {
    let disk = FaultyDisk::default();
    let options = Options { segment_bytes: 200, ..Options::default() };
    let (mut journal, ..) = open_with(disk.clone(), options).expect("a new journal");
    put(&mut journal, 2).expect("acknowledged");
    disk.fail_sync_after(0);
    put(&mut journal, 2).expect_err("the next file isn't durable");
    drop(journal);
    let disk = disk.after_kill();
    let (mut journal, _, count) = open(disk.clone()).expect("opens");
    put(&mut journal, 2).expect("acknowledged");
    for seed in 0..20 {
        assert_eq!(open(disk.after_power_loss(seed)).expect("opens").2, count + 2);
    }
}

#[test]
fn a_full_disk_on_which_only_an_unfinished_snapshot_lies_has_room_for_a_journal() {
    let disk = FaultyDisk::default();
    disk.put("snapshot.new", &[0; 1000]);
    disk.set_room(Some(1000));
    let (mut journal, ..) = open(disk.clone()).expect("room is made first");
    put(&mut journal, 2).expect("acknowledged");
    drop(journal);
    assert_eq!(open(disk).expect("opens").2, 2);
}

#[test]
fn a_snapshot_that_could_not_be_written_once_is_never_finished() {
    let disk = FaultyDisk::default();
    let (mut journal, ..) = open(disk.clone()).expect("a new journal");
    put(&mut journal, 1).expect("acknowledged");
    let mut begun = journal.snapshot().expect("begun");
    disk.set_room(Some(1000));
    let large = vec![0; 300 << 10];
    assert!(begun.append(&large).expect_err("no room").is_no_space());
    disk.set_room(None);
    assert!(begun.append(&large).expect_err("it has failed").is_no_space());
    assert!(begun.finish().expect_err("it has failed").is_no_space());
    snapshot(&mut journal).expect("another is made");
    drop(journal);
    let (_, report, count) = open(disk).expect("opens");
    assert_eq!((count, report.snapshot), (1, Some(1)));
}

#[test]
fn a_file_that_can_not_be_created_for_a_while_is_created_later() {
    let disk = FaultyDisk::default();
    let options = Options { segment_bytes: 200, ..Options::default() };
    let (mut journal, _, _, progress) = open_with(disk.clone(), options).expect("a new journal");
    put(&mut journal, 2).expect("acknowledged");
    disk.refuse(Some("create"));
    let error = put(&mut journal, 2).expect_err("no next file").to_string();
    assert!(error.contains("too many open files"), "{error}");
    disk.refuse(None);
    assert!(matches!(progress.recv(), Ok(Progress::Acknowledged { through: 2, .. })));
    assert!(matches!(progress.recv(), Ok(Progress::Stalled(_))));
    assert!(matches!(progress.recv(), Ok(Progress::Acknowledged { through: 4, .. })));
    assert!(matches!(progress.recv(), Ok(Progress::Resumed)));
    journal.close().expect("all is written");
    assert_eq!(open(disk).expect("opens").2, 4);
}

#[test]
fn a_half_created_file_that_can_not_be_removed_is_used_when_there_is_room() {
    let disk = FaultyDisk::default();
    let options = Options { segment_bytes: 200, ..Options::default() };
    let (mut journal, ..) = open_with(disk.clone(), options).expect("a new journal");
    put(&mut journal, 2).expect("acknowledged");
    let used = disk.bytes("00000000000000000001.log").expect("a log").len() as u64;
    disk.set_room(Some(used + 10));
    disk.refuse(Some("remove"));
    // The zeros at the end of the first file are given up, and so is the room they had.
    disk.put("ballast", &vec![0; used as usize - 100]);
    assert!(put(&mut journal, 2).expect_err("no room").is_no_space());
    disk.set_room(None);
    journal.close().expect("all is written");
    assert_eq!(open(disk).expect("opens").2, 4);
}

#[test]
fn nothing_waits_in_a_journal_that_has_failed() {
    let disk = FaultyDisk::default();
    let (mut journal, ..) = open(disk.clone()).expect("a new journal");
    disk.lose_power_after(0);
    put(&mut journal, 3).expect_err("not written");
    append(&mut journal, 2).expect_err("refused");
    journal.commit();
    assert_eq!(journal.waiting_bytes(), 0);
}

#[test]
fn what_whoever_waits_writes_itself_is_acknowledged_tried_again_and_fails_as_the_rest() {
    let disk = FaultyDisk::default();
    let (mut journal, _, _, progress) =
        open_with(disk.clone(), Options::default()).expect("a new journal");
    let watch = journal.watch();
    let next = |want: fn(&Progress) -> bool| {
        let reported = progress.iter().find(want);
        assert!(reported.is_some(), "it ended before");
    };
    for last in 1..=100 {
        append_by(&mut journal, 1, Journal::commit_here).expect("appended");
        watch.wait(last).expect("durable");
    }
    snapshot(&mut journal).expect("a snapshot");
    append_by(&mut journal, 3, Journal::commit_here).expect("appended");
    append(&mut journal, 2).expect("appended");
    watch.wait(105).expect("durable");
    disk.set_room(Some(0));
    append_by(&mut journal, 500, Journal::commit_here).expect("appended");
    assert!(watch.wait(605).expect_err("full").is_no_space());
    disk.set_room(None);
    // The thread tries again what was written here.
    next(|progress| matches!(progress, Progress::Resumed));
    watch.wait(605).expect("durable");
    disk.fail_sync_after(0);
    append_by(&mut journal, 1, Journal::commit_here).expect("appended");
    watch.wait(606).expect_err("its fsync has failed");
    next(|progress| matches!(progress, Progress::Failed(_)));
    journal.close().expect_err("it has ended");
    let (_, _, count) = open(disk.after_power_loss(1)).expect("opens");
    assert_eq!(count, 605);
}

#[test]
fn nothing_is_acknowledged_once_the_log_has_been_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut journal, _, _) = open(Directory::new(folder.path())).expect("a new journal");
    put(&mut journal, 3).expect("acknowledged");
    for file in std::fs::read_dir(folder.path()).expect("a folder") {
        std::fs::remove_file(file.expect("a file").path()).expect("removed");
    }
    let refused = put(&mut journal, 1).expect_err("it would be lost").to_string();
    assert!(refused.contains("has been removed"), "{refused}");
    append(&mut journal, 1).expect_err("it has ended");
}

#[test]
fn a_short_write_that_no_fsync_follows_is_made_where_it_is_committed() {
    let made_here = |sync, bytes: usize| {
        let (sender, receiver) = channel();
        let notify = move |_| sender.send(current().id()).unwrap_or_default();
        let options = Options { sync, ..Options::default() };
        let disk = Arc::new(FaultyDisk::default());
        let opened = Journal::open(disk, options, |_| Ok(()), notify);
        let (mut journal, _) = opened.expect("a new journal");
        let mut is_made_here = |_: &usize| {
            journal.append(&vec![1; bytes]).expect("appended");
            journal.commit_here_if_short();
            journal.watch().wait(journal.last()).expect("acknowledged");
            receiver.recv().expect("reported") == current().id()
        };
        (0..20).filter(|time| is_made_here(time)).count()
    };
    // The journal's thread may be at work when it begins.
    assert!(made_here(SyncPolicy::Never, 100) > 0);
    assert_eq!(made_here(SyncPolicy::Never, 100_000), 0);
    assert_eq!(made_here(SyncPolicy::Always, 100), 0);
    assert_eq!(made_here(SyncPolicy::Every(Duration::from_secs(3600)), 100), 0);
}
