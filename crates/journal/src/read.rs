//! Reading one file, group by group, and what is behind the first bad one.

use std::ops::Range;

use crate::disk::{Disk, DiskFile, WINDOW_BYTES, read_full, write_all};
use crate::error::{Damage, Error};
use crate::frame::{
    Cursor, GROUP_HEAD_BYTES, GROUP_MAGIC, GroupHead, HEAD_BYTES, Head, Invalid, Kind,
};

/// A file that is being read.
pub(crate) struct Reader<'a> {
    disk: &'a dyn Disk,
    name: String,
    file: Box<dyn DiskFile>,
    pub(crate) size: u64,
    window: Vec<u8>,
    window_at: u64,
    /// Behind the groups that were read; at 0 when there is no head.
    pub(crate) at: Cursor,
}

/// What came next.
pub(crate) enum Step {
    /// A group, with its head.
    Group(GroupHead),
    /// The end of the file.
    End,
    /// Bytes that are no group that belongs here.
    Bad(Invalid),
}

/// What is behind the last good group.
pub(crate) enum Rest {
    /// Zeros, which the log writes ahead.
    Zeros,
    /// What a crash may have left.
    Torn,
    /// A group that was written after the bad one had become durable.
    Later,
}

impl<'a> Reader<'a> {
    /// Opens a file, of which only the head is read.
    pub(crate) fn open(
        disk: &'a dyn Disk,
        name: String,
        kind: Kind,
        seq: u64,
    ) -> Result<(Self, Result<Head, Invalid>), Error> {
        let file = disk.open(&name).map_err(|why| Error::io(disk, &name, "open", why))?;
        let size = file.size().map_err(|why| Error::io(disk, &name, "read the size of", why))?;
        let at = Cursor { salt: 0, offset: 0, next: seq, chain: 0 };
        let mut reader = Self { disk, name, file, size, window: Vec::new(), window_at: 0, at };
        let head = match Head::decode(reader.fill(0, HEAD_BYTES)?) {
            Ok(head) if head.kind != kind || head.seq != seq => Err(Invalid::OutOfSequence),
            head => head,
        };
        if let Ok(head) = &head {
            reader.at = Cursor::after(head);
        }
        Ok((reader, head))
    }

    pub(crate) fn damage(&self, why: Invalid) -> Damage {
        let path = self.disk.path(&self.name);
        Damage { path, offset: self.at.offset, why: why.to_string() }
    }

    /// Reads the next group, and passes its records to `apply` once all of it has been checked.
    pub(crate) fn next(
        &mut self,
        mut apply: impl FnMut(u64, &[u8]) -> Result<(), Error>,
    ) -> Result<Step, Error> {
        let (salt, mut at) = (self.at.salt, self.at);
        if at.offset == self.size {
            return Ok(Step::End);
        }
        let head = self.fill(at.offset, GROUP_HEAD_BYTES)?;
        let head = match GroupHead::decode(head, salt, at.offset) {
            Ok(head) => head,
            Err(why) => return Ok(Step::Bad(why)),
        };
        let body = self.fill(at.offset + GROUP_HEAD_BYTES as u64, head.body_bytes())?;
        if let Err(why) = head.check(body, &mut at) {
            return Ok(Step::Bad(why));
        }
        for (seq, record) in head.records(body) {
            apply(seq, record)?;
        }
        self.at = at;
        Ok(Step::Group(head))
    }

    /// Looks at what is behind the last good group, and has it read anew afterwards: whoever writes
    /// the file may have finished a group after it was read, and before a later one was.
    pub(crate) fn rest(&mut self) -> Result<Rest, Error> {
        let Cursor { salt, next, mut offset, .. } = self.at;
        let (size, mut rest) = (self.size, Rest::Zeros);
        while offset < size {
            let bytes = self.fill(offset, WINDOW_BYTES)?;
            if bytes.iter().any(|byte| *byte != 0) {
                rest = Rest::Torn;
            }
            let is_later = |start: &usize| {
                bytes[*start..].starts_with(&GROUP_MAGIC)
                    && GroupHead::decode(&bytes[*start..], salt, offset + *start as u64)
                        .is_ok_and(|head| head.synced >= next)
            };
            if (0..bytes.len()).any(|start| is_later(&start)) {
                rest = Rest::Later;
                break;
            }
            // A head may begin in this window and end in the next.
            match bytes.len().checked_sub(GROUP_HEAD_BYTES - 1) {
                None | Some(0) => break,
                Some(read) => offset += read as u64,
            }
        }
        self.window.clear();
        Ok(rest)
    }

    /// The bytes at `offset`, fewer where the file ends.
    fn fill(&mut self, offset: u64, bytes: usize) -> Result<&[u8], Error> {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let bytes = bytes.min(left);
        let window_end = self.window_at + self.window.len() as u64;
        if offset < self.window_at || offset + bytes as u64 > window_end {
            self.window.resize(bytes.max(WINDOW_BYTES.min(left)), 0);
            let read = read_full(&*self.file, &mut self.window, offset);
            let failed = |why| Error::io(self.disk, &self.name, "read", why);
            self.window.truncate(read.map_err(failed)?);
            self.window_at = offset;
        }
        let start = ((offset - self.window_at) as usize).min(self.window.len());
        Ok(&self.window[start..(start + bytes).min(self.window.len())])
    }
}

/// Copies bytes of a file to the same place in another, as far as there are any.
pub(crate) fn copy(
    from: (&dyn Disk, &str),
    range: Range<u64>,
    to: (&dyn Disk, &str),
    target: &mut dyn DiskFile,
) -> Result<(), Error> {
    let unread = |why| Error::io(from.0, from.1, "read", why);
    let source = from.0.open(from.1).map_err(unread)?;
    let (mut buffer, mut offset) = (vec![0; WINDOW_BYTES], range.start);
    while offset < range.end {
        let want = (range.end - offset).min(WINDOW_BYTES as u64) as usize;
        let read = read_full(&*source, &mut buffer[..want], offset).map_err(unread)?;
        if read == 0 {
            break;
        }
        let written = write_all(target, &buffer[..read], offset);
        written.map_err(|why| Error::io(to.0, to.1, "write", why))?;
        offset += read as u64;
    }
    Ok(())
}
