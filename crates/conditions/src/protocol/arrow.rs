//! A slice in the streaming format of Arrow IPC: a stream for each folder, one behind the other. A
//! stream has one schema, and folders have columns of their own.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, BooleanArray, Int64Array, LargeBinaryArray, LargeStringArray, PrimitiveArray,
    RecordBatch, UInt32Array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Field, Schema};

use super::flat::{FLAT_BEGIN, flat_names};
use super::slice::SliceHead;
use crate::model::{Answer, Cells, Kind};

/// The bytes of a slice.
///
/// # Errors
/// When Arrow refuses what a folder shows, which is an error of this program.
pub fn encode_arrow(head: SliceHead, folders: &[Answer]) -> Result<Vec<u8>, ArrowError> {
    let mut out = Vec::new();
    for answer in folders {
        let batch = batch(head, answer)?;
        let mut writer = StreamWriter::try_new(&mut out, batch.schema_ref())?;
        writer.write(&batch)?;
        writer.finish()?;
    }
    Ok(out)
}

fn batch(head: SliceHead, answer: &Answer) -> Result<RecordBatch, ArrowError> {
    let rows =
        || answer.objects.iter().flat_map(|one| (0..one.records.max(1)).map(move |n| (one, n)));
    let is_there = |(object, record): (&crate::model::Object, u32)| record < object.records;
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(rows().map(|(one, _)| one.channel).collect::<UInt32Array>()),
        // Times have 63 bits.
        Arc::new(rows().map(|(one, _)| one.since.cast_signed()).collect::<Int64Array>()),
        Arc::new(rows().map(|(one, _)| one.until.cast_signed()).collect::<Int64Array>()),
        Arc::new(rows().map(|row| is_there(row).then_some(row.1)).collect::<UInt32Array>()),
    ];
    let has_gaps = answer.objects.iter().any(|one| one.records == 0);
    for cells in &answer.payload.columns {
        columns.push(match has_gaps {
            false => array(cells)?,
            true => array(&spread(cells, rows().map(is_there)))?,
        });
    }
    let names = FLAT_BEGIN.map(|(name, _)| name.to_owned()).into_iter();
    let names = names.chain(flat_names(&answer.columns));
    let field = |(place, (name, column)): (usize, (String, &ArrayRef))| {
        Field::new(name, column.data_type().clone(), place >= FLAT_BEGIN.len() - 1)
    };
    let fields: Vec<_> = names.zip(&columns).enumerate().map(field).collect();
    let described = [
        ("folder", answer.folder.clone()),
        ("revision", head.revision.to_string()),
        ("since", head.since.to_string()),
    ];
    let described: HashMap<_, _> = described.map(|(name, text)| (name.to_owned(), text)).into();
    RecordBatch::try_new(Arc::new(Schema::new_with_metadata(fields, described)), columns)
}

/// The cells of the rows that are there, and none in the others.
fn spread(cells: &Cells, are_there: impl Iterator<Item = bool>) -> Cells {
    let (mut all, mut row) = (Cells::new(cells.kind()), 0);
    for is_there in are_there {
        match is_there {
            true => {
                all.append(cells, row..row + 1);
                row += 1;
            }
            false => all.push_null(),
        }
    }
    all
}

fn array(cells: &Cells) -> Result<ArrayRef, ArrowError> {
    let rows = cells.rows();
    let nulls = (!cells.nulls().is_empty()).then(|| {
        let mut valid = vec![true; rows];
        cells.nulls().iter().for_each(|row| valid[*row as usize] = false);
        NullBuffer::from(valid)
    });
    let bytes = || Buffer::from(cells.bytes());
    let offsets = || {
        let ends = cells.ends().iter().map(|end| end.cast_signed());
        OffsetBuffer::new(std::iter::once(0).chain(ends).collect::<ScalarBuffer<i64>>())
    };
    Ok(match cells.kind() {
        Kind::Bool => {
            let values: BooleanBuffer = cells.bytes().iter().map(|byte| *byte != 0).collect();
            Arc::new(BooleanArray::new(values, nulls))
        }
        Kind::Uint8 => numbers::<UInt8Type>(cells, nulls)?,
        Kind::Int16 => numbers::<Int16Type>(cells, nulls)?,
        Kind::Uint16 => numbers::<UInt16Type>(cells, nulls)?,
        Kind::Int32 => numbers::<Int32Type>(cells, nulls)?,
        Kind::Uint32 => numbers::<UInt32Type>(cells, nulls)?,
        Kind::Int64 => numbers::<Int64Type>(cells, nulls)?,
        Kind::Uint64 => numbers::<UInt64Type>(cells, nulls)?,
        Kind::Float => numbers::<Float32Type>(cells, nulls)?,
        Kind::Double => numbers::<Float64Type>(cells, nulls)?,
        Kind::String => Arc::new(LargeStringArray::try_new(offsets(), bytes(), nulls)?),
        Kind::Blob => Arc::new(LargeBinaryArray::try_new(offsets(), bytes(), nulls)?),
    })
}

