//! Any bytes as a journal's files, and good files with any changes: reading them does no harm, and
//! only records that were written are served, in order.
#![no_main]

use std::sync::{Arc, OnceLock};

use journal::{Entry, FaultyDisk, Journal, Options};
use libfuzzer_sys::fuzz_target;

const FILES: [&str; 2] = ["00000000000000000004.snapshot", "00000000000000000005.log"];

/// A snapshot of four records, and a log of four more in two groups.
fn good() -> &'static [Vec<u8>; 2] {
    static GOOD: OnceLock<[Vec<u8>; 2]> = OnceLock::new();
    GOOD.get_or_init(|| {
        let disk = FaultyDisk::default();
        let shared = Arc::new(disk.clone());
        let opened = Journal::open(shared, Options::default(), |_| Ok(()), |_| {});
        let mut journal = opened.expect("a new journal").0;
        (1..=4).for_each(|seq| _ = journal.append(&record(seq)).expect("appended"));
        let mut snapshot = journal.snapshot().expect("begun");
        (1..=4).for_each(|seq| snapshot.append(&record(seq)).expect("written"));
        snapshot.finish().expect("made");
        for seq in 5..=8 {
            journal.append(&record(seq)).expect("appended");
            journal.commit();
            journal.watch().wait(seq).expect("acknowledged");
        }
        drop(journal);
        let mut files = FILES.map(|name| disk.bytes(name).expect("a file"));
        files[1].truncate(500);
        files
    })
}

fn record(seq: u64) -> Vec<u8> {
    vec![seq as u8; 3 * seq as usize]
}

fuzz_target!(|data: &[u8]| {
    let Some((first, bytes)) = data.split_first() else { return };
    let disk = FaultyDisk::default();
    let mut files = good().clone();
    match first % 3 {
        0 => files[usize::from(first & 0x80 != 0)] = bytes.to_vec(),
        1 => {
            for change in bytes.chunks_exact(4) {
                let file = &mut files[usize::from(change[3] & 1)];
                let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % file.len();
                file[at] = change[2];
            }
        }
        _ => files[1].extend_from_slice(bytes),
    }
    FILES.iter().zip(&files).for_each(|(name, bytes)| disk.put(name, bytes));
    journal::check(&disk).expect("read");
    let mut count = 0;
    let apply = |entry: Entry<'_>| {
        count += 1;
        let (Entry::Snapshot(bytes) | Entry::Record(_, bytes)) = entry;
        assert_eq!(bytes, record(count));
        Ok(())
    };
    drop(Journal::open(Arc::new(disk), Options::default(), apply, |_| {}));
});
