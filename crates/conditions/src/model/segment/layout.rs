//! Where everything lies in a segment.

use std::ops::Range;

use super::super::past::BLOCK;
use super::packed::{DESCRIPTION_BYTES, Packed, u32_at, u64_at};

/// The bytes of the head.
pub(super) const HEAD_BYTES: usize = 128;

/// The payload is checked in chunks of this size, of each of which 4 bytes are kept.
pub(super) const CHUNK_BYTES: usize = 4 << 10;

/// About how many bytes a group of rows has: what is shown at one time lies in few groups, so that
/// a read whose data come from the disk fetches little else, and few enough that columns are copied
/// in runs.
const GROUP_BYTES: usize = 16 << 10;

/// Where the cells of fixed width lie: rows are divided into groups, each of which has the cells of
/// one column after those of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Groups {
    /// The bytes of a row's cells of fixed width.
    pub(super) row_bytes: usize,
    /// The rows of a group, but for the last one: two to this power.
    pub(super) shift: u32,
    pub(super) rows: usize,
}

impl Groups {
    /// As they are written.
    pub(super) fn new(row_bytes: usize, rows: usize) -> Self {
        let of_group = (GROUP_BYTES / row_bytes.max(1)).max(1);
        Self { row_bytes, shift: of_group.ilog2(), rows }
    }

    /// How many rows a group has, but for the last one.
    pub(super) fn group_rows(&self) -> usize {
        1 << self.shift
    }

    /// Where the groups lie that have these rows.
    pub(super) fn around(&self, rows: Range<usize>) -> Range<usize> {
        let first = rows.start >> self.shift << self.shift;
        let end = rows.end.next_multiple_of(self.group_rows()).min(self.rows);
        first * self.row_bytes..end * self.row_bytes
    }

    /// Where the cells of a column lie, one range for each group: of these rows, which are there,
    /// in a column behind others of `before` bytes a row.
    pub(super) fn extents(
        self,
        before: usize,
        width: usize,
        rows: Range<usize>,
    ) -> impl Iterator<Item = Range<usize>> {
        let mut next = rows.start;
        std::iter::from_fn(move || {
            let first = next >> self.shift << self.shift;
            let group = self.group_rows().min(self.rows - first.min(self.rows));
            let begin = next;
            next = rows.end.min(first + group);
            let at = first * self.row_bytes + before * group;
            (begin < next).then(|| at + width * (begin - first)..at + width * (next - first))
        })
    }
}

pub(super) const COLUMN_BYTES: usize = 16;

/// How many bytes follow the last packed number, so that each is read with eight.
pub(super) const SPARE_BYTES: usize = 8;

/// The packed columns of the index, in their order.
pub(super) mod column {
    /// Of pieces: the first time, the first time after it, the revision that it is shown from, the
    /// first row, how many rows, and the object's place if it is cut.
    pub(in super::super) const SINCE: usize = 0;
    pub(in super::super) const UNTIL: usize = 1;
    pub(in super::super) const FROM: usize = 2;
    pub(in super::super) const ROW: usize = 3;
    pub(in super::super) const RECORDS: usize = 4;
    pub(in super::super) const CUT: usize = 5;
    /// Of pieces of the past: the revision from which on they are not shown.
    pub(in super::super) const TO: usize = 6;
    /// Of objects of which pieces are only a part: as they were inserted, and whether they were
    /// shown whole until their piece was.
    pub(in super::super) const OBJECT: [usize; 3] = [7, 8, 9];
    pub(in super::super) const ENDED: usize = 10;
    /// Of bounds: since, until, from, to.
    pub(in super::super) const BOUNDS: [usize; 4] = [11, 12, 13, 14];
    pub(in super::super) const COUNT: usize = 15;
}

/// In place of the object's number where the piece is the whole object.
pub(super) const WHOLE: u64 = u32::MAX as u64;

const MAGIC: [u8; 8] = *b"LLcondsg";
const VERSION: u16 = 4;

/// What a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(in super::super) enum SegmentKind {
    Block = 1,
    Past = 2,
}

/// The head of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: SegmentKind,
    pub(super) columns: u32,
    pub(super) id: u64,
    /// The revision that made the folder, and that of the tag of users; 0 for the head.
    pub(super) folder: u64,
    pub(super) tag: u64,
    /// All pieces lie within these times and revisions; those of a block meet its times.
    pub(super) since: u64,
    pub(super) until: u64,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) channels: u32,
    pub(super) pieces: u32,
    pub(super) objects: u32,
    pub(super) rows: u32,
    pub(super) payload_bytes: u64,
    pub(super) index_crc: u32,
    /// Of a block: how many of the objects were shown whole until they were cut.
    pub(super) ended: u32,
    pub(super) index_bytes: u64,
    /// The rows of a group: a power of two.
    pub(super) group_rows: u32,
}

/// Where each part begins. The index is what lies between the head and the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) columns: usize,
    /// The channels' numbers.
    pub(super) numbers: usize,
    /// Where each channel's pieces end.
    pub(super) ends: usize,
    pub(super) packed: [Packed; column::COUNT],
    /// Checksums of the payload's chunks.
    pub(super) chunks: usize,
    pub(super) payload: usize,
}

