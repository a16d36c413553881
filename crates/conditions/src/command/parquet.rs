//! Files of Parquet: what is shown of one folder, a row for each record, and objects that are read
//! of them again. Only with the feature `parquet`.
//!
//! The columns are `channel`, `since`, `until`, `record`, which counts the records of an object and
//! is null of one that has none, and the folder's. An integer has the width and sign of its column.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::record::{Field, Row};
use parquet::schema::types::Type;

use super::input::{BadInput, missing, no_column};
use super::parts::{Parts, Place};
use crate::model::{ColumnSpec, Kind, MAX_TIME, Object, Value};
use crate::protocol::{Bulk, cell_from_text, split_insert};

/// The columns that every file begins with, and their kinds.
const BEGIN: [(&str, Kind); 4] = [
    ("channel", Kind::Uint32),
    ("since", Kind::Int64),
    ("until", Kind::Int64),
    ("record", Kind::Uint32),
];

/// From how many rows on a group is written.
const GROUP_ROWS: usize = 65_536;

/// Writes what an export in the binary form holds, which has to be of one folder.
pub(super) fn write(out: impl Write + Send, mut export: &[u8]) -> anyhow::Result<()> {
    let mut bulks = Vec::new();
    while !export.is_empty() {
        let (some, rest) = split_insert(export)?;
        bulks.extend(some);
        export = rest;
    }
    let folder = |bulk: &Bulk| bulk.batch.folder.clone();
    let first = bulks.first().map(folder).unwrap_or_default();
    if let Some(other) = bulks.iter().map(folder).find(|folder| *folder != first) {
        let why = format!("a Parquet file is of one folder, and there are {first} and {other}");
        return Err(BadInput(format!("{why}: name one")).into());
    }
    let columns = bulks.first().map_or(&[][..], |bulk| &bulk.columns);
    let kinds = BEGIN.map(|(_, kind)| kind).into_iter();
    let kinds = kinds.chain(columns.iter().map(|column| column.kind));
    let mut cells: Vec<Cells> = kinds.map(Cells::of).collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("loadline {}", env!("CARGO_PKG_VERSION")))
        .build();
    let schema = Arc::new(schema(columns)?);
    let mut file = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
    let mut rows = 0;
    for bulk in &bulks {
        let mut row = 0;
        for object in &bulk.batch.objects {
            for record in 0..object.records.max(1) {
                let is_there = record < object.records;
                let record = if is_there { Value::Integer(record.into()) } else { Value::Null };
                let begin = [
                    Value::Integer(object.channel.into()),
                    Value::Integer(object.since.into()),
                    Value::Integer(object.until.into()),
                    record,
                ];
                let (begins, own) = cells.split_at_mut(BEGIN.len());
                begins.iter_mut().zip(begin).for_each(|(cells, value)| cells.push(value));
                for (cells, column) in own.iter_mut().zip(&bulk.batch.payload.columns) {
                    cells.push(if is_there { column.value(row) } else { Value::Null });
                }
                row += usize::from(is_there);
                rows += 1;
            }
            if rows >= GROUP_ROWS {
                rows = 0;
                write_group(&mut file, &mut cells)?;
            }
        }
    }
    if rows > 0 {
        write_group(&mut file, &mut cells)?;
    }
    file.close()?;
    Ok(())
}

fn schema(columns: &[ColumnSpec]) -> Result<Type, ParquetError> {
    let mut taken: Vec<String> = Vec::new();
    let mut fields = Vec::new();
    let own = columns.iter().map(|column| (column.name.as_str(), column.kind));
    for (place, (name, kind)) in BEGIN.into_iter().chain(own).enumerate() {
        let mut name = name.to_owned();
        while taken.contains(&name) {
            name.push('_');
        }
        let (physical, logical) = types(kind);
        let is_optional = place >= BEGIN.len() - 1;
        let repetition = if is_optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let field = Type::primitive_type_builder(&name, physical).with_repetition(repetition);
        fields.push(Arc::new(field.with_logical_type(logical).build()?));
        taken.push(name);
    }
    Type::group_type_builder("conditions").with_fields(fields).build()
}

