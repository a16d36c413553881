//! Bodies: the fields of an object, with the reference's words for what is wrong with each, and
//! rows that are added many at once.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde_json::{Map, Value};

use crate::nopayload::model::{Added, Interval, MAX_NUMBER, Moment};

/// A body that can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadBody {
    /// As a whole.
    Whole(String),
    /// These fields.
    Fields(BTreeMap<&'static str, [String; 1]>),
}

const REQUIRED: &str = "This field is required.";
const NULL: &str = "This field may not be null.";
const NO_TEXT: &str = "Not a valid string.";
const NO_INTEGER: &str = "A valid integer is required.";
const TOO_SMALL: &str = "Ensure this value is greater than or equal to 0.";
const TOO_LARGE: &str = "Ensure this value is less than or equal to 9223372036854775807.";

/// The fields of an object. What is wrong with them is collected.
#[derive(Debug)]
pub struct Fields {
    map: Map<String, Value>,
    wrong: BTreeMap<&'static str, [String; 1]>,
}

impl Fields {
    /// Reads a body.
    ///
    /// # Errors
    /// When it is no object in JSON.
    pub fn read(body: &[u8]) -> Result<Self, BadBody> {
        let read: Result<Value, _> = serde_json::from_slice(body);
        match read {
            Ok(Value::Object(map)) => Ok(Self { map, wrong: BTreeMap::new() }),
            Ok(_) => Err(BadBody::Whole("Invalid data. Expected a dictionary.".to_owned())),
            Err(error) => Err(BadBody::Whole(format!("JSON parse error - {error}"))),
        }
    }

    /// A text without space around it. A number is its digits.
    pub fn text(&mut self, name: &'static str) -> String {
        let read = match self.map.get(name) {
            None => Err(REQUIRED),
            Some(Value::Null) => Err(NULL),
            Some(value) => text(value),
        };
        self.kept(name, read)
    }

    /// A text that may be missing.
    pub fn optional_text(&mut self, name: &'static str) -> Option<String> {
        let read = text(self.map.get(name).filter(|value| !value.is_null())?);
        Some(self.kept(name, read))
    }

    /// A number of 0 to 2^63 − 1.
    pub fn number(&mut self, name: &'static str) -> u64 {
        let read = match self.map.get(name) {
            None => Err(REQUIRED),
            Some(Value::Null) => Err(NULL),
            Some(value) => number(value),
        };
        self.kept(name, read)
    }

    /// A number that may be missing.
    pub fn optional_number(&mut self, name: &'static str) -> Option<u64> {
        self.map.contains_key(name).then(|| self.number(name))
    }

    /// The interval of `major_iov`, `minor_iov`, and an end that may be missing.
    pub fn interval(&mut self) -> Interval {
        let start = Moment::of(self.number("major_iov"), self.number("minor_iov"));
        let major = self.optional_number("major_iov_end").unwrap_or(MAX_NUMBER);
        let minor = self.optional_number("minor_iov_end").unwrap_or(MAX_NUMBER);
        Interval { start, end: Moment::of(major, minor) }
    }

    fn kept<T: Default>(&mut self, name: &'static str, read: Result<T, &str>) -> T {
        read.unwrap_or_else(|why| {
            self.wrong.insert(name, [why.to_owned()]);
            T::default()
        })
    }

    /// What was read, unless something was wrong.
    ///
    /// # Errors
    /// Then.
    pub fn done<T>(self, read: T) -> Result<T, BadBody> {
        match self.wrong.is_empty() {
            true => Ok(read),
            false => Err(BadBody::Fields(self.wrong)),
        }
    }
}

fn text(value: &Value) -> Result<String, &'static str> {
    match value {
        Value::String(text) => Ok(text.trim().to_owned()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(NO_TEXT),
    }
}

fn number(value: &Value) -> Result<u64, &'static str> {
    let wide = match value {
        Value::Number(number) => number.as_i128().ok_or(NO_INTEGER)?,
        Value::String(text) => text.trim().parse().map_err(|_| NO_INTEGER)?,
        _ => return Err(NO_INTEGER),
    };
    match u64::try_from(wide) {
        Ok(number) if number <= MAX_NUMBER => Ok(number),
        Ok(_) => Err(TOO_LARGE),
        Err(_) if wide < 0 => Err(TOO_SMALL),
        Err(_) => Err(TOO_LARGE),
    }
}