/// How many bounds each level has, from the finest on, of this many pieces.
pub(in super::super) fn level_counts(pieces: usize) -> impl Iterator<Item = usize> {
    let next = |count: &usize| (*count > BLOCK).then(|| count.div_ceil(BLOCK));
    std::iter::successors(Some(pieces), next).skip(1)
}

/// How many bounds all levels have together.
pub(in super::super) fn bounds_count(pieces: usize) -> usize {
    level_counts(pieces).sum()
}

/// Why bytes are no head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadHead {
    Cut,
    Checksum,
    Version(u16),
    Kind,
}

impl Head {
    /// How many numbers a packed column has.
    fn count(&self, packed: usize) -> usize {
        let pieces = self.pieces as usize;
        let has_bounds = self.kind == SegmentKind::Past || self.ended > 0;
        match packed {
            column::TO if self.kind == SegmentKind::Block => 0,
            0..=column::TO => pieces,
            7..=column::ENDED => self.objects as usize,
            _ if has_bounds => bounds_count(pieces),
            _ => 0,
        }
    }

    /// Where the parts lie in these bytes; `None` where they don't fill the index.
    pub(super) fn parts(&self, bytes: &[u8]) -> Option<Parts> {
        let after = |at: usize, count: usize, size: usize| at.checked_add(count.checked_mul(size)?);
        let columns = after(HEAD_BYTES, column::COUNT, DESCRIPTION_BYTES)?;
        let numbers = after(columns, self.columns as usize, COLUMN_BYTES)?;
        let ends = after(numbers, self.channels as usize, 4)?;
        let mut at = after(ends, self.channels as usize, 4)?;
        let descriptions = bytes.get(HEAD_BYTES..columns)?.chunks_exact(DESCRIPTION_BYTES);
        let mut packed = [Packed::default(); column::COUNT];
        for (number, (into, description)) in packed.iter_mut().zip(descriptions).enumerate() {
            *into = Packed::decode(description, at)?;
            at = after(at, self.count(number), into.width)?;
        }
        let chunks = at;
        let count = usize::try_from(self.payload_bytes).ok()?.div_ceil(CHUNK_BYTES);
        let payload = after(chunks, count, 4)?.checked_add(SPARE_BYTES)?;
        let is_whole = payload as u64 == self.index_end()?;
        is_whole.then_some(Parts { columns, numbers, ends, packed, chunks, payload })
    }

    /// Where the index ends, and the payload begins.
    pub(super) fn index_end(&self) -> Option<u64> {
        self.index_bytes.checked_add(HEAD_BYTES as u64)
    }

    /// Where cells of fixed width lie, of which a row has this many bytes; `None` where groups have
    /// no power of two of rows.
    pub(super) fn groups(&self, row_bytes: usize) -> Option<Groups> {
        let shift = self.group_rows.trailing_zeros();
        let rows = self.rows as usize;
        self.group_rows.is_power_of_two().then_some(Groups { row_bytes, shift, rows })
    }

    /// How many bytes the segment has.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.index_end()?.checked_add(self.payload_bytes)
    }

    pub(super) fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(10, &(self.kind as u16).to_le_bytes());
        put(12, &self.columns.to_le_bytes());
        let wide = [self.id, self.folder, self.tag, self.since, self.until, self.from, self.to];
        for (place, value) in wide.into_iter().enumerate() {
            put(16 + 8 * place, &value.to_le_bytes());
        }
        let counts = [self.channels, self.pieces, self.objects, self.rows];
        for (place, value) in counts.into_iter().enumerate() {
            put(72 + 4 * place, &value.to_le_bytes());
        }
        put(88, &self.payload_bytes.to_le_bytes());
        put(96, &self.index_crc.to_le_bytes());
        put(100, &self.ended.to_le_bytes());
        put(104, &self.index_bytes.to_le_bytes());
        put(112, &self.group_rows.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..HEAD_BYTES - 4]);
        bytes[HEAD_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The head, and its checksum, which stands for the whole index.
    pub(super) fn decode(bytes: &[u8]) -> Result<(Self, u32), BadHead> {
        let head = bytes.get(..HEAD_BYTES).ok_or(BadHead::Cut)?;
        let crc = u32_at(head, HEAD_BYTES - 4);
        if head[..8] != MAGIC || crc32fast::hash(&head[..HEAD_BYTES - 4]) != crc {
            return Err(BadHead::Checksum);
        }
        let [version, kind] = [8, 10].map(|at| u16::from_le_bytes([head[at], head[at + 1]]));
        if version != VERSION {
            return Err(BadHead::Version(version));
        }
        let kind = match kind {
            1 => SegmentKind::Block,
            2 => SegmentKind::Past,
            _ => return Err(BadHead::Kind),
        };
        let wide = |place: usize| u64_at(head, 16 + 8 * place);
        let count = |place: usize| u32_at(head, 72 + 4 * place);
        let head = Self {
            kind,
            columns: u32_at(head, 12),
            id: wide(0),
            folder: wide(1),
            tag: wide(2),
            since: wide(3),
            until: wide(4),
            from: wide(5),
            to: wide(6),
            channels: count(0),
            pieces: count(1),
            objects: count(2),
            rows: count(3),
            payload_bytes: u64_at(head, 88),
            index_crc: u32_at(head, 96),
            ended: u32_at(head, 100),
            index_bytes: u64_at(head, 104),
            group_rows: u32_at(head, 112),
        };
        Ok((head, crc))
    }
}
