//! Segments that are read as they were written, and damaged ones.

use bytes::Bytes;
use proptest::prelude::*;

use super::super::past::Bounds;
use super::super::piece::Inserted;
use super::super::table::{Cells, Table};
use super::super::value::{Kind, Value};
use super::layout::{Groups, HEAD_BYTES, Head};
use super::{Entry, Segment, SegmentKind, SegmentOf, encode};

const ID: u64 = 7;

/// The values of a row.
fn row(number: u32) -> [Value; 4] {
    let text = (0..number % 5).map(|_| 'é').collect();
    let late = if number.is_multiple_of(3) { Value::Null } else { Value::Bool(number > 30) };
    let blob = Value::Bytes(vec![number as u8; number as usize % 3]);
    [Value::Integer(i128::from(number)), Value::Text(text), late, blob]
}

/// Three channels with 20 pieces each, of one row but for every seventh, which has none.
fn entries(kind: SegmentKind) -> Vec<Entry> {
    let mut entries = Vec::new();
    for channel in [3, 5, 1_000_000] {
        for number in 0..20 {
            let row = entries.len() as u32;
            let (since, from) = (10 * number, 100 + number);
            let to = if kind == SegmentKind::Past { from + 5 } else { u64::MAX };
            let until = since + 10;
            let bounds = Bounds { since, until, from, to };
            // Cut from two revisions before on, or whole.
            let (until, revision) =
                if number % 4 == 0 { (until + 5, from - 2) } else { (until, from) };
            let object = Inserted { since, until, revision };
            let records = u32::from(!row.is_multiple_of(7));
            let is_ended = kind == SegmentKind::Block && number % 8 == 0;
            entries.push(Entry { channel, bounds, object, is_ended, first_row: row, records });
        }
    }
    entries
}

fn bytes(kind: SegmentKind) -> Vec<u8> {
    let entries = entries(kind);
    let mut payload = Table::new([Kind::Uint16, Kind::String, Kind::Bool, Kind::Blob]);
    for number in 0..entries.len() as u32 {
        for (cells, value) in payload.columns.iter_mut().zip(row(number)) {
            cells.push(&value).expect("of its kind");
        }
        payload.rows += 1;
    }
    let of = SegmentOf { kind, id: ID, folder: 1, tag: 0, since: 0, until: 200 };
    encode(&of, &entries, &payload)
}

/// Reads all that there is, whatever it says.
fn read(segment: &Segment) {
    for place in 0..segment.channels() {
        let (channel, pieces) = (segment.number(place), segment.pieces_of(place));
        assert_eq!(segment.place(channel, 0), Some(place));
        for time in [0, 55, u64::MAX] {
            let _ = segment.before(pieces.clone(), time, 3);
        }
        let mut seen = 0;
        segment.visit(channel, &mut |_| true, &mut |_| seen += 1);
        for piece in pieces {
            let (first, records) = segment.rows_of(piece);
            let _ = (segment.object(piece), segment.bounds(piece));
            segment.bytes_around(first as usize..(first as usize + records as usize), &mut |_| ());
            for (number, kind) in
                [Kind::Uint16, Kind::String, Kind::Bool, Kind::Blob].into_iter().enumerate()
            {
                let rows = first as usize..first as usize + records as usize;
                let _ = segment.append(number, rows, &mut Cells::new(kind));
            }
        }
    }
    let _ = segment.check();
}

