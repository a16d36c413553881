//! A full disk, which is waited for: the journal tries again what it has, and goes on.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use journal::{Error, Journal, Watch};

/// When the disk is full, what the journal refuses is tried again after this time.
const RETRY: Duration = Duration::from_millis(50);

/// Has records written, and waits until they are durable, however long the disk is full, or until
/// `is_ending`.
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
    let mut is_full = false;
    loop {
        match attempt() {
            Err(error) if error.is_no_space() && !is_ending() => {
                if !std::mem::replace(&mut is_full, true) {
                    tracing::error!("{error}: changes wait until the disk has room");
                }
                std::thread::sleep(RETRY);
            }
            done => {
                if is_full && done.is_ok() {
                    tracing::info!("the disk has room again");
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
}
