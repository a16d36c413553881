//! The bytes of a file (README.md has them as a table): its head, and groups of records, each
//! under a checksum that depends on all before it in the file, so nothing stale or out of place
//! passes.

/// The bytes of a file's head.
pub(crate) const HEAD_BYTES: usize = 32;
/// The bytes of a group's head.
pub(crate) const GROUP_HEAD_BYTES: usize = 40;
/// The bytes before each record.
const RECORD_HEAD_BYTES: usize = 8;

/// The largest record.
pub const MAX_RECORD_BYTES: usize = 16 << 20;
/// A group of this size gets no further record.
pub(crate) const GROUP_BYTES: usize = 4 << 20;
/// The largest group without its head: nearly full, and then one more record, of the largest size.
const MAX_BODY_BYTES: usize = GROUP_BYTES + RECORD_HEAD_BYTES + MAX_RECORD_BYTES;

/// No file begins with a later record, so that counting on never overflows.
const MAX_SEQ: u64 = 1 << 62;

const MAGIC: [u8; 8] = *b"LLjournl";
const VERSION: u16 = 1;
/// The first bytes of a group, by which a later one is looked for behind a damaged one. Text and
/// small numbers don't look like it.
pub(crate) const GROUP_MAGIC: [u8; 4] = [0xa7, b'G', b'R', 0xd2];

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Kind {
    Log = 1,
    Snapshot = 2,
}

/// The head of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    /// A number of this file only, without which a group's head can't be made up.
    pub(crate) salt: u32,
    /// Of a log: its first record. Of a snapshot: the last record that it replaces.
    pub(crate) seq: u64,
    /// Of a log: the checksum with which the file before it ends; 0 without one.
    pub(crate) chain: u32,
}

/// Why bytes are no head or no group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Invalid {
    #[error("the file ends too early")]
    Cut,
    #[error("the checksum of the file's head is wrong")]
    Head,
    #[error("it has version {0}, and {VERSION} is known")]
    Version(u16),
    #[error("the checksum of a group's head is wrong")]
    Group,
    #[error("it is out of sequence: it belongs to another place")]
    OutOfSequence,
    #[error("the checksum of record {0} is wrong")]
    Record(u64),
    #[error("the lengths of a group's records are wrong")]
    Length,
}

impl Head {
    pub(crate) fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[10..12].copy_from_slice(&(self.kind as u16).to_le_bytes());
        bytes[12..16].copy_from_slice(&self.salt.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.seq.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.chain.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..28]);
        bytes[28..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Invalid> {
        if bytes.len() < HEAD_BYTES {
            return Err(Invalid::Cut);
        }
        if bytes[..8] != MAGIC || crc32fast::hash(&bytes[..28]) != u32_at(bytes, 28) {
            return Err(Invalid::Head);
        }
        let version = u16_at(bytes, 8);
        if version != VERSION {
            return Err(Invalid::Version(version));
        }
        let kind = match u16_at(bytes, 10) {
            1 => Kind::Log,
            2 => Kind::Snapshot,
            _ => return Err(Invalid::Head),
        };
        let (salt, seq, chain) = (u32_at(bytes, 12), u64_at(bytes, 16), u32_at(bytes, 24));
        if seq > MAX_SEQ || (kind == Kind::Log && seq == 0) {
            return Err(Invalid::OutOfSequence);
        }
        Ok(Self { kind, salt, seq, chain })
    }
}

/// A place in a file: what the next group has to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) salt: u32,
    pub(crate) offset: u64,
    /// The next record's number.
    pub(crate) next: u64,
    /// The checksum of what is before.
    pub(crate) chain: u32,
}

impl Cursor {
    /// Right behind the head of a file. Records of a snapshot are numbered from 1.
    pub(crate) fn after(head: &Head) -> Self {
        let next = if head.kind == Kind::Log { head.seq } else { 1 };
        let chain = u32_at(&head.encode(), 28);
        Self { salt: head.salt, offset: HEAD_BYTES as u64, next, chain }
    }

    fn pass(&mut self, bytes: usize, records: u32, chain: u32) {
        self.offset += bytes as u64;
        self.next += u64::from(records);
        self.chain = chain;
    }
}

/// The head of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupHead {
    body_bytes: u32,
    records: u32,
    first: u64,
    /// Up to which record everything was durable when this group was written.
    pub(crate) synced: u64,
    /// Whether it is a snapshot's last group.
    pub(crate) is_last: bool,
    chain: u32,
    crc: u32,
}

impl GroupHead {
    fn encode(&mut self, at: &Cursor, bytes: &mut [u8]) {
        bytes[..4].copy_from_slice(&GROUP_MAGIC);
        bytes[4..8].copy_from_slice(&self.body_bytes.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.records.to_le_bytes());
        bytes[12..16].copy_from_slice(&u32::from(self.is_last).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.first.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.synced.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.chain.to_le_bytes());
        self.crc = head_crc(&bytes[..36], at.salt, at.offset);
        bytes[36..40].copy_from_slice(&self.crc.to_le_bytes());
    }

    /// Reads a head at `offset` of the file with that salt. Whether it follows the group before is
    /// left to [`GroupHead::check`].
    pub(crate) fn decode(bytes: &[u8], salt: u32, offset: u64) -> Result<Self, Invalid> {
        if bytes.len() < GROUP_HEAD_BYTES {
            return Err(Invalid::Cut);
        }
        let crc = u32_at(bytes, 36);
        if bytes[..4] != GROUP_MAGIC || head_crc(&bytes[..36], salt, offset) != crc {
            return Err(Invalid::Group);
        }
        let (body_bytes, records) = (u32_at(bytes, 4), u32_at(bytes, 8));
        if body_bytes as usize > MAX_BODY_BYTES {
            return Err(Invalid::Length);
        }
        let is_last = u32_at(bytes, 12) == 1;
        let (first, synced, chain) = (u64_at(bytes, 16), u64_at(bytes, 24), u32_at(bytes, 32));
        Ok(Self { body_bytes, records, first, synced, is_last, chain, crc })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records == 0
    }

