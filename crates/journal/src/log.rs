//! The log's last file: groups are appended to it, made durable, and go on in the next file.

use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::Arc;

use crate::disk::{Disk, DiskFile, write_all};
use crate::error::Error;
use crate::frame::{Cursor, Group, Head, Kind};
use crate::names::log_name;

/// This many zeros are written ahead of small groups: to make 500 bytes durable then takes the disk
/// two writes and 154 us, and three and 230 us where the file grows (ext4, the median of 400).
const AHEAD_BYTES: usize = 64 << 10;
/// Larger groups let the file grow, or most bytes would be written twice.
const SMALL_GROUP_BYTES: usize = AHEAD_BYTES / 4;

/// The file that is appended to.
pub(crate) struct Log {
    disk: Arc<dyn Disk>,
    file: Box<dyn DiskFile>,
    first: u64,
    at: Cursor,
    /// The file's size, with the zeros behind the last group.
    end: u64,
    /// The last record that is durable.
    synced: u64,
}

impl Log {
    /// The log goes on in this file at this place; what is before is durable.
    pub(crate) fn resume(
        disk: Arc<dyn Disk>,
        file: Box<dyn DiskFile>,
        first: u64,
        at: Cursor,
    ) -> Self {
        Self { disk, file, first, at, end: at.offset, synced: at.next - 1 }
    }

    /// Makes the file that begins with the record `first`. It is durable when this returns, so a
    /// file of more than its head is never one that a crash left half made.
    pub(crate) fn create(disk: Arc<dyn Disk>, first: u64, chain: u32) -> Result<Self, Error> {
        let name = log_name(first);
        let (file, head) = create_file(&*disk, &name, Kind::Log, first, chain)?;
        let mut log = Self::resume(disk, file, first, Cursor::after(&head));
        let disk = &*log.disk;
        log.file.sync().map_err(|why| Error::sync(disk, &name, why))?;
        disk.sync().map_err(|why| Error::sync(disk, "", why))?;
        Ok(log)
    }

    /// Writes a group. After an error for want of room the same group may be tried again: it goes
    /// to the same place.
    pub(crate) fn write(&mut self, group: &mut Group) -> Result<(), Error> {
        let (bytes, after) = group.seal(&self.at, self.synced, false);
        if after.offset > self.end && bytes.len() <= SMALL_GROUP_BYTES {
            match write_all(&mut *self.file, &[0; AHEAD_BYTES], self.end) {
                Ok(()) => self.end += AHEAD_BYTES as u64,
                // What matters is whether there is room for the group.
                Err(_) => _ = self.file.set_size(self.end),
            }
        }
        self.end = self.end.max(after.offset);
        if let Err(why) = write_all(&mut *self.file, bytes, self.at.offset) {
            // What was written of it is no part of the log. Where it can't be cut off now, it is
            // when the journal is opened.
            let _ = self.file.set_size(self.at.offset);
            self.end = self.at.offset;
            return Err(Error::io(&*self.disk, &log_name(self.first), "a group is written", why));
        }
        self.at = after;
        Ok(())
    }

    /// Makes durable what was written. After an error the log must not be used any more.
    pub(crate) fn sync(&mut self) -> Result<(), Error> {
        if self.synced < self.written() {
            let failed = |why| Error::sync(&*self.disk, &log_name(self.first), why);
            self.file.sync().map_err(failed)?;
            self.synced = self.written();
        }
        Ok(())
    }

    /// Goes on in a new file, unless this one is empty. What was written is durable then.
    pub(crate) fn rotate(&mut self) -> Result<(), Error> {
        self.sync()?;
        if self.first <= self.written() {
            *self = Self::create(self.disk.clone(), self.at.next, self.at.chain)?;
        }
        Ok(())
    }

    /// The last record that was written.
    pub(crate) fn written(&self) -> u64 {
        self.at.next - 1
    }

    /// The file's first record.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// The file's size, without zeros at its end.
    pub(crate) fn size(&self) -> u64 {
        self.at.offset
    }
}

/// Makes a file with its head, which isn't durable yet.
pub(crate) fn create_file(
    disk: &dyn Disk,
    name: &str,
    kind: Kind,
    seq: u64,
    chain: u32,
) -> Result<(Box<dyn DiskFile>, Head), Error> {
    // The standard library's hash maps begin with random numbers of the system.
    let salt = std::hash::RandomState::new().build_hasher().finish() as u32;
    let head = Head { kind, salt, seq, chain };
    let failed = |why| Error::io(disk, name, "it is made", why);
    let mut file = disk.create(name).map_err(failed)?;
    if let Err(why) = write_all(&mut *file, &head.encode(), 0) {
        // Otherwise it would be in the way when this is tried again.
        let _ = disk.remove(name);
        return Err(failed(why));
    }
    Ok((file, head))
}