#[test]
fn a_segment_is_read_as_it_was_written() {
    for kind in [SegmentKind::Block, SegmentKind::Past] {
        let segment = Segment::open(ID, Bytes::from(bytes(kind))).expect("a segment");
        assert_eq!(segment.check(), []);
        assert!(segment.is_of(kind, 1, 0) && !segment.is_of(kind, 1, 2));
        assert_eq!(segment.place(4, 1), None);
        let entries = entries(kind);
        for (piece, entry) in entries.iter().enumerate() {
            assert_eq!(segment.object(piece), entry.object);
            let (first, records) = segment.rows_of(piece);
            assert_eq!((first, records), (entry.first_row, entry.records));
            let place = segment.place(entry.channel, 2).expect("a channel");
            let pieces = segment.pieces_of(place);
            let at = entry.bounds.since + 3;
            assert_eq!(segment.before(pieces, at, piece % 7), Some(piece));
            let mut row = Table::new([Kind::Uint16, Kind::String, Kind::Bool, Kind::Blob]);
            for (number, cells) in row.columns.iter_mut().enumerate() {
                segment.append(number, first as usize..first as usize + 1, cells).expect("rows");
            }
            assert_eq!(row.row(0).collect::<Vec<_>>(), self::row(first));
            let past = match (kind, entry.is_ended) {
                (SegmentKind::Past, _) => entry.bounds,
                (SegmentKind::Block, true) => Bounds::of_whole(entry.object, entry.bounds.from),
                (SegmentKind::Block, false) => Bounds::NEVER,
            };
            assert_eq!(segment.bounds(piece), past);
            let (revision, mut found) = (past.to.wrapping_sub(1), Vec::new());
            let mut wants = |bounds: Bounds| bounds.may_show(at, at, revision);
            segment.visit(entry.channel, &mut wants, &mut |piece| found.push(piece));
            assert_eq!(found, if past == Bounds::NEVER { vec![] } else { vec![piece] });
        }
        let mut late = Cells::new(Kind::Int32);
        segment.append(4, 0..2, &mut late).expect("a column that came later");
        assert_eq!((late.rows(), late.nulls()), (2, &[0, 1][..]));
    }
}

#[test]
fn rows_of_many_groups_are_read_as_they_were_written_and_few_rows_lie_together() {
    const ROWS: usize = 9_000;
    let kinds = || [Kind::Uint16, Kind::String, Kind::Double, Kind::Bool].into_iter();
    let kinds = || kinds().chain((0..96).map(|_| Kind::Float));
    let mut payload = Table::new(kinds());
    for number in 0..ROWS as u32 {
        let [integer, text, bool, _] = row(number);
        let double = Value::Double(f64::from(number));
        let floats = (0..96).map(|column| Value::Float((number + column) as f32));
        let values = [integer, text, double, bool].into_iter().chain(floats);
        for (cells, value) in payload.columns.iter_mut().zip(values) {
            cells.push(&value).expect("of its kind");
        }
        payload.rows += 1;
    }
    let of =
        SegmentOf { kind: SegmentKind::Block, id: ID, folder: 1, tag: 0, since: 0, until: 200 };
    let bytes = encode(&of, &[], &payload);
    let segment = Segment::open(ID, Bytes::from(bytes)).expect("a segment");
    assert_eq!(segment.check(), []);
    for rows in [0..ROWS, 0..0, 31..32, 31..33, 32..64, 100..1_000, ROWS - 1..ROWS] {
        let mut around = Vec::new();
        segment.bytes_around(rows.clone(), &mut |bytes| around.push(bytes.to_vec()));
        let mut texts = Cells::new(Kind::String);
        texts.append(&payload.columns[1], rows.clone());
        let is_there = around.iter().any(|bytes: &Vec<u8>| {
            bytes.windows(texts.bytes().len().max(1)).any(|found| found == texts.bytes())
        });
        assert!(is_there || rows.is_empty(), "{rows:?}");
        for (number, column) in payload.columns.iter().enumerate() {
            let (mut read, mut expected) = (Cells::new(column.kind()), Cells::new(column.kind()));
            segment.append(number, rows.clone(), &mut read).expect("rows");
            expected.append(column, rows.clone());
            assert_eq!(read, expected, "{rows:?} of column {number}");
        }
    }
    // However many rows are added one by one, they are few pieces.
    let mut chunks = segment.chunks_of_any();
    (0..ROWS).for_each(|row| segment.add_chunks(row..row + 1, &mut chunks));
    let mut all = Vec::new();
    segment.hand_on(&chunks, &mut |bytes| all.push(bytes.len()));
    assert!(all.len() <= 2, "{all:?}");
    let groups = Groups::new(395, ROWS);
    assert_eq!(groups.group_rows(), 32);
    let last = (2 + 8 + 1 + 95 * 4, 4);
    let all = groups.extents(0, 2, 100..200).chain(groups.extents(last.0, last.1, 100..200));
    let all: Vec<_> = all.collect();
    let (begin, end) = (all.iter().map(|at| at.start).min(), all.iter().map(|at| at.end).max());
    assert_eq!(groups.around(100..200), 96 * 395..224 * 395);
    assert!(begin.is_some_and(|begin| begin >= 96 * 395), "{all:?}");
    assert!(end.is_some_and(|end| end <= 224 * 395), "{all:?}");
    assert_eq!(groups.around(ROWS - 1..ROWS), (ROWS - 8) * 395..ROWS * 395);
}

