//! A copy of a journal that is open: all that was acknowledged when it began, and checked.

use crate::disk::{Disk, read_full, write_all};
use crate::error::Error;
use crate::names::{Names, log_name, snapshot_name};
use crate::recover::{Report, check};
use crate::shared::Watch;

/// So much is copied with one call.
const COPY_BYTES: usize = 1 << 20;

impl Watch {
    /// Copies the journal into an empty directory, while it goes on, and checks the copy: it is
    /// good if the report names no damage. It may wait long; until then there is no snapshot.
    ///
    /// # Errors
    /// When a snapshot is being made, there is a journal in the directory, or a file can't be read
    /// or written.
    pub fn backup(&self, to: &dyn Disk) -> Result<Report, Error> {
        let _occupied = self.0.occupy()?;
        let from = &*self.0.disk;
        let listed = |disk: &dyn Disk| -> Result<Names, Error> {
            let names = disk.list().map_err(|why| Error::io(disk, "", "it is listed", why))?;
            Ok(Names::of(&names))
        };
        if !listed(to)?.is_empty() {
            return Err(Error::NotEmpty { path: to.path("") });
        }
        // What is written from here on is no part of the copy.
        let (last, last_bytes) = self.0.lock().last_file;
        let names = listed(from)?;
        for first in names.logs[names.covered()..].iter().filter(|first| **first <= last) {
            let bytes = if *first == last { last_bytes } else { u64::MAX };
            copy(from, to, &log_name(*first), bytes)?;
        }
        if let Some(through) = names.snapshot() {
            copy(from, to, &snapshot_name(through), u64::MAX)?;
        }
        to.sync().map_err(|why| Error::io(to, "", "it is made durable", why))?;
        check(to)
    }
}

/// Copies the first bytes of a file.
fn copy(from: &dyn Disk, to: &dyn Disk, name: &str, bytes: u64) -> Result<(), Error> {
    let unread = |why| Error::io(from, name, "it is read", why);
    let unwritten = |why| Error::io(to, name, "the copy is written", why);
    let source = from.open(name).map_err(unread)?;
    let mut copy = to.create(name).map_err(unwritten)?;
    let (mut buffer, mut offset) = (vec![0; COPY_BYTES], 0);
    while offset < bytes {
        let want = buffer.len().min(usize::try_from(bytes - offset).unwrap_or(usize::MAX));
        let read = read_full(&*source, &mut buffer[..want], offset).map_err(unread)?;
        if read == 0 {
            break;
        }
        write_all(&mut *copy, &buffer[..read], offset).map_err(unwritten)?;
        offset += read as u64;
    }
    copy.sync().map_err(unwritten)
}
