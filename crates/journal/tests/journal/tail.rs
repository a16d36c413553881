//! Bytes that were written last, cut or flipped, and bytes before them.

use journal::{Error, FaultyDisk, Options};
use proptest::prelude::*;

use super::{open, open_with, put, record};

const LOG: &str = "00000000000000000001.log";

/// A journal of four acknowledged groups: its bytes, and where each group ends. One whose thread
/// was idle for long enough to mark what is durable is made anew.
fn written() -> (Vec<u8>, Vec<(usize, u64)>) {
    loop {
        let disk = FaultyDisk::default();
        let (mut journal, ..) = open(disk.clone()).expect("a new journal");
        let mut ends = vec![(32, 0)];
        for count in [3, 1, 2, 2] {
            put(&mut journal, count).expect("acknowledged");
            let first = journal.last() - count + 1;
            let records = (first..=journal.last()).map(|seq| 8 + record(seq).len());
            ends.push((ends[ends.len() - 1].0 + 40 + records.sum::<usize>(), journal.last()));
        }
        let mut bytes = disk.bytes(LOG).expect("a log");
        if bytes.split_off(ends[4].0).iter().all(|byte| *byte == 0) {
            return (bytes, ends);
        }
    }
}

fn disk_of(bytes: &[u8]) -> FaultyDisk {
    let disk = FaultyDisk::default();
    disk.put(LOG, bytes);
    disk
}

#[test]
fn a_log_that_is_cut_anywhere_opens_with_the_groups_before_the_cut_and_goes_on() {
    let (bytes, ends) = written();
    for cut in 0..=bytes.len() {
        let disk = disk_of(&bytes[..cut]);
        let whole = ends.iter().rev().find(|(end, _)| *end <= cut);
        let (end, records) = *whole.unwrap_or(&(0, 0));
        let (mut journal, report, count) = open(disk.clone()).expect("opens");
        assert_eq!(count, records, "cut at {cut}");
        match report.dropped {
            None => assert_eq!(cut, end),
            Some(dropped) => {
                assert_eq!((dropped.at.offset, dropped.bytes), (end as u64, (cut - end) as u64));
                assert!(dropped.to_string().contains(LOG), "{dropped}");
            }
        }
        put(&mut journal, 2).expect("goes on");
        drop(journal);
        assert_eq!(open(disk).expect("opens again").2, records + 2);
    }
}

#[test]
fn a_byte_that_flips_in_the_last_group_drops_that_group_and_one_before_it_is_named_as_damage() {
    let (bytes, ends) = written();
    let last_start = ends[ends.len() - 2].0;
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            let group = ends.iter().rev().find(|(end, _)| *end <= at);
            let (start, records) = *group.unwrap_or(&(0, 0));
            match open(disk_of(&damaged)) {
                Ok((_, report, count)) => {
                    assert!(at >= last_start, "byte {at} is damaged, and not noticed");
                    assert_eq!((count, report.last), (records, records));
                    assert_eq!(report.dropped.expect("dropped").at.offset, start as u64);
                }
                Err(Error::Damaged(damage)) => {
                    assert!(at < last_start, "byte {at}: {damage}");
                    assert_eq!(damage.offset, start as u64, "byte {at}: {damage}");
                    assert!(damage.path.ends_with(LOG));
                }
                Err(other) => panic!("byte {at}: {other}"),
            }
        }
    }
}

#[test]
fn zeros_behind_the_last_group_are_no_loss_and_a_single_byte_among_them_is_named() {
    let (mut bytes, ends) = written();
    let end = ends[4].0;
    bytes.resize(end + 2_000_000, 0);
    let (_, report, count) = open(disk_of(&bytes)).expect("opens");
    assert_eq!((count, report.dropped), (8, None));
    for at in [end, end + 1_500_000, bytes.len() - 1] {
        let mut bytes = bytes.clone();
        bytes[at] = 1;
        let (_, report, count) = open(disk_of(&bytes)).expect("opens");
        assert_eq!((count, report.dropped.expect("a byte").at.offset), (8, end as u64));
    }
}