/// Numbers, which are kept as Arrow has them: one after another, little-endian.
fn numbers<T: ArrowPrimitiveType>(
    cells: &Cells,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let values = ScalarBuffer::new(Buffer::from(cells.bytes()), 0, cells.rows());
    Ok(Arc::new(PrimitiveArray::<T>::try_new(values, nulls)?))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use arrow_array::Array as _;
    use arrow_array::cast::AsArray as _;
    use arrow_ipc::reader::StreamReader;

    use super::*;
    use crate::model::{ColumnSpec, Object, Table, Value};

    #[test]
    fn each_folder_is_a_stream_with_a_row_for_each_record_and_one_for_an_object_without() {
        let column = |(name, kind): (&str, _)| ColumnSpec { name: name.to_owned(), kind };
        let columns =
            [("since", Kind::Float), ("s", Kind::String), ("b", Kind::Bool)].map(column).to_vec();
        let mut payload = Table::new(columns.iter().map(|column| column.kind));
        for (float, text, bool) in [(1.5, Some("a"), true), (2.5, None, false)] {
            let text = text.map_or(Value::Null, |text| Value::Text(text.to_owned()));
            let row = [Value::Float(float), text, Value::Bool(bool)];
            for (cells, value) in payload.columns.iter_mut().zip(row) {
                cells.push(&value).expect("of its kind");
            }
            payload.rows += 1;
        }
        let object = |channel, records| Object { channel, since: 5, until: 1 << 62, records };
        let objects = vec![object(1, 1), object(2, 0), object(3, 1)];
        let one = Answer { folder: "/a".to_owned(), columns, objects, payload };
        let none = Answer {
            folder: "/b".to_owned(),
            columns: Vec::new(),
            objects: Vec::new(),
            payload: Table::new([]),
        };
        let head = SliceHead { revision: 7, since: 5 };
        let bytes = encode_arrow(head, &[one, none]).expect("a slice");
        let mut rest = Cursor::new(bytes);
        let mut next = || {
            let mut reader = StreamReader::try_new(&mut rest, None).expect("a stream");
            let schema = reader.schema();
            let batch = reader.next().expect("a batch").expect("it is whole");
            assert!(reader.next().is_none());
            (schema.metadata()["folder"].clone(), batch)
        };
        let (folder, batch) = next();
        assert_eq!((folder.as_str(), batch.num_rows()), ("/a", 3));
        let names: Vec<_> = batch.schema().fields().iter().map(|one| one.name().clone()).collect();
        assert_eq!(names, ["channel", "since", "until", "record", "since_", "s", "b"]);
        let records = batch.column(3).as_primitive::<UInt32Type>();
        assert_eq!(records.iter().collect::<Vec<_>>(), [Some(0), None, Some(0)]);
        let floats = batch.column(4).as_primitive::<Float32Type>();
        assert_eq!(floats.iter().collect::<Vec<_>>(), [Some(1.5), None, Some(2.5)]);
        let text = batch.column(5).as_string::<i64>();
        assert_eq!(text.iter().collect::<Vec<_>>(), [Some("a"), None, None]);
        assert_eq!(batch.column(6).null_count(), 1);
        let (folder, batch) = next();
        assert_eq!((folder.as_str(), batch.num_rows()), ("/b", 0));
    }
}