#[test]
fn channels_that_begin_together_are_known_to_be_alike() {
    let entry = |channel: u32, number: u32, (until, row, records): (u64, u32, u32)| {
        let (since, from) = (u64::from(10 * number), u64::from(100 + number));
        let object = Inserted { since, until, revision: from };
        let bounds = Bounds { since, until, from, to: u64::MAX };
        Entry { channel, bounds, object, is_ended: false, first_row: row, records }
    };
    // Two records of each, interval by interval; of the channels from 3 on something is another.
    let whole = |channel: u32, number: u32| {
        let (until, row) = (u64::from(10 * number + 10), 2 * (8 * number + channel));
        match (channel, number) {
            (3, 2) => (until - 1, row, 2),
            (5, 1) => (until, row, 1),
            (7, 0) => (until, row - 1, 2),
            _ => (until, row, 2),
        }
    };
    let channels = (0..8).flat_map(|channel| (0..4).map(move |number| (channel, number)));
    let entries: Vec<_> = channels.map(|(c, n)| entry(c, n, whole(c, n))).collect();
    let (payload, of) = (Table { rows: 64, columns: Vec::new() }, 40);
    let of = SegmentOf { kind: SegmentKind::Block, id: ID, folder: 1, tag: 0, since: 0, until: of };
    let segment = Segment::open(ID, Bytes::from(encode(&of, &entries, &payload)));
    let segment = segment.expect("a segment");
    let alike = (0..8).map(|place| segment.is_alike(place));
    assert_eq!(alike.collect::<Vec<_>>(), [false, true, true, false, false, false, false, false]);
}

#[test]
fn every_flipped_byte_is_noticed_and_its_place_is_named() {
    for kind in [SegmentKind::Block, SegmentKind::Past] {
        let whole = bytes(kind);
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            let found = match Segment::open(ID, Bytes::from(bytes)) {
                Ok(segment) => segment.check(),
                Err(damage) => vec![damage],
            };
            assert_eq!(found.len(), 1, "byte {at} of {}", whole.len());
            assert_eq!(found[0].file, "00000000000000000007.segment");
            assert!(found[0].offset <= at as u64, "byte {at}: {}", found[0]);
        }
        for size in 0..whole.len() {
            let cut = Bytes::copy_from_slice(&whole[..size]);
            assert!(Segment::open(ID, cut).is_err(), "{size} of {} bytes", whole.len());
        }
        let other = Segment::open(ID + 1, Bytes::from(whole)).expect_err("another number");
        assert_eq!(other.why, "this is segment 7; restore all files from a backup");
    }
}

/// Puts this number of rows of a group, and the right checksums, to a segment's head and index.
fn seal(bytes: &mut [u8], group_rows: u32) {
    let Ok((mut head, _)) = Head::decode(bytes) else { return };
    head.group_rows = group_rows;
    let index = HEAD_BYTES..HEAD_BYTES + head.index_bytes as usize;
    head.index_crc = crc32fast::hash(&bytes[index]);
    bytes[..HEAD_BYTES].copy_from_slice(&head.encode());
}

proptest! {
    #[test]
    fn no_bytes_are_more_than_refused(
        random in prop::collection::vec(any::<u8>(), 0..300),
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        is_past: bool,
        group_rows in prop_oneof![(0..32_u32).prop_map(|shift| 1_u32 << shift), any::<u32>()],
    ) {
        prop_assert!(Segment::open(ID, Bytes::from(random)).is_err());
        let kind = if is_past { SegmentKind::Past } else { SegmentKind::Block };
        let mut near = bytes(kind);
        for (place, byte) in places {
            // In the index, under a checksum that says it is right.
            let place = HEAD_BYTES + place.index(near.len() - HEAD_BYTES);
            near[place] = byte;
        }
        seal(&mut near, group_rows);
        if let Ok(segment) = Segment::open(ID, Bytes::from(near)) {
            read(&segment);
        }
    }
}
