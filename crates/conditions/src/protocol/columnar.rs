//! Objects of a folder by columns, as bytes: what slices and insertions are made of. Columns are as
//! they are kept, little-endian, without padding.
//!
//! ```text
//! path u32 + bytes   columns u32, each: kind u8, name u32 + bytes   objects u32   rows u32
//! channels u32 × objects   since u64 × objects   until u64 × objects   records u32 × objects
//! each column:
//!   nulls u32, rows u32 × nulls
//!   of a fixed width: width × rows bytes
//!   of strings and blobs: ends u64 × rows, bytes
//! ```

use crate::model::{Answer, COLUMNS, Cells, ColumnSpec, Kind, Object, Table};

/// Bytes that are not of their form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no {form}: wrong at byte {at} of {bytes}")]
pub struct Malformed {
    /// What they should be.
    pub form: &'static str,
    /// Where they stop making sense.
    pub at: usize,
    /// How many bytes there are.
    pub bytes: usize,
}

/// Appends a folder's objects.
pub(super) fn put_objects(
    out: &mut Vec<u8>,
    folder: &str,
    columns: &[ColumnSpec],
    objects: &[Object],
    payload: &Table,
) {
    put_head(out, folder, columns, objects, payload.rows as usize);
    payload.columns.iter().for_each(|cells| put_cells(out, cells));
}

/// Appends all but the columns' cells.
pub(super) fn put_head(
    out: &mut Vec<u8>,
    folder: &str,
    columns: &[ColumnSpec],
    objects: &[Object],
    rows: usize,
) {
    put_text(out, folder);
    put_count(out, columns.len());
    for column in columns {
        out.push(column.kind as u8);
        put_text(out, &column.name);
    }
    put_count(out, objects.len());
    put_count(out, rows);
    put_all(out, objects.iter().map(|object| object.channel.to_le_bytes()));
    put_all(out, objects.iter().map(|object| object.since.to_le_bytes()));
    put_all(out, objects.iter().map(|object| object.until.to_le_bytes()));
    put_all(out, objects.iter().map(|object| object.records.to_le_bytes()));
}

/// Appends a column's cells.
pub(super) fn put_cells(out: &mut Vec<u8>, cells: &Cells) {
    put_count(out, cells.nulls().len());
    put_all(out, cells.nulls().iter().map(|row| row.to_le_bytes()));
    put_all(out, cells.ends().iter().map(|end| end.to_le_bytes()));
    out.extend_from_slice(cells.bytes());
}

fn put_all<const N: usize>(out: &mut Vec<u8>, all: impl ExactSizeIterator<Item = [u8; N]>) {
    let begin = out.len();
    out.resize(begin + N * all.len(), 0);
    let (into, _) = out[begin..].as_chunks_mut::<N>();
    into.iter_mut().zip(all).for_each(|(into, bytes)| *into = bytes);
}

/// Numbers of folders, objects and rows are below their limits, which are less than 2^32.
pub(super) fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend((count as u32).to_le_bytes());
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_count(out, text.len());
    out.extend(text.as_bytes());
}

/// Reads bytes from the front; `None` where there are too few, or they make no sense.
pub(super) struct Reader<'a> {
    all: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { all: bytes, rest: bytes }
    }

    /// What has not been read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// What is wrong where reading stopped.
    pub(super) fn malformed(&self, form: &'static str) -> Malformed {
        Malformed { form, at: self.all.len() - self.rest.len(), bytes: self.all.len() }
    }

    pub(super) fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
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

    pub(super) fn text(&mut self) -> Option<String> {
        let length = self.u32()? as usize;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }

    /// The first bytes of a form.
    pub(super) fn magic(&mut self, magic: &[u8]) -> Option<()> {
        if self.take(magic.len())? != magic {
            self.rest = self.all;
            return None;
        }
        Some(())
    }

    /// The objects of one folder. What is not there is noticed before memory is taken for it.
    pub(super) fn objects(&mut self) -> Option<Answer> {
        let folder = self.text()?;
        // An empty column takes more memory than bytes here.
        let columns = self.u32().filter(|columns| u64::from(*columns) <= COLUMNS.most)?;
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
