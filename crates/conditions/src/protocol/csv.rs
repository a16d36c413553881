//! Lines of CSV (RFC 4180): what an export writes, and how a file is read, strictly.
//!
//! A header, then a line for each record: `channel,since,until,record` and the folder's columns.
//! `record` counts the records of an object from 0, and is empty for an object that has none. A
//! field that is empty has no value; one of text that is `""` is empty text.

use super::cell::{Rejected, cell_from_text, cell_text};
use crate::model::{Answer, ColumnSpec, Kind, Value};

/// The fields that every line begins with.
pub const CSV_BEGIN: [&str; 4] = ["channel", "since", "until", "record"];

/// The first line of an export.
///
/// # Errors
/// When a column is named as one of the fields before it.
pub fn csv_header(columns: &[ColumnSpec]) -> Result<Vec<u8>, String> {
    let mut line = Vec::new();
    if let Some(taken) = columns.iter().find(|one| CSV_BEGIN.contains(&one.name.as_str())) {
        let begin = CSV_BEGIN.join(",");
        return Err(format!("column {:?} can't be in a CSV, which begins {begin}", taken.name));
    }
    let names = columns.iter().map(|column| column.name.clone());
    put_line(&mut line, CSV_BEGIN.map(str::to_owned).into_iter().chain(names).map(Some));
    Ok(line)
}

/// The lines of these objects.
pub fn csv_lines(answer: &Answer) -> Vec<u8> {
    let (mut lines, mut row) = (Vec::new(), 0);
    for object in &answer.objects {
        let begin = [u64::from(object.channel), object.since, object.until];
        let begin = begin.map(|number| Some(number.to_string()));
        if object.records == 0 {
            let nothing = std::iter::repeat_n(None, 1 + answer.columns.len());
            put_line(&mut lines, begin.iter().cloned().chain(nothing));
        }
        for record in 0..object.records {
            let cells = answer.payload.row(row).map(|value| match value {
                Value::Null => None,
                value => Some(cell_text(&value)),
            });
            let fields = begin.iter().cloned().chain([Some(record.to_string())]).chain(cells);
            put_line(&mut lines, fields);
            row += 1;
        }
    }
    lines
}

/// Appends a line; a field that is none has no value.
fn put_line(line: &mut Vec<u8>, fields: impl Iterator<Item = Option<String>>) {
    for (place, field) in fields.enumerate() {
        if place > 0 {
            line.push(b',');
        }
        let Some(text) = field else { continue };
        match text.is_empty() || text.contains([',', '"', '\n', '\r']) {
            true => line.extend(format!("\"{}\"", text.replace('"', "\"\"")).bytes()),
            false => line.extend(text.bytes()),
        }
    }
    line.push(b'\n');
}

/// A field, and whether it is in quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsvField<'a> {
    /// Its text.
    pub text: &'a str,
    /// Whether it is in quotes.
    pub is_quoted: bool,
}

impl CsvField<'_> {
    /// The value of a cell.
    ///
    /// # Errors
    /// When it is of another kind.
    pub fn value(self, kind: Kind) -> Result<Value, Rejected> {
        match (kind, self.text, self.is_quoted) {
            (Kind::String, "", true) => Ok(Value::Text(String::new())),
            (Kind::Blob, "", true) => Ok(Value::Bytes(Vec::new())),
            (_, text, _) => cell_from_text(kind, text),
        }
    }
}

/// Where in a field a line ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum In {
    #[default]
    Start,
    Plain,
    Quotes,
    /// Behind a quote, which ends the field, or is the first of two that mean one.
    Quote,
}

/// The fields of a record, whose lines are added one by one.
#[derive(Debug, Default)]
pub struct CsvRecord {
    text: Vec<u8>,
    /// Where each field ends, and whether it is in quotes.
    ends: Vec<(usize, bool)>,
    place: In,
    is_quoted: bool,
}

