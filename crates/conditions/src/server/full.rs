//! A full disk, or files that can't be created for a while, are waited for: the journal tries again
//! what it has, and goes on.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use journal::{Error, Journal, Watch};

/// What the journal refuses meanwhile is tried again after this time.
const RETRY: Duration = Duration::from_millis(50);

/// Has records written, and waits until they are durable, however long that can't be done for a
/// reason that passes, or until `is_ending`.
///
/// # Errors
/// When the journal has failed, or ends. The records may be durable then, or become so.
pub(super) fn write(
    journal: &mut Journal,
    watch: &Watch,
    records: &[Vec<u8>],
    is_ending: &AtomicBool,
) -> Result<(), Error> {
    let is_ending = || is_ending.load(Relaxed);
    for record in records {
        patiently(is_ending, || journal.append(record))?;
    }
    // The owner waits for them: it writes them itself.
    journal.commit_here();
    let last = journal.last();
    patiently(is_ending, || watch.wait(last))
}

fn patiently<T>(
    is_ending: impl Fn() -> bool,
    mut attempt: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    let mut is_waiting = false;
    loop {
        match attempt() {
            Err(error) if error.is_passing() && !is_ending() => {
                if !std::mem::replace(&mut is_waiting, true) {
                    tracing::error!("{error}: changes wait until that is over");
                }
                std::thread::sleep(RETRY);
            }
            done => {
                if is_waiting && done.is_ok() {
                    tracing::info!("changes go on");
                }
                return done;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use journal::{FaultyDisk, Options};

    use super::*;

    #[test]
    fn what_is_written_to_a_full_disk_is_durable_once_there_is_room() {
        let disk = FaultyDisk::default();
        let open = |disk: &FaultyDisk, each: &mut dyn FnMut(Vec<u8>)| {
            let apply = |entry: journal::Entry<'_>| {
                if let journal::Entry::Record(_, bytes) = entry {
                    each(bytes.to_vec());
                }
                Ok(())
            };
            let disk = Arc::new(disk.clone());
            Journal::open(disk, Options::default(), apply, |_| {}).expect("opened").0
        };
        let mut journal = open(&disk, &mut |_| {});
        let (watch, ending) = (journal.watch(), Arc::new(AtomicBool::new(false)));
        disk.set_room(Some(0));
        let room = {
            let (disk, watch) = (disk.clone(), watch.clone());
            std::thread::spawn(move || {
                // It is stalled, and says so; only then there is room.
                watch.wait(1).expect_err("full");
                disk.set_room(None);
            })
        };
        // More than what the journal's file has taken of the disk beforehand.
        let large = |byte| vec![byte; 4 << 20];
        let records = [large(1), large(2)];
        write(&mut journal, &watch, &records, &ending).expect("there is room again");
        room.join().expect("done");
        write(&mut journal, &watch, &[vec![3]], &ending).expect("and it goes on");

        disk.set_room(Some(0));
        ending.store(true, Relaxed);
        let refused = write(&mut journal, &watch, &[large(4)], &ending);
        assert!(refused.expect_err("full").is_no_space());
        disk.set_room(None);
        journal.close().expect("closed");
        let mut read = Vec::new();
        drop(open(&disk.after_kill(), &mut |record| read.push(record)));
        assert!(read[..3] == [large(1), large(2), vec![3]]);
    }

    #[test]
    fn a_file_that_cant_be_created_for_a_while_ends_nothing() {
        let disk = FaultyDisk::default();
        // Each record has a file of its own.
        let options = Options { segment_bytes: 1, ..Options::default() };
        let (mut journal, _) =
            Journal::open(Arc::new(disk.clone()), options, |_| Ok(()), |_| {}).expect("opened");
        let (watch, is_ending) = (journal.watch(), AtomicBool::new(false));
        write(&mut journal, &watch, &[vec![1]], &is_ending).expect("written");
        disk.refuse(Some("create"));
        let allowed = {
            let (disk, watch) = (disk.clone(), watch.clone());
            std::thread::spawn(move || {
                watch.wait(2).expect_err("it can't be created");
                disk.refuse(None);
            })
        };
        write(&mut journal, &watch, &[vec![2]], &is_ending).expect("it can be created again");
        allowed.join().expect("done");
    }
}
