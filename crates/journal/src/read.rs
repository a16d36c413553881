//! Reading one file, group by group, and judging what is wrong with the first bad one: a crash's
//! torn tail, or damage.

use crate::disk::{Disk, DiskFile, read_full};
use crate::error::{Damage, Error};
use crate::frame::{
    Cursor, GROUP_HEAD_BYTES, GROUP_MAGIC, GroupHead, HEAD_BYTES, Head, Invalid, Kind,
};

/// So much is read with one call, unless a group is larger.
const WINDOW_BYTES: usize = 1 << 20;

/// A file that is being read.
pub(crate) struct Reader<'a> {
    disk: &'a dyn Disk,
    name: String,
    file: Box<dyn DiskFile>,
    size: u64,
    window: Vec<u8>,
    window_at: u64,
    head: Head,
    at: Cursor,
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

impl<'a> Reader<'a> {
    /// Opens a file, of which only the head is read; returns what is wrong with that, and the
    /// file's size.
    pub(crate) fn open(
        disk: &'a dyn Disk,
        name: String,
        kind: Kind,
        seq: u64,
    ) -> Result<Result<Self, (Invalid, u64)>, Error> {
        let file = disk.open(&name).map_err(|why| Error::io(disk, &name, "it is opened", why))?;
        let size = file.size().map_err(|why| Error::io(disk, &name, "its size is read", why))?;
        let head = Head { kind, salt: 0, seq, chain: 0 };
        let at = Cursor::after(&head);
        let mut reader =
            Self { disk, name, file, size, window: Vec::new(), window_at: 0, head, at };
        let head = match Head::decode(reader.fill(0, HEAD_BYTES)?) {
            Ok(head) if head.kind != kind || head.seq != seq => Err(Invalid::Place),
            other => other,
        };
        Ok(match head {
            Ok(head) => Ok(Self { at: Cursor::after(&head), head, ..reader }),
            Err(why) => Err((why, size)),
        })
    }

    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    /// The place behind the groups that were read.
    pub(crate) fn at(&self) -> &Cursor {
        &self.at
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn damage(&self, why: Invalid) -> Damage {
        let path = self.disk.path(&self.name);
        Damage { path, offset: self.at.offset, why: why.to_string() }
    }

    /// Reads the next group, and hands on its records once all of it has been checked.
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

    /// Whether a crash may have left what is behind the last good group: no group there was
    /// written after the first bad one had become durable.
    pub(crate) fn is_torn(&mut self) -> Result<bool, Error> {
        let (salt, next, size) = (self.at.salt, self.at.next, self.size);
        let mut offset = self.at.offset;
        while offset < size {
            let bytes = self.fill(offset, WINDOW_BYTES)?;
            for start in 0..bytes.len() {
                if !bytes[start..].starts_with(&GROUP_MAGIC) {
                    continue;
                }
                let head = GroupHead::decode(&bytes[start..], salt, offset + start as u64);
                if head.is_ok_and(|head| head.synced >= next) {
                    return Ok(false);
                }
            }
            // A head may begin in this window and end in the next.
            let read = bytes.len();
            offset += (read.saturating_sub(GROUP_HEAD_BYTES - 1)).max(1) as u64;
            if read < GROUP_HEAD_BYTES {
                break;
            }
        }
        Ok(true)
    }

    /// Whether only zeros are behind the last good group: the log writes them ahead.
    pub(crate) fn is_zero(&mut self) -> Result<bool, Error> {
        let (mut offset, size) = (self.at.offset, self.size);
        while offset < size {
            let bytes = self.fill(offset, WINDOW_BYTES)?;
            if bytes.is_empty() || bytes.iter().any(|byte| *byte != 0) {
                return Ok(bytes.is_empty());
            }
            offset += bytes.len() as u64;
        }
        Ok(true)
    }

    /// The bytes at `offset`, fewer where the file ends.
    fn fill(&mut self, offset: u64, bytes: usize) -> Result<&[u8], Error> {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let bytes = bytes.min(left);
        let window_end = self.window_at + self.window.len() as u64;
        if offset < self.window_at || offset + bytes as u64 > window_end {
            self.window.resize(bytes.max(WINDOW_BYTES.min(left)), 0);
            let read = read_full(&*self.file, &mut self.window, offset);
            let failed = |why| Error::io(self.disk, &self.name, "it is read", why);
            let read = read.map_err(failed)?;
            self.window.truncate(read);
            self.window_at = offset;
        }
        let start = (offset - self.window_at) as usize;
        Ok(&self.window[start..(start + bytes).min(self.window.len())])
    }
}
