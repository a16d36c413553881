//! A table of a run as a Parquet file: the same columns as in the other exports, each with one type
//! and compressed by Snappy. Only with the feature `parquet`.
//!
//! SQLite keeps types by value and Parquet by column, so a table is read twice: the first time for
//! the type of each column. What was seen decides (whole numbers, numbers, text, bytes; a column of
//! whole and other numbers is of numbers, one of any of these and text is of text); where nothing
//! was seen the schema does, and where that says nothing, either, the column is of numbers.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use crate::error::LedgerError;
use crate::export::{Cell, Export};
use crate::ids::RunId;
use crate::open::Ledger;

/// Maximum of rows in memory; as many are a row group of the file.
const GROUP_ROWS: usize = 65_536;

/// Why a table can't be written as Parquet.
#[derive(Debug, thiserror::Error)]
pub enum ColumnarError {
    /// The ledger can't be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The file can't be written.
    #[error("the columns can't be written")]
    Write(#[from] ParquetError),
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Integer,
    Real,
    Text,
    Blob,
}

impl Kind {
    /// That of a value; `None` is unseen.
    fn of(cell: &Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Null => None,
            Cell::Integer(_) => Some(Self::Integer),
            Cell::Real(_) => Some(Self::Real),
            Cell::Text(_) => Some(Self::Text),
            Cell::Blob(_) => Some(Self::Blob),
        }
    }

    /// That of a column by its declaration.
    fn declared(words: Option<&str>) -> Self {
        match words {
            Some("INTEGER") => Self::Integer,
            Some("TEXT") => Self::Text,
            Some("BLOB") => Self::Blob,
            _ => Self::Real,
        }
    }

    fn column(self, name: &str) -> Result<Type, ParquetError> {
        let (physical, logical) = match self {
            Self::Integer => (Physical::INT64, None),
            Self::Real => (Physical::DOUBLE, None),
            Self::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Self::Blob => (Physical::BYTE_ARRAY, None),
        };
        Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
    }
}

impl Ledger {
    /// Writes a table of a run as a Parquet file.
    ///
    /// Fails when there is no such run, when a row is damaged, or when it can't be written.
    pub fn parquet(
        &self,
        run: RunId,
        export: &Export,
        out: impl Write + Send,
    ) -> Result<(), ColumnarError> {
        let names = self.export_columns(export)?;
        let kinds = self.kinds(run, export, names.len())?;
        let fields: Result<Vec<_>, ParquetError> =
            names.iter().zip(&kinds).map(|(name, kind)| Ok(Arc::new(kind.column(name)?))).collect();
        let schema = Type::group_type_builder(export.name).with_fields(fields?).build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("loadline {}", env!("CARGO_PKG_VERSION")))
            .build();
        let mut file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
        let mut columns: Vec<Column> = kinds.into_iter().map(Column::of).collect();
        let mut rows = 0;
        self.export(run, export, |cells| -> Result<(), ColumnarError> {
            columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
            rows += 1;
            if rows == GROUP_ROWS {
                rows = 0;
                write_group(&mut file, &mut columns)?;
            }
            Ok(())
        })?;
        if rows > 0 {
            write_group(&mut file, &mut columns)?;
        }
        file.close()?;
        Ok(())
    }

    /// The type of each column.
    fn kinds(&self, run: RunId, export: &Export, count: usize) -> Result<Vec<Kind>, LedgerError> {
        let mut seen: Vec<Option<Kind>> = vec![None; count];
        self.export(run, export, |cells| -> Result<(), LedgerError> {
            for (kind, cell) in seen.iter_mut().zip(cells) {
                *kind = (*kind).max(Kind::of(cell));
            }
            Ok(())
        })?;
        let declared = self.export_types(export)?;
        let kinds = seen.into_iter().zip(declared);
        Ok(kinds
            .map(|(seen, declared)| seen.unwrap_or(Kind::declared(declared.as_deref())))
            .collect())
    }
}

/// The values of a column that are not written yet.
struct Column {
    values: Values,
    /// 1 for each value, 0 for each that is unseen.
    levels: Vec<i16>,
}

enum Values {
    Integers(Vec<i64>),
    Reals(Vec<f64>),
    Bytes(Vec<ByteArray>),
}

impl Column {
    fn of(kind: Kind) -> Self {
        let values = match kind {
            Kind::Integer => Values::Integers(Vec::new()),
            Kind::Real => Values::Reals(Vec::new()),
            Kind::Text | Kind::Blob => Values::Bytes(Vec::new()),
        };
        Self { values, levels: Vec::new() }
    }

    fn push(&mut self, cell: &Cell<'_>) {
        let is_seen = match (&mut self.values, *cell) {
            (_, Cell::Null) => false,
            (Values::Integers(all), Cell::Integer(value)) => push(all, value),
            (Values::Reals(all), Cell::Integer(value)) => push(all, value as f64),
            (Values::Reals(all), Cell::Real(value)) => push(all, value),
            (Values::Bytes(all), Cell::Text(text)) => push(all, text.as_bytes().to_vec().into()),
            (Values::Bytes(all), Cell::Blob(bytes)) => push(all, bytes.to_vec().into()),
            (Values::Bytes(all), Cell::Integer(value)) => {
                push(all, value.to_string().into_bytes().into())
            }
            (Values::Bytes(all), Cell::Real(value)) => {
                push(all, value.to_string().into_bytes().into())
            }
            // The first reading saw every value: no column is of a lesser type than its values.
            (Values::Integers(_) | Values::Reals(_), _) => false,
        };
        self.levels.push(i16::from(is_seen));
    }

    fn write(&mut self, out: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = Some(&self.levels[..]);
        match &self.values {
            Values::Integers(all) => out.typed::<Int64Type>().write_batch(all, levels, None)?,
            Values::Reals(all) => out.typed::<DoubleType>().write_batch(all, levels, None)?,
            Values::Bytes(all) => out.typed::<ByteArrayType>().write_batch(all, levels, None)?,
        };
        self.levels.clear();
        match &mut self.values {
            Values::Integers(all) => all.clear(),
            Values::Reals(all) => all.clear(),
            Values::Bytes(all) => all.clear(),
        }
        Ok(())
    }
}

fn push<T>(all: &mut Vec<T>, value: T) -> bool {
    all.push(value);
    true
}

fn write_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    columns: &mut [Column],
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
