//! The objects of a CSV.

use std::io::BufRead;
use std::path::Path;

use super::input::{Lines, Wrong, bad_line, interval, missing, no_column};
use super::parts::{Parts, Place};
use crate::model::{ColumnSpec, Kind, MAX_TIME, Object, Table};
use crate::protocol::{Bulk, CSV_BEGIN, CsvRecord, MAX_BODY_BYTES, MAX_CHANGE_BYTES, time};

/// The most that is read of an object that has not ended, with those that wait before it: more than
/// a change may have.
const MOST_BYTES: usize = 4 * MAX_CHANGE_BYTES;

/// Adds the objects of a CSV with the header `channel,since,until,record` and the folder's columns,
/// in any order; `until` and `record` may be left out, and columns where that is allowed.
pub(super) fn csv(
    path: &Path,
    place: &Place,
    parts: &mut Parts,
    columns: Vec<ColumnSpec>,
    may_lack: bool,
) -> anyhow::Result<()> {
    let bad = |(line, why): Wrong| bad_line(path, line, why);
    let mut lines = CsvLines::open(Lines::open(path)?, &columns, may_lack).map_err(bad)?;
    let mut skipped = Table::new(columns.iter().map(|column| column.kind));
    let place = parts.place(place, || Ok(columns))?;
    while lines.is_there().map_err(bad)? {
        if parts.skips() {
            lines.object(&mut skipped).map_err(bad)?;
            drop(skipped.split_off(0));
            continue;
        }
        let object = |bulk: &mut Bulk| lines.object(&mut bulk.batch.payload).map_err(bad);
        parts.add(place, object)?;
    }
    Ok(())
}

/// Where the fields of a line are.
struct Places {
    channel: usize,
    since: usize,
    until: Option<usize>,
    record: Option<usize>,
    fields: usize,
    /// Each column's field, kind and name.
    cells: Vec<(Option<usize>, Kind, String)>,
}

impl Places {
    fn of(header: &CsvRecord, columns: &[ColumnSpec], may_lack: bool) -> Result<Self, String> {
        let names: Vec<&str> = header.fields().map(|field| field.text).collect();
        let begin = CSV_BEGIN.join(",");
        if let Some(taken) = columns.iter().find(|one| CSV_BEGIN[..3].contains(&one.name.as_str()))
        {
            let name = &taken.name;
            return Err(format!(
                "column {name:?} can't be in a CSV: write JSON lines, or rename it"
            ));
        }
        let place = |name: &str| names.iter().position(|field| *field == name);
        let own = |name: &str| columns.iter().any(|column| column.name == name);
        let needed = |name: &str| {
            place(name).ok_or_else(|| {
                format!("no field is named {name}: the first line names them, {begin} and columns")
            })
        };
        if let [name] = names[..]
            && let Some(sign) = [";", "\t", "|"].into_iter().find(|sign| name.contains(sign))
        {
            return Err(format!("there is {sign:?} between its fields: put commas there"));
        }
        for (at, name) in names.iter().enumerate() {
            if !CSV_BEGIN.contains(name) && !own(name) {
                return Err(no_column(columns, name));
            }
            if names[..at].contains(name) {
                return Err(format!("{name} is there twice"));
            }
        }
        let cell = |column: &ColumnSpec| (place(&column.name), column.kind, column.name.clone());
        let cells: Vec<_> = columns.iter().map(cell).collect();
        let lacking = cells.iter().filter(|(place, ..)| place.is_none() && !may_lack);
        let lacking: Vec<_> = lacking.map(|(.., name)| name.as_str()).collect();
        if !lacking.is_empty() {
            return Err(missing(&lacking));
        }
        Ok(Self {
            channel: needed("channel")?,
            since: needed("since")?,
            until: place("until"),
            // A column of that name is what is meant, and each line an object.
            record: place("record").filter(|_| !own("record")),
            fields: names.len(),
            cells,
        })
    }
}

/// The lines of a CSV.
struct CsvLines<R> {
    lines: Lines<R>,
    /// The record that is next, if it was read, and the line that it begins in.
    record: CsvRecord,
    next: Option<u64>,
    places: Places,
}

impl<R: BufRead> CsvLines<R> {
    fn open(mut lines: Lines<R>, columns: &[ColumnSpec], may_lack: bool) -> Result<Self, Wrong> {
        let mut record = CsvRecord::default();
        let Some(line) = advance(&mut lines, &mut record)? else {
            return Err((1, format!("it is empty: the first line is {}…", CSV_BEGIN.join(","))));
        };
        let places = Places::of(&record, columns, may_lack).map_err(|why| (line, why))?;
        Ok(Self { lines, record, next: None, places })
    }