/// A number of a row.
struct Whole(u64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Seen;
        impl Visitor<'_> for Seen {
            type Value = Whole;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an integer of 0 to 9223372036854775807")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Whole, E> {
                match number <= MAX_NUMBER {
                    true => Ok(Whole(number)),
                    false => Err(E::custom(TOO_LARGE)),
                }
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Whole, E> {
                u64::try_from(number).map(Whole).map_err(|_| E::custom(TOO_SMALL))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Whole, E> {
                let number = text.trim().parse().map_err(|_| E::custom(NO_INTEGER))?;
                self.visit_u64(number)
            }
        }
        deserializer.deserialize_any(Seen)
    }
}

/// A row of many. The end and the checksum may be missing.
#[derive(serde::Deserialize)]
struct Row {
    payload_url: String,
    #[serde(default)]
    checksum: String,
    payload_list: String,
    major_iov: Whole,
    minor_iov: Whole,
    major_iov_end: Option<Whole>,
    minor_iov_end: Option<Whole>,
}

/// Reads rows that are added many at once.
///
/// # Errors
/// When they can't be read; the error names line and column.
pub fn bulk(body: &[u8]) -> Result<Vec<Added>, BadBody> {
    let rows: Result<Vec<Row>, _> = serde_json::from_slice(body);
    let rows = rows.map_err(|error| BadBody::Whole(format!("the rows: {error}")))?;
    let added = |row: Row| {
        let last = |number: Option<Whole>| number.map_or(MAX_NUMBER, |Whole(number)| number);
        let end = Moment::of(last(row.major_iov_end), last(row.minor_iov_end));
        let interval = Interval { start: Moment::of(row.major_iov.0, row.minor_iov.0), end };
        let (url, list) = (row.payload_url, row.payload_list);
        Added { url, checksum: row.checksum, interval, list }
    };
    Ok(rows.into_iter().map(added).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_wrong_field_is_named_with_what_is_wrong() {
        let body = br#"{"name": " a ", "status": null, "author": ["x"], "major_iov": -1,
            "minor_iov": 9223372036854775808, "major_iov_end": "12 ", "minor_iov_end": 1.5}"#;
        let mut fields = Fields::read(body).expect("an object");
        assert_eq!((fields.text("name"), fields.optional_text("none")), ("a".to_owned(), None));
        fields.text("status");
        fields.text("missing");
        fields.optional_text("author");
        assert_eq!(fields.interval().end, Moment::of(12, 0));
        let wrong = match fields.done(()) {
            Err(BadBody::Fields(wrong)) => wrong,
            other => panic!("{other:?}"),
        };
        let wrong: Vec<_> = wrong.iter().map(|(name, [why])| (*name, &why[..])).collect();
        let expected = [
            ("author", NO_TEXT),
            ("major_iov", TOO_SMALL),
            ("minor_iov", TOO_LARGE),
            ("minor_iov_end", NO_INTEGER),
            ("missing", REQUIRED),
            ("status", NULL),
        ];
        assert_eq!(wrong, expected);
    }

    #[test]
    fn rows_have_an_end_and_a_checksum_where_they_say_so() {
        let body =
            br#"[{"payload_url": "a", "major_iov": 1, "minor_iov": "2", "payload_list": "L"},
            {"payload_url": "b", "major_iov": 1, "minor_iov": 3, "payload_list": "L",
             "checksum": "md5:0", "major_iov_end": 2, "minor_iov_end": 0, "inserted": null}]"#;
        let added = bulk(body).expect("rows");
        assert_eq!(added[0].interval.end, Moment::OPEN);
        assert_eq!((&*added[0].checksum, added[0].interval.start), ("", Moment::of(1, 2)));
        assert_eq!((&*added[1].checksum, added[1].interval.end), ("md5:0", Moment::of(2, 0)));
        assert!(bulk(b"{}").is_err() && bulk(br#"[{"payload_url": "a"}]"#).is_err());
    }

    proptest! {
        #[test]
        fn no_body_is_more_than_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            text in r#"[\[{]?(\{|\}|\[|\]|"[a-z_]{0,9}"|:|,|-?[0-9]{1,25}|null| ){0,30}"#,
        ) {
            for body in [&bytes[..], text.as_bytes()] {
                let _ = bulk(body);
                if let Ok(mut fields) = Fields::read(body) {
                    let interval = fields.interval();
                    fields.text("name");
                    prop_assert!(interval.start <= Moment::OPEN && interval.end <= Moment::OPEN);
                    let _ = fields.done(());
                }
            }
        }
    }
}
