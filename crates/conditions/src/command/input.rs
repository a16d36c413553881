//! Objects that are typed, or read of files: CSV, a JSON object a line, or the binary form.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use super::parts::{Parts, Place};
use crate::model::{ColumnSpec, Kind, MAX_TIME, Object, Table};
use crate::protocol::{
    Bulk, MAX_BODY_BYTES, Malformed, ObjectBody, cell_from_text, cell_json, split_insert, time,
};

/// The most bytes of a binary file.
const MAX_FILE_BYTES: u64 = 4 << 30;

/// What is typed, or a line of a file, that is no object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct BadInput(pub(super) String);

/// `NAME=VALUE` words, as the values of one record.
pub(super) fn values(columns: &[ColumnSpec], words: &[String]) -> Result<Json, BadInput> {
    let mut values = Map::new();
    for word in words {
        let bad = |why: String| BadInput(format!("{word:?}: {why}"));
        let pair = word.split_once('=');
        let (name, text) = pair.ok_or_else(|| bad("write COLUMN=VALUE".to_owned()))?;
        let column = columns.iter().find(|column| column.name == name);
        let column = column.ok_or_else(|| bad(no_column(columns, name)))?;
        let value = cell_from_text(column.kind, text).map_err(|why| bad(why.to_string()))?;
        if values.insert(name.to_owned(), cell_json(&value)).is_some() {
            return Err(bad("this column has a value already".to_owned()));
        }
    }
    Ok(Json::Object(values))
}

pub(super) fn no_column(columns: &[ColumnSpec], name: &str) -> String {
    let known: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
    format!("no column is {name:?}; there are {}", known.join(", "))
}

fn opened(path: &Path) -> anyhow::Result<BufReader<File>> {
    let file = File::open(path).with_context(|| format!("{} can't be read", path.display()))?;
    Ok(BufReader::with_capacity(1 << 20, file))
}

/// Where a line of a file says no object.
fn bad_line(path: &Path, line: u64, why: impl Display) -> BadInput {
    BadInput(format!("{}:{line}: {why}", path.display()))
}

/// Adds the objects of a CSV with the header `channel,since,until` and the folder's columns, in
/// any order; `until` may be left out, and columns, which then have no value.
pub(super) fn csv(
    path: &Path,
    place: &Place,
    parts: &mut Parts,
    columns: impl FnOnce() -> anyhow::Result<Vec<ColumnSpec>>,
) -> anyhow::Result<()> {
    let columns = columns()?;
    let mut lines =
        CsvLines::open(opened(path)?, &columns).map_err(|why| bad_line(path, 1, why))?;
    let place = parts.place(place, || Ok(columns))?;
    while let Some(line) = lines.advance().map_err(|(line, why)| bad_line(path, line, why))? {
        let object = |bulk: &mut Bulk| {
            lines.object(&mut bulk.batch.payload).map_err(|why| bad_line(path, line, why))
        };
        parts.add(place, object)?;
    }
    Ok(())
}

/// The lines of a CSV.
struct CsvLines<R> {
    reader: csv::Reader<R>,
    record: csv::StringRecord,
    /// The fields of the channel, the first time and, if there is one, the end.
    begin: (usize, usize, Option<usize>),
    /// Each column's field, kind and name.
    cells: Vec<(Option<usize>, Kind, String)>,
}

impl<R: Read> CsvLines<R> {
    fn open(from: R, columns: &[ColumnSpec]) -> Result<Self, String> {
        let mut reader = csv::ReaderBuilder::new().from_reader(from);
        let header = reader.headers().map_err(|why| why.to_string())?.clone();
        let place = |name: &str| header.iter().position(|field| field == name);
        let needed = |name: &str| place(name).ok_or_else(|| format!("no column is named {name}"));
        let begin = (needed("channel")?, needed("since")?, place("until"));
        for (place, name) in header.iter().enumerate() {
            let is_begin = [Some(begin.0), Some(begin.1), begin.2].contains(&Some(place));
            if !is_begin && !columns.iter().any(|column| column.name == name) {
                return Err(no_column(columns, name));
            }
            if header.iter().take(place).any(|before| before == name) {
                return Err(format!("{name} is there twice"));
            }
        }
        let own = |column: &ColumnSpec| {
            let field = place(&column.name);
            let is_begin = ["channel", "since", "until"].contains(&column.name.as_str());
            (field.filter(|_| !is_begin), column.kind, column.name.clone())
        };
        let cells = columns.iter().map(own).collect();
        Ok(Self { reader, record: csv::StringRecord::new(), begin, cells })
    }

