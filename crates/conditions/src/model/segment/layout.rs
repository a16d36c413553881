//! Where everything lies in a segment.

use super::super::past::BLOCK;

/// The bytes of the head.
pub(super) const HEAD_BYTES: usize = 128;

/// The payload is checked in chunks of this size: the first read of a slice checks about one for
/// each column of a block, and 4 bytes each are kept of it.
pub(super) const CHUNK_BYTES: usize = 16 << 10;

pub(super) const COLUMN_BYTES: usize = 16;
/// A piece without its first time: until, from, row, records, and its object if that is cut.
pub(super) const PIECE_BYTES: usize = 28;
pub(super) const OBJECT_BYTES: usize = 24;
pub(super) const BOUNDS_BYTES: usize = 32;

/// In place of the object's number where the piece is the whole object.
pub(super) const WHOLE: u32 = u32::MAX;

const MAGIC: [u8; 8] = *b"LLcondsg";
const VERSION: u16 = 1;

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
}

/// Where each part begins. The index is what lies between the head and the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) columns: usize,
    /// The channels' numbers.
    pub(super) numbers: usize,
    /// Where each channel's pieces end.
    pub(super) ends: usize,
    pub(super) sinces: usize,
    pub(super) pieces: usize,
    /// Of the past: from which revision on each piece is not shown.
    pub(super) tos: usize,
    /// Of the past: bounds of 16 pieces, of 16 such bounds, and so on.
    pub(super) bounds: usize,
    /// The objects of which pieces are only a part.
    pub(super) objects: usize,
    /// Checksums of the payload's chunks.
    pub(super) chunks: usize,
    pub(super) payload: usize,
    pub(super) end: usize,
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
    pub(super) fn parts(&self) -> Option<Parts> {
        let (pieces, is_past) = (self.pieces as usize, self.kind == SegmentKind::Past);
        let past = if is_past { pieces } else { 0 };
        let bounds_count = if is_past { bounds_count(pieces) } else { 0 };
        let chunks_count = usize::try_from(self.payload_bytes).ok()?.div_ceil(CHUNK_BYTES);
        let columns = HEAD_BYTES;
        let after = |at: usize, count: usize, size: usize| at.checked_add(count.checked_mul(size)?);
        let numbers = after(columns, self.columns as usize, COLUMN_BYTES)?;
        let ends = after(numbers, self.channels as usize, 4)?;
        let sinces = after(ends, self.channels as usize, 4)?;
        let piece_at = after(sinces, pieces, 8)?;
        let tos = after(piece_at, pieces, PIECE_BYTES)?;
        let bounds = after(tos, past, 8)?;
        let objects = after(bounds, bounds_count, BOUNDS_BYTES)?;
        let chunks = after(objects, self.objects as usize, OBJECT_BYTES)?;
        let payload = after(chunks, chunks_count, 4)?;
        let end = payload.checked_add(usize::try_from(self.payload_bytes).ok()?)?;
        let pieces = piece_at;
        #[rustfmt::skip]
        let parts = Parts {
            columns, numbers, ends, sinces, pieces, tos, bounds, objects, chunks, payload, end,
        };
        Some(parts)
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
        };
        Ok((head, crc))
    }
}

/// The number at a place; 0 beyond the end, which no place that was checked is.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..).and_then(<[u8]>::first_chunk);
    found.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// As [`u64_at`].
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..).and_then(<[u8]>::first_chunk);
    found.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}
