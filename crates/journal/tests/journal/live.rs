//! A check beside a journal that is being written: what changes while it reads is no damage.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use journal::{Disk, DiskFile, FaultyDisk, Journal, Options};

use super::{open, open_with, put, snapshot};

/// A disk of which the first reading of a log finds a group half written, and the first list is
/// followed by a snapshot that replaces the files in it.
struct Live {
    disk: FaultyDisk,
    journal: Mutex<Option<Journal>>,
    half_written: Arc<Mutex<Option<usize>>>,
}

impl Live {
    fn new(disk: FaultyDisk) -> Self {
        Self { disk, journal: Mutex::default(), half_written: Arc::default() }
    }
}

struct LiveFile(Box<dyn DiskFile>, Arc<Mutex<Option<usize>>>);

impl Disk for Live {
    fn list(&self) -> io::Result<Vec<String>> {
        let names = self.disk.list()?;
        if let Some(journal) = &mut *self.journal.lock().expect("locked") {
            put(journal, 2).expect("acknowledged");
            snapshot(journal).expect("made");
        }
        self.journal.lock().expect("locked").take();
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(LiveFile(self.disk.open(name)?, self.half_written.clone())))
    }

    fn edit(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.edit(name)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
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

    fn path(&self, name: &str) -> PathBuf {
        self.disk.path(name)
    }
}

impl DiskFile for LiveFile {
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let count = self.0.read_at(bytes, offset)?;
        if count > 100
            && let Some(at) = self.1.lock().expect("locked").take()
        {
            bytes[at..at + 20].fill(0);
        }
        Ok(count)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(bytes, offset)
    }

    fn set_size(&mut self, bytes: u64) -> io::Result<()> {
        self.0.set_size(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync()
    }
}

#[test]
fn a_group_that_is_finished_while_the_check_reads_is_whole() {
    let disk = FaultyDisk::default();
    let (mut journal, ..) = open(disk.clone()).expect("a new journal");
    (0..10).for_each(|_| put(&mut journal, 3).expect("acknowledged"));
    let live = Live::new(disk);
    *live.half_written.lock().expect("locked") = Some(400);
    let report = journal::check(&live).expect("read");
    assert!(report.damaged.is_empty(), "{:?}", report.damaged);
    assert_eq!((report.last, report.dropped), (30, None));
}

#[test]
fn files_that_a_snapshot_replaces_while_the_check_reads_are_not_missed() {
    let disk = FaultyDisk::default();
    let options = Options { segment_bytes: 1000, ..Options::default() };
    let (mut journal, ..) = open_with(disk.clone(), options).expect("a new journal");
    (0..10).for_each(|_| put(&mut journal, 3).expect("acknowledged"));
    let live = Live::new(disk);
    *live.journal.lock().expect("locked") = Some(journal);
    let report = journal::check(&live).expect("read");
    assert!(report.damaged.is_empty(), "{:?}", report.damaged);
    assert_eq!((report.last, report.snapshot), (32, Some(32)));
}
