//! Insertions in JSON as a server reads them: records go straight into columns, so that what they
//! take of memory has a limit, however they are written.

use std::collections::HashMap;
use std::fmt;

use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;
use serde_json::value::RawValue;

use super::cell::cell_from_json;
use crate::model::{BATCH, Batch, ColumnSpec, MAX_TIME, Object, Table, Value};

/// The most bytes of memory that the columns of one insertion take. What a journal takes as one
/// change always has room.
pub const MAX_COLUMN_BYTES: usize = 128 << 20;

/// What an empty column takes.
const EMPTY_COLUMN_BYTES: usize = 128;

/// `POST /objects`, as [`super::InsertBody`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Incoming {
    /// All are inserted, or none.
    pub batches: Vec<IncomingBatch>,
}

impl Incoming {
    /// The place of the first batch that has no objects, or isn't there.
    pub fn empty(&self) -> Option<usize> {
        let empty = self.batches.iter().position(|batch| batch.objects.is_empty());
        empty.or(self.batches.is_empty().then_some(0))
    }
}

/// Objects of one folder.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IncomingBatch {
    /// The folder.
    #[serde(deserialize_with = "path")]
    pub folder: String,
    tag: Option<String>,
    #[serde(default)]
    only_tag: bool,
    objects: Vec<IncomingObject>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct IncomingObject {
    channel: u32,
    #[serde(deserialize_with = "time")]
    since: u64,
    #[serde(default, deserialize_with = "end")]
    until: Option<u64>,
    values: Option<Box<RawValue>>,
    records: Option<Box<RawValue>>,
}

/// A path, without slashes at its end.
///
/// # Errors
/// When it is no text.
pub(super) fn path<'de, D: Deserializer<'de>>(written: D) -> Result<String, D::Error> {
    let mut written = String::deserialize(written)?;
    written.truncate(super::params::path(&written).len());
    Ok(written)
}

/// A time: a number, or `"max"`.
///
/// # Errors
/// When it is neither.
pub(crate) fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    struct Time;
    impl Visitor<'_> for Time {
        type Value = u64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a time: an integer of 0 to 2^63 - 1, or \"max\"")
        }

        fn visit_u64<E: de::Error>(self, time: u64) -> Result<u64, E> {
            Ok(time)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
            match text {
                "max" => Ok(MAX_TIME),
                _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
            }
        }
    }
    deserializer.deserialize_any(Time)
}

/// The end of an object: a time, or none where it is open.
///
/// # Errors
/// When it is neither.
pub(crate) fn end<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    struct Time(#[serde(deserialize_with = "time")] u64);
    Ok(Option::<Time>::deserialize(deserializer)?.map(|time| time.0))
}

impl IncomingBatch {
    /// The batch in a folder's columns, for which there are `room` bytes of memory.
    ///
    /// # Errors
    /// When a record is not of these columns, or there is no room; the error says where, and what
    /// can be written.
    pub fn batch(self, columns: &[ColumnSpec], room: &mut usize) -> Result<Batch, String> {
        let Self { folder, tag, only_tag, objects: bodies } = self;
        BATCH.check(bodies.len()).map_err(|why| why.to_string())?;
        let mut rows = Rows {
            columns,
            places: columns.iter().enumerate().map(|(n, one)| (one.name.as_str(), n)).collect(),
            payload: Table::new(columns.iter().map(|column| column.kind)),
            room,
            why: None,
        };
        let mut objects = Vec::with_capacity(bodies.len());
        let begun = rows.take(columns.len() * EMPTY_COLUMN_BYTES);
        begun.map_err(|why| format!("{folder:?}: {why}"))?;
        for (place, body) in bodies.into_iter().enumerate() {
            let first = rows.payload.rows;
            let read = match (&body.values, &body.records) {
                (Some(values), None) => rows.read(values, false),
                (None, Some(records)) => rows.read(records, true),
                (None, None) if columns.is_empty() => Ok(()),
                _ => Err("it needs either \"values\" or \"records\"".to_owned()),
            };
            read.map_err(|why| format!("object {place} of {folder:?}: {why}"))?;
            let (channel, since, until) = (body.channel, body.since, body.until);
            let (until, records) = (until.unwrap_or(MAX_TIME), rows.payload.rows - first);
            objects.push(Object { channel, since, until, records });
        }
        let payload = rows.payload;
        Ok(Batch { folder, tag, only_tag, objects, payload })
    }
}

/// Rows that are being read.
struct Rows<'a> {
    columns: &'a [ColumnSpec],
    places: HashMap<&'a str, usize>,
    payload: Table,
    room: &'a mut usize,
    /// Why the last value was not taken.
    why: Option<String>,
}

