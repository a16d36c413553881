//! The binary form of an insertion, for which no number is written as text.
//!
//! ```text
//! "LLINSRT1"  batches u32
//! each batch:
//!   shown u8: 0 by the head, 1 by the head and a tag of users, 2 by that tag only
//!   of 1 and 2: the tag u32 + bytes
//!   its objects, as `columnar` has them
//! ```
//!
//! A file has any number of such forms, one behind the other.

use super::columnar::{Malformed, Reader, put_count, put_objects, put_text};
use super::incoming::MAX_COLUMN_BYTES;
use crate::model::{Answer, Batch, ColumnSpec, Table};

/// The first bytes, with the version of the form.
pub const INSERT_MAGIC: [u8; 8] = *b"LLINSRT1";

/// A batch, with the columns that its payload is in: those of its folder, when it is inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bulk {
    /// The columns.
    pub columns: Vec<ColumnSpec>,
    /// The batch.
    pub batch: Batch,
}

impl Bulk {
    /// A batch without objects.
    pub fn new(
        folder: &str,
        tag: Option<String>,
        only_tag: bool,
        columns: Vec<ColumnSpec>,
    ) -> Self {
        let payload = Table::new(columns.iter().map(|column| column.kind));
        let folder = folder.to_owned();
        Self { columns, batch: Batch { folder, tag, only_tag, objects: Vec::new(), payload } }
    }

    /// How many bytes a change with it has at most, as the server keeps it.
    pub fn most_bytes(&self) -> usize {
        let Batch { folder, tag, objects, payload, .. } = &self.batch;
        let names = folder.len() + tag.as_ref().map_or(0, String::len);
        let cells = payload.columns.iter();
        let cells = cells.map(|cells| {
            32 + cells.bytes().len() + 10 * cells.ends().len() + 5 * cells.nulls().len()
        });
        64 + names + 30 * objects.len() + cells.sum::<usize>()
    }

    /// Takes objects off its end, all but the first `objects`.
    pub fn split_off(&mut self, objects: usize) -> Self {
        let batch = &mut self.batch;
        let kept = objects.min(batch.objects.len());
        let rows: u32 = batch.objects[..kept].iter().map(|object| object.records).sum();
        let mut rest =
            Self::new(&batch.folder, batch.tag.clone(), batch.only_tag, self.columns.clone());
        rest.batch.objects = batch.objects.split_off(kept);
        rest.batch.payload = batch.payload.split_off(rows);
        rest
    }
}

/// The bytes of an insertion.
pub fn encode_insert<'a>(bulks: impl ExactSizeIterator<Item = &'a Bulk>) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(INSERT_MAGIC);
    put_count(&mut out, bulks.len());
    for Bulk { columns, batch } in bulks {
        match &batch.tag {
            None => out.push(0),
            Some(tag) => {
                out.push(1 + u8::from(batch.only_tag));
                put_text(&mut out, tag);
            }
        }
        put_objects(&mut out, &batch.folder, columns, &batch.objects, &batch.payload);
    }
    out
}

/// The insertion of these bytes, all of them, that takes [`MAX_COLUMN_BYTES`] of memory at most.
///
/// # Errors
/// When they are none, or it takes more; the error says where they stop making sense.
pub fn decode_insert(bytes: &[u8]) -> Result<Vec<Bulk>, Malformed> {
    let mut reader = Reader::new(bytes);
    let bulks = insertion(&mut reader, MAX_COLUMN_BYTES).filter(|_| reader.rest().is_empty());
    bulks.ok_or_else(|| reader.malformed(FORM))
}

const FORM: &str = "insertion";

/// The first insertion of these bytes, and what follows it.
///
/// # Errors
/// When they are none; the error says where they stop making sense.
pub fn split_insert(bytes: &[u8]) -> Result<(Vec<Bulk>, &[u8]), Malformed> {
    let mut reader = Reader::new(bytes);
    match insertion(&mut reader, usize::MAX) {
        Some(bulks) => Ok((bulks, reader.rest())),
        None => Err(reader.malformed(FORM)),
    }
}

