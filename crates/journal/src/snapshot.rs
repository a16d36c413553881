//! Snapshots: a file of records that replace all before them. It is written beside the journal,
//! made durable, and only then gets the name by which it counts; then what it replaces is
//! removed. A crash in between leaves the old snapshot and its log, or the new one.

use std::any::Any;
use std::sync::Arc;

use crate::disk::{DiskFile, write_all};
use crate::error::Error;
use crate::frame::{Cursor, Group, Kind, MAX_RECORD_BYTES};
use crate::log::create_file;
use crate::names::{NEW_SNAPSHOT, Names, snapshot_name};
use crate::shared::{Exclusive, Shared};

/// A group of a snapshot is written when it has this size.
const GROUP_BYTES: usize = 256 << 10;

/// A snapshot that is being written, by any thread that may wait. Dropping it before
/// [`Snapshot::finish`] leaves the journal as it was; after an error that is all there is to do.
pub struct Snapshot {
    shared: Arc<Shared>,
    through: u64,
    file: Option<(Box<dyn DiskFile>, Cursor)>,
    group: Group,
    /// Why it can't be finished any more.
    failed: Option<Error>,
    is_prepared: bool,
    is_done: bool,
    _exclusive: Exclusive,
    /// Of the directory, in which it renames and removes files.
    _lock: Arc<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("through", &self.through).finish_non_exhaustive()
    }
}

impl Snapshot {
    pub(crate) fn new(
        shared: Arc<Shared>,
        lock: Arc<dyn Any + Send + Sync>,
        exclusive: Exclusive,
        through: u64,
    ) -> Self {
        let (file, group, failed) = (None, Group::default(), None);
        let (is_prepared, is_done) = (false, false);
        let (_exclusive, _lock) = (exclusive, lock);
        Self { shared, through, file, group, failed, is_prepared, is_done, _exclusive, _lock }
    }

    /// The last record that it replaces.
    pub fn through(&self) -> u64 {
        self.through
    }

    /// Adds a record of the state.
    ///
    /// # Errors
    /// When it is too large, comes after [`Snapshot::prepare`], or can't be written: the last is an
    /// error of all later calls too.
    pub fn append(&mut self, record: &[u8]) -> Result<(), Error> {
        if record.len() > MAX_RECORD_BYTES {
            return Err(Error::TooLarge { bytes: record.len(), most_bytes: MAX_RECORD_BYTES });
        }
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        if self.is_prepared {
            let why = std::io::Error::other("it has been made durable");
            return Err(Error::io(&*self.shared.disk, NEW_SNAPSHOT, "add to", why));
        }
        self.group.push(record);
        if self.group.size() >= GROUP_BYTES {
            self.write(false).inspect_err(|error| self.failed = Some(error.clone()))?;
        }
        Ok(())
    }

    /// Makes it durable, with the records that it replaces: what [`Snapshot::finish`] does first,
    /// and nothing that would count. Nothing is taken then.
    ///
    /// # Errors
    /// When it can't be written, the disk is full, or the journal has failed: the journal is opened
    /// with the old snapshot.
    pub fn prepare(&mut self) -> Result<(), Error> {
        if !self.is_prepared {
            if let Some(failed) = &self.failed {
                return Err(failed.clone());
            }
            self.make_durable().inspect_err(|error| self.failed = Some(error.clone()))?;
            self.is_prepared = true;
        }
        Ok(())
    }

    fn make_durable(&mut self) -> Result<(), Error> {
        self.write(true)?;
        let (shared, through) = (&self.shared, self.through);
        if let Some((file, _)) = &mut self.file {
            let synced = file.sync();
            synced.map_err(|why| Error::io(&*shared.disk, NEW_SNAPSHOT, "sync", why))?;
        }
        shared.wait(|state| state.written.first > through)
    }

    /// Makes it the journal's snapshot, once all records that it replaces are durable, and
    /// removes the files that are no longer needed.
    ///
    /// # Errors
    /// When it can't be written, the disk is full, or the journal has failed. The journal is
    /// opened with the old snapshot or with this one then, and with all records either way.
    pub fn finish(mut self) -> Result<(), Error> {
        self.prepare()?;
        let (shared, through) = (self.shared.clone(), self.through);
        let disk = &*shared.disk;
        let renamed = disk.rename(NEW_SNAPSHOT, &snapshot_name(through));
        renamed.map_err(|why| Error::io(disk, NEW_SNAPSHOT, "rename", why))?;
        self.is_done = true;
        disk.sync().map_err(|why| Error::io(disk, "", "sync", why))?;
        Names::list(disk)?.remove_obsolete(disk)
    }

    fn write(&mut self, is_last: bool) -> Result<(), Error> {
        let disk = &*self.shared.disk;
        if self.file.is_none() {
            // What a snapshot that was given up may have left.
            let _ = disk.remove(NEW_SNAPSHOT);
            let (file, head) = create_file(disk, NEW_SNAPSHOT, Kind::Snapshot, self.through, 0)?;
            self.file = Some((file, Cursor::after(&head)));
        }
        if let Some((file, at)) = &mut self.file {
            let (bytes, after) = self.group.seal(at, 0, is_last);
            let written = write_all(&mut **file, bytes, at.offset);
            written.map_err(|why| Error::io(disk, NEW_SNAPSHOT, "write", why))?;
            *at = after;
            self.group.clear();
        }
        Ok(())
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if self.file.is_some() && !self.is_done {
            // If it stays, it is removed when the journal is opened.
            let _ = self.shared.disk.remove(NEW_SNAPSHOT);
        }
    }
}