    /// Whether there is a next object.
    fn is_there(&mut self) -> Result<bool, Wrong> {
        if self.next.is_none() {
            self.next = advance(&mut self.lines, &mut self.record)?;
            if let Some(line) = self.next {
                let (count, fields) = (self.record.count(), self.places.fields);
                if count != fields {
                    return Err((line, format!("{count} fields, and the header has {fields}")));
                }
            }
        }
        Ok(self.next.is_some())
    }

    /// The next object, with its line; its records are added to a payload in the folder's columns.
    fn object(&mut self, payload: &mut Table) -> Result<(Object, u64), Wrong> {
        let line = self.next.unwrap_or_default();
        let wrong = |why| (line, why);
        let (mut object, record) = self.begin().map_err(wrong)?;
        match record {
            None => self.no_record().map_err(wrong)?,
            Some(0) => self.cells(payload).map_err(wrong)?,
            Some(_) => {
                let why = "its first record is another: the records of an object have the same \
                           channel, since and until, count from 0, and are next to each other";
                return Err(wrong(why.to_owned()));
            }
        }
        object.records = u32::from(record.is_some());
        self.next = None;
        // More of them follow only where records are counted.
        while self.places.record.is_some() && record.is_some() && self.is_there()? {
            let line = self.next.unwrap_or_default();
            let (more, record) = self.begin().map_err(|why| (line, why))?;
            let is_more = record == Some(object.records)
                && (more.channel, more.since, more.until)
                    == (object.channel, object.since, object.until);
            if !is_more {
                break;
            }
            self.cells(payload).map_err(|why| (line, why))?;
            if payload.bytes() > MOST_BYTES {
                let why = "its object has more records than a change may have: give it fewer";
                return Err((line, why.to_owned()));
            }
            object.records += 1;
            self.next = None;
        }
        Ok((object, line))
    }

    /// The object that the line is of, without its records, and which of these it has.
    fn begin(&self) -> Result<(Object, Option<u32>), String> {
        let Places { channel, since, until, record, .. } = &self.places;
        let text = |place: usize| self.record.field(place).text;
        let number = |name: &str, text: &str| {
            text.parse().map_err(|_| format!("{name}: {text:?} is no number of 0 to {}", u32::MAX))
        };
        let instant = |name: &str, text: &str| time(text).map_err(|why| format!("{name}: {why}"));
        let channel = number("channel", text(*channel))?;
        let since = instant("since", text(*since))?;
        let end = until.map(text).filter(|text| !text.is_empty());
        let until = end.map_or(Ok(MAX_TIME), |text| instant("until", text))?;
        interval(since, until)?;
        let record = match record.map(text) {
            None => Some(0),
            Some("") => None,
            Some(text) => Some(number("record", text)?),
        };
        Ok((Object { channel, since, until, records: 0 }, record))
    }

    fn no_record(&self) -> Result<(), String> {
        let mut places = self.places.cells.iter().filter_map(|(place, ..)| *place);
        match places.any(|place| !self.record.field(place).text.is_empty()) {
            true => Err("record is empty, which is an object without records: write 0".to_owned()),
            false => Ok(()),
        }
    }

    /// Adds the cells of the line to a payload.
    fn cells(&self, payload: &mut Table) -> Result<(), String> {
        for ((place, kind, name), cells) in self.places.cells.iter().zip(&mut payload.columns) {
            let Some(place) = place else {
                cells.push_null();
                continue;
            };
            let value = self.record.field(*place).value(*kind);
            let value = value.map_err(|why| format!("{name}: {why}"))?;
            cells.push(&value).map_err(|_| format!("{name}: a value out of its range"))?;
        }
        payload.rows += 1;
        Ok(())
    }
}

/// Reads the next record, and returns the line that it begins in.
fn advance<R: BufRead>(lines: &mut Lines<R>, record: &mut CsvRecord) -> Result<Option<u64>, Wrong> {
    record.clear();
    let mut begun = None;
    // Where the quote opens that the record goes on in.
    let mut opened = 0;
    while let Some((number, line)) = lines.next()? {
        if begun.is_none() && line.trim_ascii().is_empty() {
            continue;
        }
        let fields = record.count();
        let is_whole = record.add(line).map_err(|why| match begun {
            Some(_) => (opened, format!("{OPENED} goes on to line {number}: {why}")),
            None => (number, why.to_owned()),
        })?;
        if is_whole {
            return Ok(Some(begun.unwrap_or(number)));
        }
        if begun.is_none() || record.count() > fields {
            opened = number;
        }
        begun = begun.or(Some(number));
        if record.bytes() > MAX_BODY_BYTES {
            return Err((opened, format!("{OPENED} is not closed in {MAX_BODY_BYTES} bytes")));
        }
    }
    match begun {
        Some(_) => Err((opened, format!("{OPENED} is not closed"))),
        None => Ok(None),
    }
}

