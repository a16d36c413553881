//! Writes a file.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, Type as Physical};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};

use super::super::input::BadInput;
use super::form::{schema, types};
use crate::model::{Kind, Value};
use crate::protocol::{Bulk, FLAT_BEGIN, split_insert};

/// From how many rows on a group is written.
const GROUP_ROWS: usize = 65_536;

/// Writes what an export in the binary form holds, which has to be of one folder.
pub(in super::super) fn write(out: impl Write + Send, mut export: &[u8]) -> anyhow::Result<()> {
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
    let kinds = FLAT_BEGIN.map(|(_, kind)| kind).into_iter();
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
                let (begins, own) = cells.split_at_mut(FLAT_BEGIN.len());
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

/// The values of a column that are not written yet.
pub(super) struct Cells {
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
    pub(super) fn of(kind: Kind) -> Self {
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

    pub(super) fn push(&mut self, value: Value) {
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

pub(super) fn write_group<W: Write + Send>(
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
