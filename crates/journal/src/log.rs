//! The log's last file: groups are appended to it, made durable, and go on in the next file.

use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::sync::Arc;

use crate::disk::{Disk, DiskFile, write_all};
use crate::error::{CREATE, Error, is_full};
use crate::frame::{Cursor, Group, Head, Kind};
use crate::names::log_name;

/// This many zeros are written ahead of small groups: to make 500 bytes durable then takes the disk
/// two writes and 154 us, and three and 230 us where the file grows (ext4, the median of 400).
const AHEAD_BYTES: usize = 64 << 10;
/// Larger groups let the file grow, or most bytes would be written twice.
const SMALL_GROUP_BYTES: usize = AHEAD_BYTES / 4;

/// Why no more is written to a file that no directory names.
const REMOVED: &str = "the file has been removed, and what it held is lost; restore the directory \
                       from a backup, then start again";

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
    /// The last record of which a group says that it is durable.
    marked: u64,
}

/// How far the log is written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    /// The last file's first record.
    pub(crate) first: u64,
    /// The last file's size, without zeros at its end.
    pub(crate) bytes: u64,
    /// The last record.
    pub(crate) last: u64,
}

impl Log {
    /// The log at this place of this file; what is before is durable.
    pub(crate) fn at(
        disk: Arc<dyn Disk>,
        file: Box<dyn DiskFile>,
        first: u64,
        at: Cursor,
        marked: u64,
    ) -> Self {
        Self { disk, file, first, at, end: at.offset, synced: at.next - 1, marked }
    }

    /// Creates the file that begins with the record `first`. It is durable when this returns, so a
    /// file of more than its head is never one that a crash left half created.
    pub(crate) fn create(disk: Arc<dyn Disk>, first: u64, chain: u32) -> Result<Self, Error> {
        let name = log_name(first);
        let (mut file, head) = create_file(&*disk, &name, Kind::Log, first, chain)?;
        file.sync().map_err(|why| Error::sync(&*disk, &name, why))?;
        disk.sync().map_err(|why| Error::sync(&*disk, "", why))?;
        Ok(Self::at(disk, file, first, Cursor::after(&head), first - 1))
    }

    /// Writes a group. After an error for want of room the same group may be tried again: it goes
    /// to the same place.
    pub(crate) fn write(&mut self, group: &mut Group) -> Result<(), Error> {
        let failed = |why| Error::io(&*self.disk, &log_name(self.first), "write", why);
        let (bytes, after) = group.seal(&self.at, self.synced, false);
        if after.offset > self.end && bytes.len() <= SMALL_GROUP_BYTES {
            match write_all(&mut *self.file, &[0; AHEAD_BYTES], self.end) {
                Ok(()) => self.end += AHEAD_BYTES as u64,
                // What matters is whether there is room for the group.
                Err(why) if is_full(&why) => {}
                Err(why) => return Err(failed(why)),
            }
        }
        if let Err(why) = write_all(&mut *self.file, bytes, self.at.offset) {
            // What was written of it is no part of the log. If it can't be cut off, the same group
            // is written over it later, or it is cut off when the journal is opened.
            let _ = self.file.set_size(self.at.offset);
            self.end = self.at.offset;
            return Err(failed(why));
        }
        // As when somebody has removed the whole directory. A look costs less than 1 us.
        if self.file.is_removed().map_err(failed)? {
            return Err(failed(io::Error::other(REMOVED)));
        }
        self.end = self.end.max(after.offset);
        (self.at, self.marked) = (after, self.synced);
        Ok(())
    }

    /// Makes durable what was written. After an error the log must not be used any more.
    pub(crate) fn sync(&mut self) -> Result<(), Error> {
        if self.synced < self.written().last { self.sync_file() } else { Ok(()) }
    }

    fn sync_file(&mut self) -> Result<(), Error> {
        let failed = |why| Error::sync(&*self.disk, &log_name(self.first), why);
        self.file.sync().map_err(failed)?;
        self.synced = self.written().last;
        Ok(())
    }

    /// Whether [`Log::mark`] would say anything new.
    pub(crate) fn is_unmarked(&self) -> bool {
        self.marked < self.synced
    }

    /// Writes an empty group, which says that all before it is durable: what is wrong there later
    /// is not taken for a torn tail. On a full disk that is left undone.
    pub(crate) fn mark(&mut self) -> Result<(), Error> {
        match self.is_unmarked().then(|| self.write(&mut Group::default())) {
            Some(Err(error)) if !error.is_no_space() => Err(error),
            _ => Ok(()),
        }
    }

    /// Makes all durable, and says so in the file.
    pub(crate) fn close(&mut self) -> Result<(), Error> {
        self.sync()?;
        self.mark()?;
        self.cut()?;
        self.sync_file()
    }

    /// Goes on in a new file, unless this one is empty. What was written is durable then.
    pub(crate) fn rotate(&mut self) -> Result<(), Error> {
        if self.first <= self.written().last {
            self.cut()?;
            // An empty group may be all that isn't durable yet, and the next file follows it.
            self.sync_file()?;
            *self = Self::create(self.disk.clone(), self.at.next, self.at.chain)?;
        }
        Ok(())
    }

    /// Cuts the zeros off.
    fn cut(&mut self) -> Result<(), Error> {
        let cut = self.file.set_size(self.at.offset);
        cut.map_err(|why| Error::io(&*self.disk, &log_name(self.first), "cut", why))?;
        self.end = self.at.offset;
        Ok(())
    }

    pub(crate) fn written(&self) -> Written {
        Written { first: self.first, bytes: self.at.offset, last: self.at.next - 1 }
    }
}

/// Creates a file with its head, which isn't durable yet.
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
    let file = match disk.create(name) {
        // What an attempt has left that failed, or a crash.
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {
            disk.edit(name).and_then(|mut file| file.set_size(0).map(|()| file))
        }
        created => created,
    };
    let mut file = file.map_err(|why| Error::io(disk, name, CREATE, why))?;
    if let Err(why) = write_all(&mut *file, &head.encode(), 0) {
        // If it stays, it is used when this is tried again.
        let _ = disk.remove(name);
        return Err(Error::io(disk, name, "write", why));
    }
    Ok((file, head))
}