const OPENED: &str = "the quote that opens here";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Value;

    fn columns() -> Vec<ColumnSpec> {
        let column = |(name, kind): (&str, _)| ColumnSpec { name: name.to_owned(), kind };
        [("value", Kind::Float), ("note", Kind::String)].map(column).to_vec()
    }

    /// The objects of a CSV, each with the line that it begins in.
    fn read(text: &str, may_lack: bool) -> Result<(Vec<(Object, u64)>, Table), String> {
        let wrong = |(line, why): Wrong| format!("{line}: {why}");
        let mut lines =
            CsvLines::open(Lines::of(text.as_bytes()), &columns(), may_lack).map_err(wrong)?;
        let mut payload = Table::new(columns().iter().map(|column| column.kind));
        let mut objects = Vec::new();
        while lines.is_there().map_err(wrong)? {
            objects.push(lines.object(&mut payload).map_err(wrong)?);
        }
        Ok((objects, payload))
    }

    #[test]
    fn objects_are_read_with_their_records_and_lines() {
        let good = "\u{feff}note,record,since,channel,until,value\r\n\"a,\nb\",0,10,3,20,1.5\n\
                    ,1,10,3,20,\n\n,,20,3,,\n\"\",0,20,4,max,2";
        let (objects, payload) = read(good, false).expect("objects");
        let object = |channel, since, until, records| Object { channel, since, until, records };
        let expected = [
            (object(3, 10, 20, 2), 2),
            (object(3, 20, MAX_TIME, 0), 6),
            (object(4, 20, MAX_TIME, 1), 7),
        ];
        assert_eq!(objects, expected);
        let rows: Vec<Vec<Value>> = (0..3).map(|row| payload.row(row).collect()).collect();
        let text = |text: &str| Value::Text(text.to_owned());
        let first = [Value::Float(1.5), text("a,\nb")];
        assert_eq!(rows, [first, [Value::Null, Value::Null], [Value::Float(2.0), text("")]]);
        assert!(payload.is_sound());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_the_fix() {
        let head = "channel,since,until,record,value,note\n";
        for (rows, said) in [
            ("1,2,3,0,high,\n", "2: value: \"high\" is no float: write"),
            ("1,-2,,0,,\n", "2: since: write a time of 0 to"),
            ("1,3,2,0,,\n", "2: [3, 2) is no interval"),
            ("x,2,,0,,\n", "2: channel: \"x\" is no number"),
            ("1,2,,0,,\n1,2,,2,,\n", "3: its first record is another"),
            ("1,2,,0,,\n1,3,,1,,\n", "3: its first record is another"),
            ("1,2,,,5,\n", "2: record is empty"),
            ("1,2\n", "2: 2 fields, and the header has 6"),
            ("1,2,,0,,\"a\n\",\"b\"\n", "2: 7 fields"),
            ("1,2,,0,,\"a\n\nb", "2: the quote that opens here is not closed"),
        ] {
            let why = read(&(head.to_owned() + rows), false).expect_err("refused");
            assert!(why.starts_with(said), "{why}");
        }
        for (head, said) in [
            ("", "1: it is empty"),
            ("channel,value,note\n", "1: no field is named since"),
            ("channel,since,x\n", "1: no column is \"x\"; there are value, note"),
            ("channel,since,value,value\n", "1: value is there twice"),
            ("channel,since,value\n", "1: nothing is given for note: add it"),
            ("channel;since;value;note\n", "1: there is \";\" between its fields: put commas"),
        ] {
            let why = read(head, false).expect_err("refused");
            assert!(why.starts_with(said), "{why}");
        }
        let text = "x".repeat(1 << 20);
        let row = |n: u32| format!("1,2,,{n},,{text}\n");
        let rows: String = (0..80).map(row).collect();
        let why = read(&(head.to_owned() + &rows), false).expect_err("refused");
        assert!(why.starts_with("65: its object has more records"), "{why}");
        assert_eq!(read("channel,since\n1,2\n", true).expect("objects").0.len(), 1);
    }
}