impl CsvRecord {
    /// Begins a new record.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        (self.place, self.is_quoted) = (In::Start, false);
    }

    /// Adds a line with what ends it; returns whether the record is whole: one with a quote that
    /// isn't closed goes on in the next line.
    ///
    /// # Errors
    /// When it is no CSV; the record is of no use then.
    pub fn add(&mut self, line: &[u8]) -> Result<bool, &'static str> {
        let end = line.strip_suffix(b"\n").unwrap_or(line);
        let end = end.strip_suffix(b"\r").unwrap_or(end).len();
        let (body, end) = line.split_at(end);
        for byte in body.iter().copied() {
            self.place = match (self.place, byte) {
                (In::Start, b'"') => {
                    self.is_quoted = true;
                    In::Quotes
                }
                (In::Start | In::Plain | In::Quote, b',') => {
                    self.end();
                    In::Start
                }
                (In::Plain, b'"') => {
                    return Err("a quote in a field without quotes: put the field in quotes, and \
                                write this one twice");
                }
                (In::Start | In::Plain, b'\r') => {
                    return Err("a carriage return in a line: put the field in quotes");
                }
                (In::Quotes, b'"') => In::Quote,
                (In::Quote, b'"') | (In::Quotes, _) => {
                    self.text.push(byte);
                    In::Quotes
                }
                (In::Quote, _) => {
                    return Err(
                        "text behind the quote that ends a field: a quote that is part of \
                                it is written twice",
                    );
                }
                (In::Start | In::Plain, _) => {
                    self.text.push(byte);
                    In::Plain
                }
            };
        }
        if self.place == In::Quotes {
            self.text.extend(end);
            return Ok(false);
        }
        self.end();
        match std::str::from_utf8(&self.text) {
            Ok(_) => Ok(true),
            Err(_) => Err("no UTF-8 text"),
        }
    }

    fn end(&mut self) {
        self.ends.push((self.text.len(), self.is_quoted));
        self.is_quoted = false;
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// How many fields it has.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// A field of a whole record; empty where there is none.
    pub fn field(&self, place: usize) -> CsvField<'_> {
        let begin = match place {
            0 => 0,
            _ => self.ends.get(place - 1).map_or(self.text.len(), |(end, _)| *end),
        };
        let (end, is_quoted) = self.ends.get(place).copied().unwrap_or((begin, false));
        let text = self.text.get(begin..end).unwrap_or_default();
        // That the record is UTF-8 was checked, and fields end where commas were.
        CsvField { text: std::str::from_utf8(text).unwrap_or_default(), is_quoted }
    }

    /// All fields of a whole record.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = CsvField<'_>> {
        (0..self.ends.len()).map(|place| self.field(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The fields of the first record of this text, or why there are none.
    fn record(text: &str) -> Result<Option<Vec<(String, bool)>>, &'static str> {
        let mut record = CsvRecord::default();
        for line in text.split_inclusive('\n') {
            if record.add(line.as_bytes())? {
                let fields = record.fields().map(|one| (one.text.to_owned(), one.is_quoted));
                return Ok(Some(fields.collect()));
            }
        }
        Ok(None)
    }

    #[test]
    fn a_record_is_read_strictly() {
        let fields = |fields: &[(&str, bool)]| {
            Ok(Some(fields.iter().map(|(text, quoted)| ((*text).to_owned(), *quoted)).collect()))
        };
        assert_eq!(
            record("a,,\"\",b\r\n"),
            fields(&[("a", false), ("", false), ("", true), ("b", false)])
        );
        assert_eq!(record("\"a\"\"b\r\nc\",\n"), fields(&[("a\"b\r\nc", true), ("", false)]));
        assert_eq!(record("é"), fields(&[("é", false)]));
        assert_eq!(record("1,\"open\n2,3\n"), Ok(None));
        for text in ["a\"b\n", "\"a\"b\n", "\"a\" ,b\n", "a\rb\n", " \"a\"\n"] {
            assert!(record(text).is_err(), "{text:?}");
        }
        assert!(CsvRecord::default().add(b"a,\xff\n").is_err());
    }

    proptest! {
        #[test]
        fn fields_are_read_as_they_were_written(
            fields in prop::collection::vec(prop::option::of("[a,\"\r\né ]{0,6}"), 2..6),
        ) {
            let mut line = Vec::new();
            put_line(&mut line, fields.iter().cloned());
            let read = record(std::str::from_utf8(&line).expect("text")).expect("CSV");
            let read: Vec<_> = read.expect("whole").into_iter().collect();
            let none = |(text, quoted): &(String, bool)| text.is_empty() && !quoted;
            let read: Vec<_> =
                read.into_iter().map(|one| if none(&one) { None } else { Some(one.0) }).collect();
            prop_assert_eq!(read, fields);
        }

        #[test]
        fn no_bytes_are_more_than_refused(lines in prop::collection::vec("[a,\"\r\n]{0,9}", 0..4)) {
            let mut record = CsvRecord::default();
            for line in lines {
                if record.add(line.as_bytes()).is_err() {
                    break;
                }
                let _ = (record.fields().count(), record.field(9));
            }
        }
    }
}
