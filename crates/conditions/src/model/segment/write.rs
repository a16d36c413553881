//! Writing a segment.

use super::super::past::{Bounds, levels};
use super::super::piece::Inserted;
use super::super::table::{Cells, Table};
use super::layout::{
    CHUNK_BYTES, Groups, HEAD_BYTES, Head, SPARE_BYTES, SegmentKind, WHOLE, column,
};
use super::packed::Packed;

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
    /// Whether the object, which is cut, was shown whole from its revision until that from which on
    /// this piece is.
    pub(in super::super) is_ended: bool,
    pub(in super::super) first_row: u32,
    pub(in super::super) records: u32,
}

impl Entry {
    fn is_whole(&self) -> bool {
        let Inserted { since, until, revision } = self.object;
        let Bounds { since: first, until: end, from, .. } = self.bounds;
        (since, until, revision) == (first, end, from)
    }

    /// Of the past: its own bounds; of a block: those of what is past of its object.
    fn past(&self, kind: SegmentKind) -> Bounds {
        match kind {
            SegmentKind::Past => self.bounds,
            SegmentKind::Block if self.is_ended => Bounds::of_whole(self.object, self.bounds.from),
            SegmentKind::Block => Bounds::NEVER,
        }
    }
}

/// The bytes of a segment. Entries are sorted by channel and time; their rows lie in the payload.
pub(in super::super) fn encode(of: &SegmentOf, entries: &[Entry], payload: &Table) -> Vec<u8> {
    let (groups, mut data) = grouped(payload);
    let mut columns = Vec::new();
    for cells in &payload.columns {
        columns.extend((cells.kind() as u32).to_le_bytes());
        columns.extend((cells.nulls().len() as u32).to_le_bytes());
        columns.extend((cells.bytes().len() as u64).to_le_bytes());
        if cells.kind().width_bytes().is_none() {
            data.extend_from_slice(cells.bytes());
            data.extend(cells.ends().iter().flat_map(|end| end.to_le_bytes()));
        }
        data.extend(cells.nulls().iter().flat_map(|row| row.to_le_bytes()));
    }
    let same = |one: &Entry, other: &Entry| one.channel == other.channel;
    let (mut ends, mut end, mut channels) = (Vec::new(), 0, 0);
    for of_channel in entries.chunk_by(same) {
        end += of_channel.len() as u32;
        channels += 1;
        columns.extend(of_channel[0].channel.to_le_bytes());
        ends.extend(end.to_le_bytes());
    }
    columns.extend(ends);
    let ended = entries.iter().filter(|entry| entry.is_ended).count() as u32;
    let packed = packed(of.kind, entries, ended > 0);
    let mut bytes = vec![0; HEAD_BYTES];
    let described: Vec<_> =
        packed.iter().map(|numbers| Packed::of(numbers.iter().copied())).collect();
    described.iter().for_each(|packed| packed.describe(&mut bytes));
    bytes.extend(columns);
    for (column, numbers) in described.iter().zip(&packed) {
        column.append(numbers.iter().copied(), &mut bytes);
    }
    bytes.extend(data.chunks(CHUNK_BYTES).flat_map(|chunk| crc32fast::hash(chunk).to_le_bytes()));
    bytes.extend([0; SPARE_BYTES]);
    let mut all = entries.iter().map(|entry| entry.bounds).reduce(Bounds::and);
    if of.kind == SegmentKind::Block {
        let times = |all: Bounds| Bounds { since: of.since, until: of.until, ..all };
        all = all.map(times);
    }
    let none = Bounds { since: of.since, until: of.until, from: 0, to: 0 };
    let all = all.unwrap_or(none);
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
        objects: packed[column::ENDED].len() as u32,
        rows: payload.rows,
        payload_bytes: data.len() as u64,
        index_crc: crc32fast::hash(&bytes[HEAD_BYTES..]),
        ended,
        index_bytes: (bytes.len() - HEAD_BYTES) as u64,
        group_rows: groups.group_rows() as u32,
    };
    bytes[..HEAD_BYTES].copy_from_slice(&head.encode());
    bytes.extend(data);
    bytes
}

/// The cells of fixed width, by groups of rows.
fn grouped(payload: &Table) -> (Groups, Vec<u8>) {
    let rows = payload.rows as usize;
    let width = |cells: &Cells| cells.kind().width_bytes().unwrap_or(0);
    let groups = Groups::new(payload.columns.iter().map(width).sum(), rows);
    let mut data = Vec::with_capacity(rows * groups.row_bytes);
    for first in (0..rows).step_by(groups.group_rows()) {
        let last = rows.min(first + groups.group_rows());
        for cells in &payload.columns {
            let width = width(cells);
            data.extend_from_slice(&cells.bytes()[width * first..width * last]);
        }
    }
    (groups, data)
}

/// The numbers of all packed columns.
fn packed(kind: SegmentKind, entries: &[Entry], has_ended: bool) -> [Vec<u64>; column::COUNT] {
    let mut packed = [const { Vec::new() }; column::COUNT];
    for entry in entries {
        let Entry { bounds, object, first_row, records, is_ended, .. } = entry;
        packed[column::SINCE].push(bounds.since);
        packed[column::UNTIL].push(bounds.until);
        packed[column::FROM].push(bounds.from);
        packed[column::ROW].push((*first_row).into());
        packed[column::RECORDS].push((*records).into());
        let cut = packed[column::ENDED].len() as u64;
        packed[column::CUT].push(if entry.is_whole() { WHOLE } else { cut });
        if !entry.is_whole() {
            let values = [object.since, object.until, object.revision];
            column::OBJECT.iter().zip(values).for_each(|(at, value)| packed[*at].push(value));
            packed[column::ENDED].push((*is_ended).into());
        }
        if kind == SegmentKind::Past {
            packed[column::TO].push(bounds.to);
        }
    }
    if kind == SegmentKind::Past || has_ended {
        let finest = entries.iter().map(|entry| entry.past(kind)).collect();
        for Bounds { since, until, from, to } in levels(finest).into_iter().flatten() {
            let values = [since, until, from, to];
            column::BOUNDS.iter().zip(values).for_each(|(at, value)| packed[*at].push(value));
        }
    }
    packed
}