/// Those of which all take this many bytes of memory together.
fn insertion(reader: &mut Reader<'_>, mut room: usize) -> Option<Vec<Bulk>> {
    reader.magic(&INSERT_MAGIC)?;
    let mut bulks = Vec::new();
    for _ in 0..reader.u32()? {
        let bulk = bulk(reader)?;
        let columns = bulk.columns.len() * EMPTY_COLUMN_BYTES;
        room = room.checked_sub(size_of::<Bulk>() + columns + bulk.batch.payload.bytes())?;
        bulks.push(bulk);
    }
    Some(bulks)
}

/// What an empty column takes, with its name.
const EMPTY_COLUMN_BYTES: usize = 192;

fn bulk(reader: &mut Reader<'_>) -> Option<Bulk> {
    let (tag, only_tag) = match reader.take(1)? {
        [0] => (None, false),
        [1] => (Some(reader.text()?), false),
        [2] => (Some(reader.text()?), true),
        _ => return None,
    };
    let Answer { folder, columns, objects, payload } = reader.objects()?;
    Some(Bulk { columns, batch: Batch { folder, tag, only_tag, objects, payload } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Change, Entry, Kind, MAX_TIME, Object, Value};
    use proptest::prelude::*;

    fn bulks() -> Vec<Bulk> {
        let column = |(name, kind): (&str, _)| ColumnSpec { name: name.to_owned(), kind };
        let columns = [("v", Kind::Int16), ("s", Kind::String)].map(column).to_vec();
        let mut full = Bulk::new("/a/b", Some("t".to_owned()), true, columns);
        for (number, records) in [2, 0, 1].into_iter().enumerate() {
            let (channel, since) = (u32::MAX - number as u32, MAX_TIME - 9);
            full.batch.objects.push(Object { channel, since, until: MAX_TIME, records });
            for _ in 0..records {
                let text = Value::Text("é".repeat(number));
                full.batch.payload.columns[0].push_null();
                full.batch.payload.columns[1].push(&text).expect("text");
                full.batch.payload.rows += 1;
            }
        }
        vec![full, Bulk::new("/c", None, false, Vec::new())]
    }

    #[test]
    fn an_insertion_is_read_as_it_was_written_and_one_behind_the_other() {
        let bytes = encode_insert(bulks().iter());
        assert_eq!(decode_insert(&bytes), Ok(bulks()));
        assert!((0..bytes.len()).all(|end| decode_insert(&bytes[..end]).is_err()));
        let two = [&bytes[..], &bytes[..]].concat();
        assert_eq!(split_insert(&two), Ok((bulks(), &bytes[..])));
        let wrong = Malformed { form: "insertion", at: bytes.len(), bytes: two.len() };
        assert_eq!(decode_insert(&two), Err(wrong));
    }

    #[test]
    fn a_batch_is_cut_between_objects_and_its_change_is_no_larger_than_it_says() {
        for kept in 0..4 {
            let mut first = bulks().remove(0);
            let most = first.most_bytes();
            let change = Change::Insert(vec![first.batch.clone()]);
            let entry = Entry { revision: u64::MAX, time_us: i64::MIN, change };
            assert!(entry.encode().len() <= most);
            let rest = first.split_off(kept);
            assert_eq!(first.batch.objects.len() + rest.batch.objects.len(), 3);
            for part in [&first, &rest] {
                let records: u32 = part.batch.objects.iter().map(|object| object.records).sum();
                assert_eq!(records, part.batch.payload.rows);
                assert!(part.batch.payload.is_sound());
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_more_than_refused(bytes in prop::collection::vec(any::<u8>(), 0..100),
            places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)) {
            let _ = decode_insert(&bytes);
            let mut near = encode_insert(bulks().iter());
            for (place, byte) in places {
                let place = place.index(near.len());
                near[place] = byte;
            }
            if let Ok(read) = decode_insert(&near) {
                prop_assert_eq!(encode_insert(read.iter()), near);
            }
        }
    }
}