fn types(kind: Kind) -> (Physical, Option<LogicalType>) {
    let integer = |bits, is_signed| Some(LogicalType::integer(bits, is_signed));
    match kind {
        Kind::Bool => (Physical::BOOLEAN, None),
        Kind::Uint8 => (Physical::INT32, integer(8, false)),
        Kind::Int16 => (Physical::INT32, integer(16, true)),
        Kind::Uint16 => (Physical::INT32, integer(16, false)),
        Kind::Int32 => (Physical::INT32, integer(32, true)),
        Kind::Uint32 => (Physical::INT32, integer(32, false)),
        Kind::Int64 => (Physical::INT64, integer(64, true)),
        Kind::Uint64 => (Physical::INT64, integer(64, false)),
        Kind::Float => (Physical::FLOAT, None),
        Kind::Double => (Physical::DOUBLE, None),
        Kind::String => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Blob => (Physical::BYTE_ARRAY, None),
    }
}

/// The values of a column that are not written yet.
struct Cells {
    values: Values,
    /// 1 for each value, 0 for each null.
    levels: Vec<i16>,
}

enum Values {
    Bools(Vec<bool>),
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
    Floats(Vec<f32>),
    Doubles(Vec<f64>),
    Bytes(Vec<ByteArray>),
}

impl Cells {
    fn of(kind: Kind) -> Self {
        let values = match types(kind).0 {
            Physical::BOOLEAN => Values::Bools(Vec::new()),
            Physical::INT32 => Values::Narrow(Vec::new()),
            Physical::INT64 => Values::Wide(Vec::new()),
            Physical::FLOAT => Values::Floats(Vec::new()),
            Physical::DOUBLE => Values::Doubles(Vec::new()),
            _ => Values::Bytes(Vec::new()),
        };
        Self { values, levels: Vec::new() }
    }

    fn push(&mut self, value: Value) {
        let before = self.len();
        match (&mut self.values, value) {
            (Values::Bools(all), Value::Bool(value)) => all.push(value),
            // Those without a sign keep their bits.
            (Values::Narrow(all), Value::Integer(value)) => all.push(value as i32),
            (Values::Wide(all), Value::Integer(value)) => all.push(value as i64),
            (Values::Floats(all), Value::Float(value)) => all.push(value),
            (Values::Doubles(all), Value::Double(value)) => all.push(value),
            (Values::Bytes(all), Value::Text(text)) => all.push(text.into_bytes().into()),
            (Values::Bytes(all), Value::Bytes(bytes)) => all.push(bytes.into()),
            // A null; values are of their column's kind.
            _ => {}
        }
        self.levels.push((self.len() - before) as i16);
    }

    fn len(&self) -> usize {
        match &self.values {
            Values::Bools(all) => all.len(),
            Values::Narrow(all) => all.len(),
            Values::Wide(all) => all.len(),
            Values::Floats(all) => all.len(),
            Values::Doubles(all) => all.len(),
            Values::Bytes(all) => all.len(),
        }
    }

    fn write(&mut self, out: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = std::mem::take(&mut self.levels);
        let levels = Some(&levels[..]);
        match &mut self.values {
            Values::Bools(all) => {
                out.typed::<BoolType>().write_batch(&std::mem::take(all), levels, None)?
            }
            Values::Narrow(all) => {
                out.typed::<Int32Type>().write_batch(&std::mem::take(all), levels, None)?
            }
            Values::Wide(all) => {
                out.typed::<Int64Type>().write_batch(&std::mem::take(all), levels, None)?
            }
            Values::Floats(all) => {
                out.typed::<FloatType>().write_batch(&std::mem::take(all), levels, None)?
            }
            Values::Doubles(all) => {
                out.typed::<DoubleType>().write_batch(&std::mem::take(all), levels, None)?
            }
            Values::Bytes(all) => {
                out.typed::<ByteArrayType>().write_batch(&std::mem::take(all), levels, None)?
            }
        };
        Ok(())
    }
}