    pub(crate) fn body_bytes(&self) -> usize {
        self.body_bytes as usize
    }

    /// Checks the whole group, and moves the cursor behind it.
    pub(crate) fn check(&self, body: &[u8], at: &mut Cursor) -> Result<(), Invalid> {
        if self.first != at.next || self.chain != at.chain {
            return Err(Invalid::OutOfSequence);
        }
        if body.len() < self.body_bytes() {
            return Err(Invalid::Cut);
        }
        let (mut rest, mut chain, mut count) = (body, self.crc, 0);
        while !rest.is_empty() {
            let (record, after) = split(rest).ok_or(Invalid::Length)?;
            let crc = record_crc(chain, record);
            if crc != u32_at(rest, 4) {
                return Err(Invalid::Record(self.first + count));
            }
            (rest, chain, count) = (after, crc, count + 1);
        }
        if count != u64::from(self.records) {
            return Err(Invalid::Length);
        }
        at.pass(GROUP_HEAD_BYTES + body.len(), self.records, chain);
        Ok(())
    }

    /// The records of a body that was checked, with their numbers.
    pub(crate) fn records<'a>(&self, body: &'a [u8]) -> impl Iterator<Item = (u64, &'a [u8])> {
        let mut rest = body;
        let mut records = std::iter::from_fn(move || {
            let (record, after) = split(rest)?;
            rest = after;
            Some(record)
        });
        (self.first..).map_while(move |seq| Some((seq, records.next()?)))
    }
}

/// Records on their way to a file, with room for the group's head before them.
#[derive(Debug)]
pub(crate) struct Group {
    bytes: Vec<u8>,
    records: u32,
}

impl Default for Group {
    fn default() -> Self {
        Self { bytes: vec![0; GROUP_HEAD_BYTES], records: 0 }
    }
}

impl Group {
    /// How much it and its head grow by a record of this size.
    pub(crate) fn growth(&self, record_bytes: usize) -> usize {
        RECORD_HEAD_BYTES + record_bytes + if self.is_empty() { GROUP_HEAD_BYTES } else { 0 }
    }

    /// The caller has checked the record's size.
    pub(crate) fn push(&mut self, record: &[u8]) {
        debug_assert!(record.len() <= MAX_RECORD_BYTES && !self.is_full());
        self.bytes.extend_from_slice(&(record.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(record);
        self.records += 1;
    }

    /// Moves the records of `other` behind its own, unless it is full; returns whether it did.
    pub(crate) fn take_from(&mut self, other: &mut Self) -> bool {
        if self.bytes.len() + other.bytes.len() > GROUP_HEAD_BYTES + GROUP_BYTES {
            return false;
        }
        self.bytes.extend_from_slice(&other.bytes[GROUP_HEAD_BYTES..]);
        self.records += other.records;
        other.clear();
        true
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.truncate(GROUP_HEAD_BYTES);
        self.records = 0;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records == 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= GROUP_HEAD_BYTES + GROUP_BYTES
    }

    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Its bytes for this place, and the place behind it.
    pub(crate) fn seal(&mut self, at: &Cursor, synced: u64, is_last: bool) -> (&[u8], Cursor) {
        let body_bytes = (self.bytes.len() - GROUP_HEAD_BYTES) as u32;
        let (first, chain, records) = (at.next, at.chain, self.records);
        let mut head = GroupHead { body_bytes, records, first, synced, is_last, chain, crc: 0 };
        let (head_bytes, mut rest) = self.bytes.split_at_mut(GROUP_HEAD_BYTES);
        head.encode(at, head_bytes);
        let mut chain = head.crc;
        while let Some((record, _)) = split(rest) {
            let record_bytes = record.len();
            chain = record_crc(chain, record);
            rest[4..8].copy_from_slice(&chain.to_le_bytes());
            rest = &mut rest[RECORD_HEAD_BYTES + record_bytes..];
        }
        let mut after = *at;
        after.pass(self.bytes.len(), self.records, chain);
        (&self.bytes, after)
    }
}

/// The first record, and what is behind it.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(RECORD_HEAD_BYTES)?;
    rest.split_at_checked(u32_at(head, 0) as usize)
}

fn head_crc(bytes: &[u8], salt: u32, offset: u64) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&salt.to_le_bytes());
    hasher.update(&offset.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

fn record_crc(before: u32, record: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&before.to_le_bytes());
    hasher.update(&(record.len() as u32).to_le_bytes());
    hasher.update(record);
    hasher.finalize()
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::{Head, Invalid, Kind, MAX_SEQ};

    #[test]
    fn a_number_that_could_overflow_is_refused() {
        for (kind, seq) in [(Kind::Log, 0), (Kind::Log, u64::MAX), (Kind::Snapshot, MAX_SEQ + 1)] {
            let head = Head { kind, salt: 7, seq, chain: 0 };
            assert_eq!(Head::decode(&head.encode()), Err(Invalid::OutOfSequence));
        }
        let head = Head { kind: Kind::Snapshot, salt: 7, seq: 0, chain: 0 };
        assert_eq!(Head::decode(&head.encode()), Ok(head));
    }
}