#[test]
fn a_group_of_another_journal_or_of_an_older_tail_is_not_taken() {
    let (bytes, ends) = written();
    // The same records at the same place, but of a file with another salt.
    let (other, _) = written();
    let stale = [&bytes[..ends[3].0], &other[ends[3].0..]].concat();
    assert_eq!(open(disk_of(&stale)).expect("opens").2, ends[3].1);
    // The last group, behind a third that was written anew after a cut.
    let disk = disk_of(&bytes[..ends[2].0]);
    let (mut journal, ..) = open(disk.clone()).expect("opens");
    let mut wrong = record(5);
    wrong[0] = 0xee;
    journal.append(&wrong).expect("appended");
    journal.append(&record(6)).expect("appended");
    journal.close().expect("closed");
    let stale = [&disk.bytes(LOG).expect("a log")[..ends[3].0], &bytes[ends[3].0..]].concat();
    let report = journal::check(&disk_of(&stale)).expect("read");
    assert_eq!(report.last, 6);
    assert!(report.dropped.expect("stale").at.why.contains("another place"));
}

#[test]
fn a_file_that_is_missing_or_of_a_newer_version_is_named() {
    let (bytes, _) = written();
    let disk = FaultyDisk::default();
    disk.put("00000000000000000009.log", &bytes);
    let error = open(disk).expect_err("refused").to_string();
    assert_eq!(error, "memory/: records 1 to 8 are missing; restore all files from a backup");
    // Another name: another number than the head has.
    let disk = FaultyDisk::default();
    disk.put("00000000000000000000.log", &bytes);
    let error = open(disk).expect_err("refused").to_string();
    assert!(error.contains("belongs to another place"), "{error}");
}

proptest! {
    #[test]
    fn no_bytes_do_harm_and_none_but_records_that_were_written_are_served(
        changes in proptest::collection::vec((0..2000usize, any::<u8>()), 1..6),
        cut in 0..2000usize,
        more in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let (mut bytes, _) = written();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len().saturating_sub(cut / 10));
        bytes.extend(more);
        // `open` compares each record with what was written.
        drop(open(disk_of(&bytes)));
        let report = journal::check(&disk_of(&bytes)).expect("read");
        prop_assert!(report.last <= 8);
    }
}

#[test]
fn after_a_clean_close_a_flipped_byte_drops_no_record() {
    let disk = FaultyDisk::default();
    let (mut journal, ..) = open(disk.clone()).expect("a new journal");
    // Groups of one fsync, which prove nothing of each other.
    (0..3).for_each(|_| super::append(&mut journal, 2).expect("appended"));
    journal.close().expect("closed");
    let bytes = disk.bytes(LOG).expect("a log");
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        match open(disk_of(&damaged)) {
            Ok((_, _, count)) => assert_eq!(count, 6, "byte {at}"),
            Err(error) => assert!(matches!(error, Error::Damaged(_)), "byte {at}: {error}"),
        }
    }
    // To open it and close it again adds nothing.
    for _ in 0..3 {
        open(disk.clone()).expect("opens").0.close().expect("closed");
    }
    assert_eq!(disk.bytes(LOG), Some(bytes));
}

#[test]
fn a_journal_that_nothing_comes_to_shows_by_itself_that_its_last_group_is_durable() {
    let disk = FaultyDisk::default();
    let options = Options { segment_bytes: 400, ..Options::default() };
    let (mut journal, ..) = open_with(disk.clone(), options).expect("a new journal");
    put(&mut journal, 2).expect("acknowledged");
    let size = 32 + 40 + 2 * 8 + record(1).len() + record(2).len();
    while disk.bytes(LOG).expect("a log")[size] == 0 {
        std::thread::yield_now();
    }
    let mut damaged = disk.after_kill().bytes(LOG).expect("a log");
    damaged[size - 1] ^= 1;
    let error = open(disk_of(&damaged)).expect_err("not taken for a torn tail");
    assert!(matches!(error, Error::Damaged(_)), "{error}");
    // The next file follows what it wrote for that, which is durable before.
    put(&mut journal, 4).expect("acknowledged");
    assert!(journal::Disk::list(&disk).expect("listed").len() > 1);
    for seed in 0..20 {
        assert_eq!(open(disk.after_power_loss(seed)).expect("opens").2, 6);
    }
}

#[test]
fn a_name_with_the_largest_number_does_no_harm() {
    for name in ["18446744073709551615.snapshot", "18446744073709551615.log"] {
        let disk = FaultyDisk::default();
        disk.put(name, b"");
        let error = open(disk.clone()).expect_err("refused");
        assert!(matches!(error, Error::Damaged(_)), "{error}");
        assert!(!journal::check(&disk).expect("read").damaged.is_empty());
    }
}
