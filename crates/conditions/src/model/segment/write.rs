//! Writing a segment.

use super::super::past::{Bounds, levels};
use super::super::piece::Inserted;
use super::super::table::Table;
use super::layout::{CHUNK_BYTES, HEAD_BYTES, Head, SegmentKind, WHOLE};

/// What a segment is of.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct SegmentOf {
    pub(in super::super) kind: SegmentKind,
    pub(in super::super) id: u64,
    /// The revision that made the folder, and that of the tag of users; 0 for the head.
    pub(in super::super) folder: u64,
    pub(in super::super) tag: u64,
    /// Of a block: its times.
    pub(in super::super) since: u64,
    pub(in super::super) until: u64,
}

/// A piece to be written.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Entry {
    pub(in super::super) channel: u32,
    pub(in super::super) bounds: Bounds,
    pub(in super::super) object: Inserted,
    pub(in super::super) first_row: u32,
    pub(in super::super) records: u32,
}

/// The bytes of a segment. Entries are sorted by channel and time; their rows lie in the payload.
pub(in super::super) fn encode(of: &SegmentOf, entries: &[Entry], payload: &Table) -> Vec<u8> {
    let mut data = Vec::new();
    let mut bytes = vec![0; HEAD_BYTES];
    for cells in &payload.columns {
        bytes.extend((cells.kind() as u32).to_le_bytes());
        bytes.extend((cells.nulls().len() as u32).to_le_bytes());
        bytes.extend((cells.bytes().len() as u64).to_le_bytes());
        data.extend_from_slice(cells.bytes());
        data.extend(cells.ends().iter().flat_map(|end| end.to_le_bytes()));
        data.extend(cells.nulls().iter().flat_map(|row| row.to_le_bytes()));
    }
    let same = |one: &Entry, other: &Entry| one.channel == other.channel;
    let (mut ends, mut end, mut channels) = (Vec::new(), 0, 0);
    for of_channel in entries.chunk_by(same) {
        end += of_channel.len() as u32;
        channels += 1;
        bytes.extend(of_channel[0].channel.to_le_bytes());
        ends.extend(end.to_le_bytes());
    }
    bytes.extend(ends);
    bytes.extend(entries.iter().flat_map(|entry| entry.bounds.since.to_le_bytes()));
    let (mut objects, mut count) = (Vec::new(), 0);
    for Entry { bounds, object, first_row, records, .. } in entries {
        bytes.extend(bounds.until.to_le_bytes());
        bytes.extend(bounds.from.to_le_bytes());
        bytes.extend(first_row.to_le_bytes());
        bytes.extend(records.to_le_bytes());
        let Inserted { since, until, revision } = *object;
        if (since, until, revision) == (bounds.since, bounds.until, bounds.from) {
            bytes.extend(WHOLE.to_le_bytes());
        } else {
            bytes.extend(u32::to_le_bytes(count));
            [since, until, revision].iter().for_each(|value| objects.extend(value.to_le_bytes()));
            count += 1;
        }
    }
    let all = entries.iter().map(|entry| entry.bounds).reduce(Bounds::and);
    let mut all = all.unwrap_or(Bounds { since: 0, until: 0, from: 0, to: 0 });
    if of.kind == SegmentKind::Past {
        bytes.extend(entries.iter().flat_map(|entry| entry.bounds.to.to_le_bytes()));
        let finest = entries.iter().map(|entry| entry.bounds).collect();
        for Bounds { since, until, from, to } in levels(finest).into_iter().flatten() {
            [since, until, from, to].iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        }
    } else {
        (all.since, all.until) = (of.since, of.until);
    }
    bytes.extend(objects);
    bytes.extend(data.chunks(CHUNK_BYTES).flat_map(|chunk| crc32fast::hash(chunk).to_le_bytes()));
    let head = Head {
        kind: of.kind,
        columns: payload.columns.len() as u32,
        id: of.id,
        folder: of.folder,
        tag: of.tag,
        since: all.since,
        until: all.until,
        from: all.from,
        to: all.to,
        channels,
        pieces: entries.len() as u32,
        objects: count,
        rows: payload.rows,
        payload_bytes: data.len() as u64,
        index_crc: crc32fast::hash(&bytes[HEAD_BYTES..]),
    };
    bytes[..HEAD_BYTES].copy_from_slice(&head.encode());
    bytes.extend(data);
    bytes
}