    /// Reads the next line, and returns its number.
    fn advance(&mut self) -> Result<Option<u64>, (u64, String)> {
        let is_there = self.reader.read_record(&mut self.record).map_err(|error| {
            let line = error.position().map_or(0, csv::Position::line);
            (line, error.to_string())
        })?;
        let line = self.record.position().map_or(0, csv::Position::line);
        Ok(is_there.then_some(line))
    }

    /// The object of the line, whose record is added to a payload in the folder's columns.
    fn object(&self, payload: &mut Table) -> Result<Object, String> {
        let (channel, since, until) = self.begin;
        let number = self.record[channel].parse();
        let channel = number.map_err(|_| "channel: write a number".to_owned())?;
        let since = time(&self.record[since]).map_err(|why| format!("since: {why}"))?;
        let end = until.map(|place| &self.record[place]).filter(|text| !text.is_empty());
        let end = end.map(time).transpose().map_err(|why| format!("until: {why}"))?;
        for ((field, kind, name), cells) in self.cells.iter().zip(&mut payload.columns) {
            let text = field.map_or("", |field| &self.record[field]);
            let value = cell_from_text(*kind, text).map_err(|why| format!("{name}: {why}"))?;
            cells.push(&value).map_err(|_| format!("{name}: a value out of its range"))?;
        }
        payload.rows += 1;
        Ok(Object { channel, since, until: end.unwrap_or(MAX_TIME), records: 1 })
    }
}

/// A line of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    folder: Option<String>,
    tag: Option<String>,
    only_tag: Option<bool>,
    channel: u32,
    since: u64,
    until: Option<u64>,
    values: Option<Json>,
    records: Option<Vec<Json>>,
}

impl Line {
    fn read(text: &[u8], place: Option<&Place>) -> Result<(Place, ObjectBody), String> {
        let line: Self = serde_json::from_slice(text).map_err(|why| why.to_string())?;
        let Self { folder, tag, only_tag, channel, since, until, values, records } = line;
        let (own, own_tag, own_only) =
            place.cloned().map_or((None, None, false), |place| (Some(place.0), place.1, place.2));
        let folder =
            folder.or(own).ok_or("\"folder\" is missing: add it, or name one for all lines")?;
        let place = (folder, tag.or(own_tag), only_tag.unwrap_or(own_only));
        Ok((place, ObjectBody { channel, since, until, values, records }))
    }
}

/// Adds the objects of a file with a JSON object a line. What a line doesn't name is as in `place`.
pub(super) fn json_lines(
    path: &Path,
    place: Option<&Place>,
    parts: &mut Parts,
    columns: impl Fn(&str) -> anyhow::Result<Vec<ColumnSpec>>,
) -> anyhow::Result<()> {
    let (mut file, mut text) = (opened(path)?, Vec::new());
    for number in 1.. {
        text.clear();
        let most = MAX_BODY_BYTES as u64;
        let read = (&mut file).take(most).read_until(b'\n', &mut text);
        match read.with_context(|| format!("{} can't be read", path.display()))? {
            0 => break,
            bytes if bytes == MAX_BODY_BYTES => {
                let why = format!("a line of more than {most} bytes: give an object fewer records");
                return Err(bad_line(path, number, why).into());
            }
            _ if text.iter().all(u8::is_ascii_whitespace) => continue,
            _ => {}
        }
        let bad = |why: String| bad_line(path, number, why);
        let (place, object) = Line::read(&text, place).map_err(bad)?;
        let known = parts.place(&place, || columns(&place.0))?;
        let add = |bulk: &mut Bulk| {
            let Bulk { columns, batch } = bulk;
            object.add_to(&mut batch.payload, columns).map_err(bad)
        };
        parts.add(known, add)?;
    }
    Ok(())
}

