//! Reads the objects of a file.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, Row};
use parquet::schema::types::Type;

use super::super::input::{BadInput, missing, no_column, open};
use super::super::parts::{Parts, Place};
use crate::model::{ColumnSpec, Kind, MAX_TIME, Object, Value};
use crate::protocol::{Bulk, FLAT_BEGIN, MAX_CHANGE_BYTES, cell_from_text, flat_names};

/// An object with its records so far.
pub(super) type Begun = (Object, Vec<Vec<Value>>);

/// Adds the objects of a file. `until` and `record` may be left out, and columns of the folder
/// where that is allowed; rows that follow each other and count `record` from 0 are of one object.
pub(in super::super) fn read(
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
pub(super) fn objects(
    path: &Path,
    columns: &[ColumnSpec],
    may_lack: bool,
    each: &mut dyn FnMut(Begun, u64) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let shown = path.display();
    if path.as_os_str() == "-" {
        let why =
            "a Parquet file is read from its end on, and can't be standard input: name a file";
        return Err(BadInput(why.to_owned()).into());
    }
    let file = open(path)?;
    let bad = |why: &dyn std::fmt::Display| BadInput(format!("{shown}: {why}"));
    let file = caught(|| SerializedFileReader::new(file)).map_err(|why| bad(&why))?;
    let schema = file.metadata().file_metadata().schema();
    let named = flat_names(columns);
    check_names(schema, columns, &named, may_lack).map_err(|why| bad(&why))?;
    let mut begun: Option<(Begun, u64)> = None;
    // Of the object that has begun.
    let mut bytes = 0;
    let mut rows = caught(|| file.get_row_iter(None)).map_err(|why| bad(&why))?;
    for number in 1.. {
        let at = |why: &dyn std::fmt::Display| bad(&format!("row {number}: {why}"));
        let row = caught(|| rows.next().transpose()).map_err(|why| at(&why))?;
        let Some(row) = row else { break };
        let (object, record, values) = record(&row, columns, &named).map_err(|why| at(&why))?;
        if record.is_some_and(|record| record > 0) {
            let same = begun.as_mut().map(|(begun, _)| begun).filter(|(before, _)| {
                (before.channel, before.since, before.until, Some(before.records))
                    == (object.channel, object.since, object.until, record)
            });
            let none = || {
                at(&"its first record is another: the records of an object have the same channel, \
                     since and until, count from 0, and are next to each other")
            };
            let (object, records) = same.ok_or_else(none)?;
            object.records += 1;
            bytes += least_bytes(&values);
            if bytes > MAX_CHANGE_BYTES {
                let why = format!("its object has more than {MAX_CHANGE_BYTES} bytes, the most");
                return Err(at(&why).into());
            }
            records.push(values);
            continue;
        }
        bytes = least_bytes(&values);
        let records = if record.is_some() { vec![values] } else { Vec::new() };
        let object = Object { records: records.len() as u32, ..object };
        if let Some((before, row)) = begun.replace(((object, records), number)) {
            each(before, row)?;
        }
    }
    begun.map_or(Ok(()), |(last, row)| each(last, row))
}

/// What is read, or why it isn't: the library panics over some files that are damaged.
fn caught<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(read) => read.map_err(|why| match why.to_string() {
            why if why.contains("Disabled feature at compile time") => {
                let kind = why.rsplit(": ").next().unwrap_or_default();
                let kind = if kind == "flate2" { "gzip" } else { kind };
                format!("it is compressed by {kind}: write it with Snappy, or uncompressed")
            }
            why => why,
        }),
        Err(_) => Err("it is damaged".to_owned()),
    }
}

/// Refuses a file with columns that are none, or without some.
fn check_names(
    schema: &Type,
    columns: &[ColumnSpec],
    named: &[String],
    may_lack: bool,
) -> Result<(), String> {
    let begins = |name: &str| FLAT_BEGIN.iter().any(|(begin, _)| *begin == name);
    let fields = schema.get_fields();
    if let Some(other) = fields
        .iter()
        .find(|field| !begins(field.name()) && !named.iter().any(|name| name == field.name()))
    {
        return Err(no_column(columns, other.name()));
    }
    let again = |(place, field): (usize, &std::sync::Arc<Type>)| {
        fields[..place].iter().any(|before| before.name() == field.name())
    };
    if let Some(place) = (0..fields.len()).find(|place| again((*place, &fields[*place]))) {
        return Err(format!("the column {:?} is there twice", fields[place].name()));
    }
    let has = |name: &&String| fields.iter().any(|field| field.name() == name.as_str());
    let lacking = named.iter().filter(|name| !has(name)).map(String::as_str);
    let lacking: Vec<_> = lacking.collect();
    match may_lack || lacking.is_empty() {
        true => Ok(()),
        false => Err(missing(&lacking)),
    }
}

/// The least that a change has for a record.
fn least_bytes(values: &[Value]) -> usize {
    let of_text = |value: &Value| match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    1 + values.iter().map(|value| 1 + of_text(value)).sum::<usize>()
}

/// The object of a row, the number of its record, if it has any, and its values, in the columns
/// that are `named` so.
fn record(
    row: &Row,
    columns: &[ColumnSpec],
    named: &[String],
) -> Result<(Object, Option<u32>, Vec<Value>), String> {
    let mut object = Object { channel: 0, since: 0, until: MAX_TIME, records: 0 };
    let (mut number, mut needed) = (Some(0), 2);
    let mut values = vec![Value::Null; columns.len()];
    for (name, field) in row.get_column_iter() {
        let whole = |most: u64| match value(Kind::Uint64, field)? {
            Value::Integer(value) if value <= i128::from(most) => Ok(Some(value as u64)),
            Value::Null => Ok(None),
            _ => Err(format!("a whole number of 0 to {most} is wanted")),
        };
        let wrong = |why: String| format!("{name}: {why}");
        let missing = || format!("{name} is null");
        match name.as_str() {
            "channel" => {
                let channel = whole(u32::MAX.into()).map_err(wrong)?;
                object.channel = channel.ok_or_else(missing)? as u32;
                needed -= 1;
            }
            "since" => {
                object.since = whole(MAX_TIME).map_err(wrong)?.ok_or_else(missing)?;
                needed -= 1;
            }
            "until" => object.until = whole(MAX_TIME).map_err(wrong)?.unwrap_or(MAX_TIME),
            "record" => {
                number = whole(u32::MAX.into()).map_err(wrong)?.map(|number| number as u32);
            }
            _ => {
                let Some(place) = named.iter().position(|one| one == name) else { continue };
                values[place] = value(columns[place].kind, field).map_err(wrong)?;
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
