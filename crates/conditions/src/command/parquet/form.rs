//! The columns of a file.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::Type;

use crate::model::{ColumnSpec, Kind};
use crate::protocol::{FLAT_BEGIN, flat_names};

/// What a file says of its columns.
pub(super) fn schema(columns: &[ColumnSpec]) -> Result<Type, ParquetError> {
    let mut fields = Vec::new();
    let names = flat_names(columns);
    let own = names.iter().zip(columns).map(|(name, column)| (name.as_str(), column.kind));
    for (place, (name, kind)) in FLAT_BEGIN.into_iter().chain(own).enumerate() {
        let (physical, logical) = types(kind);
        let is_optional = place >= FLAT_BEGIN.len() - 1;
        let repetition = if is_optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let field = Type::primitive_type_builder(name, physical).with_repetition(repetition);
        fields.push(Arc::new(field.with_logical_type(logical).build()?));
    }
    Type::group_type_builder("conditions").with_fields(fields).build()
}

/// The type of a column.
pub(super) fn types(kind: Kind) -> (Physical, Option<LogicalType>) {
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