fn write_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    columns: &mut [Cells],
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for column in columns {
        let Some(mut out) = group.next_column()? else { break };
        column.write(&mut out)?;
        out.close()?;
    }
    group.close()?;
    Ok(())
}

/// An object with its records so far.
type Begun = (Object, Vec<Vec<Value>>);

/// Adds the objects of a file. `until` and `record` may be left out, and columns of the folder
/// where that is allowed; rows that follow each other with `record` above 0 are of one object.
pub(super) fn read(
    path: &Path,
    place: &Place,
    parts: &mut Parts,
    columns: &[ColumnSpec],
    may_lack: bool,
) -> anyhow::Result<()> {
    let place = parts.place(place, || Ok(columns.to_vec()))?;
    objects(path, columns, may_lack, &mut |(object, records), row| {
        if parts.skips() {
            return Ok(());
        }
        let out_of_range = || BadInput(format!("{}: a value out of its range", path.display()));
        parts.add(place, |bulk: &mut Bulk| {
            for (place, value) in records.iter().flat_map(|record| record.iter().enumerate()) {
                let Some(cells) = bulk.batch.payload.columns.get_mut(place) else { continue };
                cells.push(value).map_err(|_| out_of_range())?;
            }
            bulk.batch.payload.rows += records.len() as u32;
            Ok::<_, BadInput>((object, row))
        })
    })
}

/// Hands on the objects of a file, each with the number of its first row.
fn objects(
    path: &Path,
    columns: &[ColumnSpec],
    may_lack: bool,
    each: &mut dyn FnMut(Begun, u64) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("{shown} can't be read"))?;
    let bad = |why: &dyn std::fmt::Display| BadInput(format!("{shown}: {why}"));
    let file = SerializedFileReader::new(file).map_err(|why| bad(&why))?;
    let schema = file.metadata().file_metadata().schema();
    for field in schema.get_fields() {
        let name = field.name();
        let is_begin = BEGIN.iter().any(|(begin, _)| *begin == name);
        if !is_begin && !columns.iter().any(|column| column.name == name) {
            return Err(bad(&no_column(columns, name)).into());
        }
    }
    let has = |name: &str| schema.get_fields().iter().any(|field| field.name() == name);
    let lacking = columns.iter().map(|column| column.name.as_str()).filter(|name| !has(name));
    let lacking: Vec<_> = lacking.collect();
    if !may_lack && !lacking.is_empty() {
        return Err(bad(&missing(&lacking)).into());
    }
    let mut begun: Option<(Begun, u64)> = None;
    let rows = file.get_row_iter(None).map_err(|why| bad(&why))?;
    for (number, row) in (1..).zip(rows) {
        let at = |why: &dyn std::fmt::Display| bad(&format!("row {number}: {why}"));
        let row = row.map_err(|why| at(&why))?;
        let (object, record, values) = record(&row, columns).map_err(|why| at(&why))?;
        if record.is_some_and(|record| record > 0) {
            let same = begun.as_mut().map(|(begun, _)| begun).filter(|(before, _)| {
                (before.channel, before.since) == (object.channel, object.since)
            });
            let none = || at(&"record is above 0, and no object has begun there");
            let (object, records) = same.ok_or_else(none)?;
            object.records += 1;
            records.push(values);
            continue;
        }
        let records = if record.is_some() { vec![values] } else { Vec::new() };
        let object = Object { records: records.len() as u32, ..object };
        if let Some((before, row)) = begun.replace(((object, records), number)) {
            each(before, row)?;
        }
    }
    begun.map_or(Ok(()), |(last, row)| each(last, row))
}

