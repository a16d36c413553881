//! The binary form of a slice: all its folders by columns.
//!
//! ```text
//! "LLSLICE1"  revision u64  time u64  folders u32
//! each folder: its objects, as `columnar` has them
//! ```

use super::columnar::{Malformed, Reader, put_cells, put_count, put_head, put_objects};
use crate::model::{ANSWER, Answer, Cells, Kind, Object, Refusal, Shown};

/// The first bytes, with the version of the form.
pub const MAGIC: [u8; 8] = *b"LLSLICE1";

/// What a slice is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceHead {
    /// The revision.
    pub revision: u64,
    /// The time.
    pub since: u64,
}

fn begin(out: &mut Vec<u8>, SliceHead { revision, since }: SliceHead, folders: usize) {
    out.extend(MAGIC);
    out.extend(revision.to_le_bytes());
    out.extend(since.to_le_bytes());
    put_count(out, folders);
}

/// The bytes of a slice of what folders show, straight from where that lies.
///
/// # Errors
/// When there are too many of them, or a segment is damaged.
pub fn encode_shown(head: SliceHead, folders: &[Shown<'_>]) -> Result<Vec<u8>, Refusal> {
    let mut out = Vec::with_capacity(folders.iter().map(least_bytes).sum());
    begin(&mut out, head, folders.len());
    let (mut cells, mut bytes) = (Cells::new(Kind::Bool), 0);
    for shown in folders {
        put_head(&mut out, shown.path, shown.columns, &shown.objects, shown.rows());
        for (number, column) in shown.columns.iter().enumerate() {
            cells.restart(column.kind);
            shown.read(number, &mut cells, bytes)?;
            bytes += cells.all_bytes();
            put_cells(&mut out, &cells);
        }
    }
    Ok(out)
}

/// How many bytes a folder's objects take if all cells have a value, and strings and blobs are
/// empty, and at most a little more.
fn least_bytes(shown: &Shown<'_>) -> usize {
    let (objects, rows) = (shown.objects.len(), shown.rows());
    let columns = shown.columns.iter().map(|column| {
        let width = column.kind.width_bytes().unwrap_or(size_of::<u64>());
        column.name.len() + 9 + rows * width
    });
    let object = size_of::<Object>();
    64 + shown.path.len() + objects * object + columns.sum::<usize>()
}

/// The bytes of a slice.
pub fn encode_slice(head: SliceHead, folders: &[Answer]) -> Vec<u8> {
    let mut out = Vec::new();
    begin(&mut out, head, folders.len());
    for answer in folders {
        let Answer { folder, columns, objects, payload } = answer;
        put_objects(&mut out, folder, columns, objects, payload);
    }
    out
}

/// The slice of these bytes, all of them.
///
/// # Errors
/// When they are none; the error says where they stop making sense.
pub fn decode_slice(bytes: &[u8]) -> Result<(SliceHead, Vec<Answer>), Malformed> {
    let mut reader = Reader::new(bytes);
    let rows = |answer: &Answer| u64::from(answer.payload.rows);
    // Rows without columns take no bytes, and are shown all the same.
    let is_answer = |folders: &[Answer]| folders.iter().map(rows).sum::<u64>() <= ANSWER.most;
    let read = slice(&mut reader);
    let read = read.filter(|(_, folders)| reader.rest().is_empty() && is_answer(folders));
    read.ok_or_else(|| reader.malformed("slice"))
}

fn slice(reader: &mut Reader<'_>) -> Option<(SliceHead, Vec<Answer>)> {
    reader.magic(&MAGIC)?;
    let head = SliceHead { revision: reader.u64()?, since: reader.u64()? };
    let folders = reader.u32()?;
    let folders = (0..folders).map(|_| reader.objects()).collect::<Option<_>>()?;
    Some((head, folders))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Cells, ColumnSpec, Kind, Object, Table, Value};
    use proptest::prelude::*;

    const HEAD: SliceHead = SliceHead { revision: 7, since: 1 << 40 };

    fn folders() -> Vec<Answer> {
        let column = |(name, kind): (&str, _)| ColumnSpec { name: name.to_owned(), kind };
        let columns = [("v", Kind::Float), ("s", Kind::String)].map(column).to_vec();
        let mut payload = Table::new(columns.iter().map(|column| column.kind));
        for (number, text) in [(1.5, "é"), (f32::NAN, "")] {
            payload.columns[0].push(&Value::Float(number)).expect("a float");
            payload.columns[1].push(&Value::Text(text.to_owned())).expect("text");
            payload.rows += 1;
        }
        payload.columns.iter_mut().for_each(Cells::push_null);
        payload.rows += 1;
        let object = |channel, records| Object { channel, since: 1, until: 9, records };
        let folder = |name: &str| name.to_owned();
        let empty = Answer {
            folder: folder("/empty"),
            columns: Vec::new(),
            objects: vec![object(0, 0)],
            payload: Table::default(),
        };
        let objects = vec![object(3, 2), object(u32::MAX, 1)];
        vec![Answer { folder: folder("/a/b"), columns, objects, payload }, empty]
    }

    #[test]
    fn a_slice_is_read_as_it_was_written() {
        let bytes = encode_slice(HEAD, &folders());
        assert_eq!(decode_slice(&bytes), Ok((HEAD, folders())));
        for end in 0..bytes.len() {
            assert!(decode_slice(&bytes[..end]).is_err(), "{end}");
        }
        let more = [&bytes[..], &[0]].concat();
        let wrong = Malformed { form: "slice", at: bytes.len(), bytes: more.len() };
        assert_eq!(decode_slice(&more), Err(wrong));

        let mut endless = folders().remove(1);
        endless.objects[0].records = u32::MAX;
        endless.payload.rows = u32::MAX;
        assert!(decode_slice(&encode_slice(HEAD, &[endless])).is_err(), "rows without columns");
    }

    #[test]
    fn the_bytes_are_those_that_the_page_on_the_form_shows() {
        let column = ColumnSpec { name: "v".to_owned(), kind: Kind::Uint8 };
        let mut payload = Table::new([Kind::Uint8]);
        payload.columns[0].push(&Value::Integer(0xab)).expect("a byte");
        payload.rows = 1;
        let objects = vec![Object { channel: 2, since: 3, until: 4, records: 1 }];
        let folder = Answer { folder: "/f".to_owned(), columns: vec![column], objects, payload };
        let bytes = encode_slice(SliceHead { revision: 5, since: 6 }, &[folder]);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let expected = concat!(
            "4c4c534c49434531",
            "0500000000000000",
            "0600000000000000",
            "01000000",
            "02000000",
            "2f66",
            "01000000",
            "01",
            "01000000",
            "76",
            "01000000",
            "01000000",
            "02000000",
            "0300000000000000",
            "0400000000000000",
            "01000000",
            "00000000",
            "ab",
        );
        assert_eq!(hex, expected);
    }

    proptest! {
        #[test]
        fn no_bytes_are_more_than_refused(bytes in prop::collection::vec(any::<u8>(), 0..100),
            places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)) {
            let _ = decode_slice(&bytes);
            let mut near = encode_slice(HEAD, &folders());
            for (place, byte) in places {
                let place = place.index(near.len());
                near[place] = byte;
            }
            if let Ok((head, folders)) = decode_slice(&near) {
                prop_assert_eq!(encode_slice(head, &folders), near);
            }
        }
    }
}
