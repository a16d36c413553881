//! The binary form of a slice: columns as they are kept, little-endian, without padding.
//!
//! ```text
//! "LLSLICE1"  revision u64  time u64  folders u32
//! each folder:
//!   path u32 + bytes   columns u32, each: kind u8, name u32 + bytes   objects u32   rows u32
//!   channels u32 × objects   since u64 × objects   until u64 × objects   records u32 × objects
//!   each column:
//!     nulls u32, rows u32 × nulls
//!     of a fixed width: width × rows bytes
//!     of strings and blobs: ends u64 × rows, bytes
//! ```

use crate::model::{Answer, Cells, ColumnSpec, Kind, Object, Table};

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

/// Bytes that are no slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no slice: wrong at byte {at} of {bytes}")]
pub struct BadSlice {
    /// Where.
    pub at: usize,
    /// How many bytes there are.
    pub bytes: usize,
}

/// The bytes of a slice.
pub fn encode_slice(head: SliceHead, folders: &[Answer]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(MAGIC);
    out.extend(head.revision.to_le_bytes());
    out.extend(head.since.to_le_bytes());
    put_count(&mut out, folders.len());
    for folder in folders {
        put_text(&mut out, &folder.folder);
        put_count(&mut out, folder.columns.len());
        for column in &folder.columns {
            out.push(column.kind as u8);
            put_text(&mut out, &column.name);
        }
        put_count(&mut out, folder.objects.len());
        put_count(&mut out, folder.payload.rows as usize);
        out.extend(folder.objects.iter().flat_map(|object| object.channel.to_le_bytes()));
        out.extend(folder.objects.iter().flat_map(|object| object.since.to_le_bytes()));
        out.extend(folder.objects.iter().flat_map(|object| object.until.to_le_bytes()));
        out.extend(folder.objects.iter().flat_map(|object| object.records.to_le_bytes()));
        for cells in &folder.payload.columns {
            put_count(&mut out, cells.nulls().len());
            out.extend(cells.nulls().iter().flat_map(|row| row.to_le_bytes()));
            out.extend(cells.ends().iter().flat_map(|end| end.to_le_bytes()));
            out.extend(cells.bytes());
        }
    }
    out
}

/// Numbers of folders, objects and rows are below their limits, which are less than 2^32.
fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend((count as u32).to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_count(out, text.len());
    out.extend(text.as_bytes());
}

/// The slice of these bytes, all of them.
///
/// # Errors
/// When they are none; the error says where they stop making sense.
pub fn decode_slice(bytes: &[u8]) -> Result<(SliceHead, Vec<Answer>), BadSlice> {
    let mut reader = Reader { all: bytes, rest: bytes };
    let read = reader.slice().filter(|_| reader.rest.is_empty());
    read.ok_or(BadSlice { at: bytes.len() - reader.rest.len(), bytes: bytes.len() })
}

struct Reader<'a> {
    all: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    fn u32s(&mut self, count: u32) -> Option<Vec<u32>> {
        let bytes = self.take((count as usize).checked_mul(4)?)?;
        Some(bytes.as_chunks::<4>().0.iter().copied().map(u32::from_le_bytes).collect())
    }

    fn u64s(&mut self, count: u32) -> Option<Vec<u64>> {
        let bytes = self.take((count as usize).checked_mul(8)?)?;
        Some(bytes.as_chunks::<8>().0.iter().copied().map(u64::from_le_bytes).collect())
    }

    fn text(&mut self) -> Option<String> {
        let length = self.u32()? as usize;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }

    fn slice(&mut self) -> Option<(SliceHead, Vec<Answer>)> {
        if self.take(MAGIC.len())? != MAGIC {
            self.rest = self.all;
            return None;
        }
        let head = SliceHead { revision: self.u64()?, since: self.u64()? };
        let folders = self.u32()?;
        // What is not there is noticed before memory is taken for it.
        let folders = (0..folders).map(|_| self.folder()).collect::<Option<_>>()?;
        Some((head, folders))
    }

    fn folder(&mut self) -> Option<Answer> {
        let folder = self.text()?;
        let columns = self.u32()?;
        let column = |reader: &mut Self| {
            let kind = Kind::numbered(reader.take(1)?[0])?;
            Some(ColumnSpec { kind, name: reader.text()? })
        };
        let columns = (0..columns).map(|_| column(self)).collect::<Option<Vec<_>>>()?;
        let (count, rows) = (self.u32()?, self.u32()?);
        let channels = self.u32s(count)?;
        let (since, until) = (self.u64s(count)?, self.u64s(count)?);
        let records = self.u32s(count)?;
        let objects = channels.into_iter().zip(since).zip(until).zip(records);
        let objects = objects.map(|(((channel, since), until), records)| Object {
            channel,
            since,
            until,
            records,
        });
        let mut payload = Table { rows, columns: Vec::new() };
        for column in &columns {
            let nulls = self.u32()?;
            let nulls = self.u32s(nulls)?;
            let (ends, length) = match column.kind.width_bytes() {
                Some(width) => (Vec::new(), (rows as usize).checked_mul(width)?),
                None => {
                    let ends = self.u64s(rows)?;
                    let length = ends.last().map_or(Some(0), |last| usize::try_from(*last).ok());
                    (ends, length?)
                }
            };
            let bytes = self.take(length)?.to_vec();
            payload.columns.push(Cells::of_parts(column.kind, rows, bytes, ends, nulls)?);
        }
        let objects: Vec<Object> = objects.collect();
        let counted: u64 = objects.iter().map(|object| u64::from(object.records)).sum();
        let is_whole = counted == u64::from(rows);
        is_whole.then_some(Answer { folder, columns, objects, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Value;
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
        let wrong = BadSlice { at: bytes.len(), bytes: more.len() };
        assert_eq!(decode_slice(&more), Err(wrong));
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
