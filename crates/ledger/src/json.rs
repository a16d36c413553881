//! Columns that hold JSON.

use rusqlite::Row;
use rusqlite::types::Type;
use serde_json::{Map, Value};

/// A JSON column that holds an object.
pub(crate) fn object(row: &Row<'_>, column: &str) -> rusqlite::Result<Map<String, Value>> {
    json(row, column)
}

/// A JSON column as the type it should hold; another is an error that names the column's place.
pub(crate) fn json<T: TryFromJson>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    let place = row.as_ref().column_index(column)?;
    let damaged = |error| rusqlite::Error::FromSqlConversionFailure(place, Type::Text, error);
    let value: Value = serde_json::from_str(&text).map_err(|error| damaged(Box::new(error)))?;
    T::try_from_json(value).ok_or_else(|| damaged("not the expected kind of JSON".into()))
}

/// The types of JSON columns. Three types don't warrant deriving through serde.
pub(crate) trait TryFromJson: Sized {
    fn try_from_json(value: Value) -> Option<Self>;
}

impl TryFromJson for Map<String, Value> {
    fn try_from_json(value: Value) -> Option<Self> {
        match value {
            Value::Object(map) => Some(map),
            _ => None,
        }
    }
}

impl TryFromJson for Vec<String> {
    fn try_from_json(value: Value) -> Option<Self> {
        let Value::Array(items) = value else { return None };
        let text = |item| match item {
            Value::String(text) => Some(text),
            _ => None,
        };
        items.into_iter().map(text).collect()
    }
}

impl TryFromJson for Vec<(String, String)> {
    fn try_from_json(value: Value) -> Option<Self> {
        let Value::Array(items) = value else { return None };
        let pair = |item| <[String; 2]>::try_from(Vec::<String>::try_from_json(item)?).ok();
        items.into_iter().map(|item| pair(item).map(|[key, value]| (key, value))).collect()
    }
}