impl Rows<'_> {
    fn take(&mut self, bytes: usize) -> Result<(), String> {
        *self.room = self.room.checked_sub(bytes).ok_or_else(|| {
            format!("one insertion takes more than {MAX_COLUMN_BYTES} bytes: insert it in parts")
        })?;
        Ok(())
    }

    /// Reads a record, or a list of them.
    fn read(&mut self, text: &RawValue, is_list: bool) -> Result<(), String> {
        let mut json = serde_json::Deserializer::from_str(text.get());
        let done = match is_list {
            true => json.deserialize_seq(Records(self)),
            false => Record(self).deserialize(&mut json),
        };
        done.map_err(|error| self.why.take().unwrap_or_else(|| error.to_string()))
    }

    fn push(&mut self, place: usize, value: &Value) -> Result<(), String> {
        let cells = &mut self.payload.columns[place];
        let wide = cells.kind().width_bytes();
        cells.push(value).map_err(|_| "a value out of its column's range".to_owned())?;
        let bytes = match value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        let null = if *value == Value::Null { size_of::<u32>() } else { 0 };
        self.take(wide.unwrap_or(size_of::<u64>()) + bytes + null)
    }

    /// The value of a cell.
    fn value(&self, place: usize, json: &Json) -> Result<Value, String> {
        cell_from_json(self.columns[place].kind, json).map_err(|why| self.at(place, &why))
    }

    /// What is wrong with a cell, with its column.
    fn at(&self, place: usize, why: &(impl fmt::Display + ?Sized)) -> String {
        format!("column {:?}: {why}", self.columns[place].name)
    }

    /// Ends the reading with this reason.
    fn refuse<T, E: de::Error>(&mut self, result: Result<T, String>) -> Result<T, E> {
        result.map_err(|why| {
            self.why = Some(why);
            E::custom("refused")
        })
    }
}

struct Records<'r, 'a>(&'r mut Rows<'a>);

impl<'de> Visitor<'de> for Records<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of records")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut records: A) -> Result<(), A::Error> {
        while records.next_element_seed(Record(self.0))?.is_some() {}
        Ok(())
    }
}

struct Record<'r, 'a>(&'r mut Rows<'a>);

impl<'de> DeserializeSeed<'de> for Record<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Record<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record: a list of values, or an object by columns")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut cells: A) -> Result<(), A::Error> {
        let rows = self.0;
        let (count, mut found) = (rows.columns.len(), 0);
        while found < count {
            let next = cells.next_element().map_err(|why| rows.at(found, &why));
            let Some(Scalar(json)) = rows.refuse::<_, A::Error>(next)? else { break };
            let pushed = rows.value(found, &json).and_then(|value| rows.push(found, &value));
            rows.refuse::<_, A::Error>(pushed)?;
            found += 1;
        }
        while found >= count && cells.next_element::<IgnoredAny>()?.is_some() {
            found += 1;
        }
        let counted = match found == count {
            true => rows.take(size_of::<u32>()),
            false => Err(format!("{found} values for {count} columns")),
        };
        rows.refuse::<_, A::Error>(counted)?;
        rows.payload.rows += 1;
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut cells: A) -> Result<(), A::Error> {
        let rows = self.0;
        let mut values = vec![None; rows.columns.len()];
        while let Some(name) = cells.next_key::<String>()? {
            let place = rows.places.get(name.as_str()).copied().ok_or_else(|| {
                let known = rows.columns.iter().map(|column| column.name.as_str());
                let name: String = name.chars().take(100).collect();
                let known = known.take(20).collect::<Vec<_>>().join(", ");
                format!("no column is {name:?}; there are {known}")
            });
            let place = rows.refuse::<_, A::Error>(place)?;
            let json = cells.next_value().map_err(|why| rows.at(place, &why));
            let value = json.and_then(|Scalar(json)| rows.value(place, &json));
            let value = match values[place] {
                None => value,
                Some(_) => Err(rows.at(place, "it has a value already: give it one")),
            };
            values[place] = Some(rows.refuse::<_, A::Error>(value)?);
        }
        for (place, value) in values.iter().enumerate() {
            let pushed = rows.push(place, value.as_ref().unwrap_or(&Value::Null));
            rows.refuse::<_, A::Error>(pushed)?;
        }
        let counted = rows.take(size_of::<u32>());
        rows.refuse::<_, A::Error>(counted)?;
        rows.payload.rows += 1;
        Ok(())
    }
}

/// A cell in JSON. A list or an object, which no cell is, is empty here.
struct Scalar(Json);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Json;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<Json, E> {
                Ok(Json::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
                Ok(value.into())
            }

            fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
                Ok(value.into())
            }

            fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
                Ok(value.into())
            }

            fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
                Ok(value.into())
            }

            fn visit_str<E>(self, value: &str) -> Result<Json, E> {
                Ok(value.into())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Json::Array(Vec::new()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Json::Object(serde_json::Map::new()))
            }
        }
        deserializer.deserialize_any(Any).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Kind;
    use proptest::prelude::*;
    use serde_json::json;

    fn columns() -> Vec<ColumnSpec> {
        let column = |(name, kind): (&str, _)| ColumnSpec { name: name.to_owned(), kind };
        [("a", Kind::Int16), ("b", Kind::String)].map(column).to_vec()
    }

    fn batch(object: &Json, columns: &[ColumnSpec], mut room: usize) -> Result<Batch, String> {
        let body = json!({ "batches": [{ "folder": "/f", "objects": [object] }] }).to_string();
        let mut body: Incoming = serde_json::from_str(&body).expect("a body");
        body.batches.remove(0).batch(columns, &mut room)
    }

    #[test]
    fn a_record_is_a_list_or_an_object_and_what_is_left_out_has_no_value() {
        let records = json!([[1, "x"], { "b": "y" }]);
        let object = json!({ "channel": 1, "since": 5, "until": "max", "records": records });
        let read = batch(&object, &columns(), 200 + 256).expect("a batch");
        assert_eq!(read.objects, [Object { channel: 1, since: 5, until: MAX_TIME, records: 2 }]);
        let rows: Vec<Vec<Value>> = (0..2).map(|row| read.payload.row(row).collect()).collect();
        let text = |text: &str| Value::Text(text.to_owned());
        assert_eq!(rows, [[Value::Integer(1), text("x")], [Value::Null, text("y")]]);
        assert!(read.payload.is_sound());
        let refused = batch(&object, &columns(), 256 + 20).expect_err("no room");
        assert!(refused.contains("insert it in parts"), "{refused}");
    }

    #[test]
    fn a_record_that_does_not_fit_is_named_with_its_object_and_column() {
        for (object, said) in [
            (json!({}), "object 0 of \"/f\": it needs either"),
            (json!({ "values": [1] }), "1 values for 2 columns"),
            (json!({ "values": [1, "x", 3, 4] }), "4 values for 2 columns"),
            (json!({ "values": { "c": 1 } }), "there are a, b"),
            (json!({ "values": ["x", "y"] }), "column \"a\": \"x\" is no"),
            (json!({ "values": [[[1]], "y"] }), "column \"a\": [] is no"),
            (json!({ "values": 7 }), "expected a record"),
            (json!({ "records": 7 }), "expected a list of records"),
            (json!({ "records": [[1, "x"], [70_000, "x"]] }), "column \"a\": 70000 is no"),
        ] {
            let mut object = object;
            object["channel"] = 1.into();
            object["since"] = 5.into();
            let why = batch(&object, &columns(), MAX_COLUMN_BYTES).expect_err("refused");
            assert!(why.contains(said), "{why}");
        }
    }

    #[test]
    fn what_no_value_of_json_can_hold_is_refused_with_its_column() {
        for (values, said) in [
            (r#"{"a": 1, "a": 2}"#, "column \"a\": it has a value already"),
            (r#"{"a": 1e400}"#, "column \"a\": number out of range"),
            (r#"[1, 1e400]"#, "column \"b\": number out of range"),
        ] {
            let body = format!(
                r#"{{"batches":[{{"folder":"/f","objects":[
                    {{"channel":1,"since":5,"values":{values}}}]}}]}}"#
            );
            let mut body: Incoming = serde_json::from_str(&body).expect("a body");
            let why = body.batches.remove(0).batch(&columns(), &mut 1_000).expect_err("refused");
            assert!(why.contains(said), "{why}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_more_than_refused(places in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::sample::select(&b"[]{},:\"\\0-9e.antul "[..])),
            0..6,
        )) {
            let mut text = br#"{"batches":[{"folder":"/f","objects":[
                {"channel":1,"since":2,"until":9,"records":[[1,"x"],{"b":null}]},
                {"channel":1,"since":"max","values":[-1,"\u00e9"]}]}]}"#.to_vec();
            for (place, byte) in places {
                let place = place.index(text.len());
                text[place] = byte;
            }
            let Ok(read) = serde_json::from_slice::<Incoming>(&text) else { return Ok(()) };
            for batch in read.batches {
                if let Ok(batch) = batch.batch(&columns(), &mut 1_000) {
                    prop_assert!(batch.payload.is_sound());
                }
            }
        }

        #[test]
        fn every_finite_double_comes_back_as_it_was(bits in any::<u64>()) {
            let double = f64::from_bits(bits);
            prop_assume!(double.is_finite());
            let column = ColumnSpec { name: "d".to_owned(), kind: Kind::Double };
            let object = json!({ "channel": 1, "since": 5, "values": [double] });
            let read = batch(&object, &[column], MAX_COLUMN_BYTES).expect("a batch");
            let value = read.payload.columns[0].value(0);
            let Value::Double(read) = value else { panic!("{value:?}") };
            prop_assert_eq!(read.to_bits(), bits);
        }
    }
}