/// Adds the objects of a file in the binary form.
pub(super) fn binary(path: &Path, parts: &mut Parts) -> anyhow::Result<()> {
    let bytes = base::read_bytes(path, MAX_FILE_BYTES)?;
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        let (bulks, after) = split_insert(rest).map_err(|why| {
            let Malformed { form, at: inside, .. } = why;
            let (path, all) = (path.display(), bytes.len());
            BadInput(format!("{path}: no {form}: wrong at byte {} of {all}", at + inside))
        })?;
        bulks.into_iter().try_for_each(|bulk| parts.add_bulk(bulk))?;
        rest = after;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Value;

    fn columns() -> Vec<ColumnSpec> {
        let column = |(name, kind): (&str, _)| ColumnSpec { name: name.to_owned(), kind };
        [("value", Kind::Float), ("note", Kind::String)].map(column).to_vec()
    }

    fn csv_text(text: &str) -> Result<(Vec<Object>, Table), String> {
        let mut lines =
            CsvLines::open(text.as_bytes(), &columns()).map_err(|why| format!("1: {why}"))?;
        let mut payload = Table::new(columns().iter().map(|column| column.kind));
        let mut objects = Vec::new();
        while let Some(line) = lines.advance().map_err(|(line, why)| format!("{line}: {why}"))? {
            let object = lines.object(&mut payload);
            objects.push(object.map_err(|why| format!("{line}: {why}"))?);
        }
        Ok((objects, payload))
    }

    #[test]
    fn a_csv_is_read_or_names_line_column_and_fix() {
        let good = "note,since,channel,until,value\n\"a, b\",10,3,20,1.5\n,20,3,,\n";
        let (objects, payload) = csv_text(good).expect("objects");
        let object = |since, until| Object { channel: 3, since, until, records: 1 };
        assert_eq!(objects, [object(10, 20), object(20, MAX_TIME)]);
        let rows: Vec<Vec<Value>> = (0..2).map(|row| payload.row(row).collect()).collect();
        let first = [Value::Float(1.5), Value::Text("a, b".to_owned())];
        assert_eq!(rows, [first, [Value::Null, Value::Null]]);
        assert!(payload.is_sound());
        for (text, said) in [
            ("channel,value\n", "1: no column is named since"),
            ("channel,since,x\n", "1: no column is \"x\"; there are value, note"),
            ("channel,since,value,value\n", "1: value is there twice"),
            ("channel,since,value\n1,2,3\n1,2,high\n", "3: value: \"high\" is no float: write"),
            ("channel,since\n1,-2\n", "2: since: write a time of 0 to"),
            ("channel,since\nx,2\n", "2: channel: write a number"),
            ("channel,since\n1,2,3\n", "2: CSV error"),
        ] {
            let why = csv_text(text).expect_err("refused");
            assert!(why.starts_with(said), "{why}");
        }
    }

    #[test]
    fn a_line_names_its_folder_and_tag_or_has_those_of_all_lines() {
        let all = ("/a".to_owned(), Some("t".to_owned()), true);
        let own =
            br#"{"folder":"/b","tag":"u","only_tag":false,"channel":1,"since":0,"values":[1]}"#;
        let (place, _) = Line::read(own, Some(&all)).expect("an object");
        assert_eq!(place, ("/b".to_owned(), Some("u".to_owned()), false));
        let bare = br#"{"channel":1,"since":5,"records":[]}"#;
        assert_eq!(Line::read(bare, Some(&all)).expect("an object").0, all);
        let why = Line::read(bare, None).expect_err("refused");
        assert!(why.starts_with("\"folder\" is missing"), "{why}");
        assert!(Line::read(b"{\"x\":1}", None).expect_err("refused").starts_with("unknown"));
    }

    #[test]
    fn words_are_values_of_columns() {
        let words = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            values(&columns(), &words)
        };
        let read = words(&["value=2", "note=a=b"]).expect("values");
        assert_eq!(read, serde_json::json!({ "value": 2.0, "note": "a=b" }));
        for (typed, said) in [
            (&["value"][..], "write COLUMN=VALUE"),
            (&["x=1"], "no column is \"x\""),
            (&["value=high"], "\"high\" is no float"),
            (&["value=1", "value=2"], "has a value already"),
        ] {
            let why = words(typed).expect_err("refused").to_string();
            assert!(why.contains(said), "{why}");
        }
    }
}