/// The object of a row, the number of its record, if it has any, and its values.
fn record(row: &Row, columns: &[ColumnSpec]) -> Result<(Object, Option<u32>, Vec<Value>), String> {
    let mut object = Object { channel: 0, since: 0, until: MAX_TIME, records: 0 };
    let (mut number, mut needed) = (Some(0), 2);
    let mut values = vec![Value::Null; columns.len()];
    for (name, field) in row.get_column_iter() {
        let whole = |most: u64| match value(Kind::Uint64, field)? {
            Value::Integer(value) if value <= i128::from(most) => Ok(Some(value as u64)),
            Value::Null => Ok(None),
            _ => Err(format!("a whole number of 0 to {most} is wanted")),
        };
        let named = |why: String| format!("{name}: {why}");
        let missing = || format!("{name} is null");
        match name.as_str() {
            "channel" => {
                let channel = whole(u32::MAX.into()).map_err(named)?;
                object.channel = channel.ok_or_else(missing)? as u32;
                needed -= 1;
            }
            "since" => {
                object.since = whole(MAX_TIME).map_err(named)?.ok_or_else(missing)?;
                needed -= 1;
            }
            "until" => object.until = whole(MAX_TIME).map_err(named)?.unwrap_or(MAX_TIME),
            "record" => {
                number = whole(u32::MAX.into()).map_err(named)?.map(|number| number as u32);
            }
            _ => {
                let place = columns.iter().position(|column| column.name == *name);
                let Some(place) = place else { continue };
                values[place] = value(columns[place].kind, field).map_err(named)?;
            }
        }
    }
    match needed {
        0 => Ok((object, number, values)),
        _ => Err("channel or since is missing".to_owned()),
    }
}

