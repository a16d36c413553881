//! The journal from outside: what is acknowledged is there again, whatever happens below it.

mod crash;
mod faults;
mod kill;
mod live;
mod snapshots;
mod tail;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use journal::{Disk, Entry, Error, Journal, Options, Progress, Report};

/// The record of this number: a few bytes to a few hundred, and no two the same.
fn record(seq: u64) -> Vec<u8> {
    let mut bytes = seq.to_le_bytes().to_vec();
    bytes.resize(8 + (seq * 37 % 300) as usize, seq as u8);
    bytes
}

/// Opens a journal of such records; returns how many there were, all of them and in order.
fn open_with(
    disk: impl Disk + 'static,
    options: Options,
) -> Result<(Journal, Report, u64, Receiver<Progress>), Error> {
    let (sender, receiver) = channel();
    let mut count = 0;
    let apply = |entry: Entry<'_>| {
        let bytes = match entry {
            Entry::Snapshot(bytes) => bytes,
            Entry::Record(seq, bytes) => {
                assert_eq!(seq, count + 1, "numbers are without a gap");
                bytes
            }
        };
        count += 1;
        assert_eq!(bytes, record(count), "record {count}");
        Ok(())
    };
    let notify = move |progress| drop(sender.send(progress));
    let (journal, report) = Journal::open(Arc::new(disk), options, apply, notify)?;
    assert_eq!(report.last, count);
    assert_eq!(journal.last(), count);
    Ok((journal, report, count, receiver))
}

fn open(disk: impl Disk + 'static) -> Result<(Journal, Report, u64), Error> {
    let (journal, report, count, _) = open_with(disk, Options::default())?;
    Ok((journal, report, count))
}

/// Appends this many records as one group, which the journal's thread is to write, or this one.
fn append_by(journal: &mut Journal, count: u64, commit: fn(&mut Journal)) -> Result<(), Error> {
    for _ in 0..count {
        journal.append(&record(journal.last() + 1))?;
    }
    commit(journal);
    Ok(())
}

/// The same, by the journal's thread.
fn append(journal: &mut Journal, count: u64) -> Result<(), Error> {
    append_by(journal, count, Journal::commit)
}

/// The same by either, and waits until they are acknowledged.
fn put(journal: &mut Journal, count: u64) -> Result<(), Error> {
    let commit = match journal.last() % 3 {
        0 => Journal::commit_here,
        1 => Journal::commit,
        _ => Journal::commit_here_if_short,
    };
    append_by(journal, count, commit)?;
    journal.watch().wait(journal.last())
}

/// Makes a snapshot of all records.
fn snapshot(journal: &mut Journal) -> Result<(), Error> {
    let mut snapshot = journal.snapshot()?;
    for seq in 1..=snapshot.through() {
        snapshot.append(&record(seq))?;
    }
    snapshot.finish()
}