/// A cell of a file as one of a column.
fn value(kind: Kind, field: &Field) -> Result<Value, String> {
    let text = match (field, kind) {
        (Field::Null, _) => return Ok(Value::Null),
        (Field::Bool(value), Kind::Bool) => return Ok(Value::Bool(*value)),
        (Field::Float(value), Kind::Float) => return Ok(Value::Float(*value)),
        (Field::Float(value), Kind::Double) => return Ok(Value::Double((*value).into())),
        (Field::Double(value), Kind::Double) => return Ok(Value::Double(*value)),
        (Field::Str(text), Kind::String) => return Ok(Value::Text(text.clone())),
        (Field::Bytes(bytes), Kind::Blob) => return Ok(Value::Bytes(bytes.data().to_vec())),
        (Field::Byte(value), _) => value.to_string(),
        (Field::Short(value), _) => value.to_string(),
        (Field::Int(value), _) => value.to_string(),
        (Field::Long(value), _) => value.to_string(),
        (Field::UByte(value), _) => value.to_string(),
        (Field::UShort(value), _) => value.to_string(),
        (Field::UInt(value), _) => value.to_string(),
        (Field::ULong(value), _) => value.to_string(),
        (Field::Double(value), Kind::Float) => value.to_string(),
        _ => return Err(format!("it is no {}", kind.name())),
    };
    cell_from_text(kind, &text).map_err(|why| why.to_string())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::model::KINDS;
    use crate::protocol::encode_insert;

    /// What pyarrow reads, and writes again in its own way.
    const SCRIPT: &str = "
import sys, pyarrow.parquet as parquet
table = parquet.read_table(sys.argv[1])
print([str(kind) for kind in table.schema.types])
print(table.to_pylist()[1])
parquet.write_table(table, sys.argv[2])
";

    fn bulk() -> Bulk {
        let column = |(kind, name): (Kind, &str)| ColumnSpec { name: name.to_owned(), kind };
        let columns: Vec<_> = KINDS.map(column).to_vec();
        let mut bulk = Bulk::new("/det/x", None, false, columns);
        let objects = [(3, 5, 9, 2), (4, 0, MAX_TIME, 0), (u32::MAX, 7, MAX_TIME, 1)];
        for (channel, since, until, records) in objects {
            bulk.batch.objects.push(Object { channel, since, until, records });
        }
        for row in 0..3 {
            for (cells, (kind, _)) in bulk.batch.payload.columns.iter_mut().zip(KINDS) {
                let bits = 8 * kind.width_bytes().unwrap_or(8) as u32;
                let value = match kind {
                    _ if row == 2 => Value::Null,
                    Kind::Bool => Value::Bool(row == 0),
                    Kind::Int16 | Kind::Int32 | Kind::Int64 => Value::Integer(-(1 << (bits - 1))),
                    Kind::Float => Value::Float(0.1),
                    Kind::Double => Value::Double(f64::MIN_POSITIVE),
                    Kind::String => Value::Text(if row == 0 { "" } else { "é" }.to_owned()),
                    Kind::Blob => Value::Bytes(vec![0, 255]),
                    _ => Value::Integer((1 << bits) - 1),
                };
                cells.push(&value).expect("of its kind");
            }
            bulk.batch.payload.rows += 1;
        }
        bulk
    }

    fn read_again(path: &Path, columns: &[ColumnSpec]) -> Vec<Begun> {
        let mut found = Vec::new();
        let each = &mut |begun, _| {
            found.push(begun);
            Ok(())
        };
        objects(path, columns, false, each).expect("read");
        found
    }

    #[test]
    fn what_is_written_is_read_again_and_by_a_reader_that_is_not_ours() {
        let bulk = bulk();
        let folder = tempfile::tempdir().expect("a folder");
        let (path, theirs) = (folder.path().join("x.parquet"), folder.path().join("y.parquet"));
        let file = File::create(&path).expect("a file");
        write(&file, &encode_insert([bulk.clone()].iter())).expect("written");
        let payload = &bulk.batch.payload;
        let mut rows = (0..3).map(|row| payload.row(row).collect::<Vec<_>>());
        let expected: Vec<Begun> = bulk
            .batch
            .objects
            .iter()
            .map(|object| (*object, rows.by_ref().take(object.records as usize).collect()))
            .collect();
        assert_eq!(read_again(&path, &bulk.columns), expected);

        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = here.join("../../target/venv/conditions/bin/python");
        if !python.exists() {
            testing::skip("pyarrow is not installed (`cargo xtask peers` installs the peers)");
            return;
        }
        let mut command = Command::new(python);
        let out = command.args(["-c", SCRIPT]).arg(&path).arg(&theirs).output().expect("Python");
        let said = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let kinds = "['uint32', 'int64', 'int64', 'uint32', 'bool', 'uint8', 'int16', 'uint16', \
                     'int32', 'uint32', 'int64', 'uint64', 'float', 'double', 'string', 'binary']";
        assert!(said.starts_with(kinds), "{said}");
        for part in [
            "'channel': 3, 'since': 5, 'until': 9, 'record': 1, 'bool': False, 'uint8': 255",
            "'uint64': 18446744073709551615",
            "'double': 2.2250738585072014e-308, 'string': 'é', 'blob': b'\\x00\\xff'",
        ] {
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(read_again(&theirs, &bulk.columns), expected);
    }

    #[test]
    fn what_is_no_such_file_is_refused_with_its_row_or_column() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.parquet");
        let bulk = bulk();
        let file = File::create(&path).expect("a file");
        write(&file, &encode_insert([bulk.clone()].iter())).expect("written");
        let refused = |columns: &[ColumnSpec]| {
            let why = objects(&path, columns, true, &mut |_, _| Ok(())).expect_err("refused");
            assert!(why.is::<BadInput>());
            why.to_string()
        };
        assert!(refused(&bulk.columns[1..]).contains("no column is \"bool\"; there are uint8"));
        let mut others = bulk.columns.clone();
        others[0].kind = Kind::Blob;
        assert!(refused(&others).contains("row 1: bool: it is no blob"));
        let whole = std::fs::read(&path).expect("bytes");
        for end in [0, 4, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&path, &whole[..end]).expect("written");
            assert!(refused(&bulk.columns).contains("x.parquet: "));
        }
        let mut other = bulk.clone();
        other.batch.folder = "/det/y".to_owned();
        let both = encode_insert([bulk, other].iter());
        let why = write(std::io::sink(), &both).expect_err("refused").to_string();
        assert!(why.contains("of one folder, and there are /det/x and /det/y: name one"), "{why}");
    }
}
