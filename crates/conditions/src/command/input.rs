//! Objects that are typed, or read of files: CSV, or a JSON object a line.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value as Json};

use crate::model::ColumnSpec;
use crate::protocol::{BatchBody, ObjectBody, cell_from_text, cell_json, time};

/// The most bytes that are read of a file.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// What is typed, or a line of a file, that is no object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct BadInput(pub(super) String);

/// An object, and which batch it belongs to: its folder, its tag, and whether the head shows it.
pub(super) type Placed = ((String, Option<String>, bool), ObjectBody);

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

fn no_column(columns: &[ColumnSpec], name: &str) -> String {
    let known: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
    format!("no column is {name:?}; there are {}", known.join(", "))
}

/// The objects of a CSV with the header `channel,since,until` and the folder's columns, in any
/// order; `until` may be left out.
pub(super) fn csv(path: &Path, columns: &[ColumnSpec]) -> anyhow::Result<Vec<ObjectBody>> {
    let text = base::read_text(path, MAX_FILE_BYTES)?;
    Ok(csv_text(&text, columns).map_err(|why| BadInput(format!("{}:{why}", path.display())))?)
}

/// The errors begin with the line.
fn csv_text(text: &str, columns: &[ColumnSpec]) -> Result<Vec<ObjectBody>, String> {
    let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let header = reader.headers().map_err(|why| format!("1: {why}"))?.clone();
    let place = |name: &str| header.iter().position(|field| field == name);
    let needed = |name: &str| place(name).ok_or_else(|| format!("1: no column is named {name}"));
    let (channel, since, until) = (needed("channel")?, needed("since")?, place("until"));
    let mut payload = Vec::new();
    for (place, name) in header.iter().enumerate() {
        if [Some(channel), Some(since), until].contains(&Some(place)) {
            continue;
        }
        let column = columns.iter().find(|column| column.name == name);
        let column = column.ok_or_else(|| format!("1: {}", no_column(columns, name)))?;
        payload.push((place, column));
    }
    let mut objects = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| {
            let line = error.position().map_or(0, csv::Position::line);
            format!("{line}: {error}")
        })?;
        let line = record.position().map_or(0, csv::Position::line);
        let bad = |name: &str, why: String| format!("{line}: {name}: {why}");
        let mut values = Map::new();
        for (place, column) in &payload {
            let value = cell_from_text(column.kind, &record[*place]);
            let value = value.map_err(|why| bad(&column.name, why.to_string()))?;
            values.insert(column.name.clone(), cell_json(&value));
        }
        let number = record[channel].parse();
        let end = until.map(|place| &record[place]).filter(|text| !text.is_empty());
        objects.push(ObjectBody {
            channel: number.map_err(|_| bad("channel", "write a number".to_owned()))?,
            since: time(&record[since]).map_err(|why| bad("since", why))?,
            until: end.map(time).transpose().map_err(|why| bad("until", why))?,
            values: Some(Json::Object(values)),
            records: None,
        });
    }
    Ok(objects)
}

/// A line of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    folder: Option<String>,
    tag: Option<String>,
    #[serde(default)]
    only_tag: bool,
    channel: u32,
    since: u64,
    until: Option<u64>,
    values: Option<Json>,
    records: Option<Vec<Json>>,
}

/// The objects of a file with a JSON object a line. Where one names no folder it is `folder`'s.
pub(super) fn json_lines(path: &Path, folder: Option<&str>) -> anyhow::Result<Vec<Placed>> {
    let text = base::read_text(path, MAX_FILE_BYTES)?;
    Ok(lines_text(&text, folder).map_err(|why| BadInput(format!("{}:{why}", path.display())))?)
}

fn lines_text(text: &str, folder: Option<&str>) -> Result<Vec<Placed>, String> {
    let mut objects = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let line: Line = serde_json::from_str(line).map_err(|why| format!("{number}: {why}"))?;
        let owner = line.folder.or_else(|| folder.map(str::to_owned)).ok_or_else(|| {
            format!("{number}: \"folder\" is missing: add it, or name a folder for all lines")
        })?;
        let Line { tag, only_tag, channel, since, until, values, records, .. } = line;
        let object = ObjectBody { channel, since, until, values, records };
        objects.push(((owner, tag, only_tag), object));
    }
    Ok(objects)
}

/// The objects by folder and tag; those of one batch keep their order.
pub(super) fn batches(objects: Vec<Placed>) -> Vec<BatchBody> {
    let mut by_place: BTreeMap<(String, Option<String>, bool), Vec<ObjectBody>> = BTreeMap::new();
    for (place, object) in objects {
        by_place.entry(place).or_default().push(object);
    }
    let batch = |((folder, tag, only_tag), objects)| BatchBody { folder, tag, only_tag, objects };
    by_place.into_iter().map(batch).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Kind;

    fn columns() -> Vec<ColumnSpec> {
        let column = |(name, kind): (&str, _)| ColumnSpec { name: name.to_owned(), kind };
        [("value", Kind::Float), ("note", Kind::String)].map(column).to_vec()
    }

    #[test]
    fn a_csv_is_read_or_names_line_column_and_fix() {
        let good = "note,since,channel,until,value\n\"a, b\",10,3,20,1.5\n,20,3,,\n";
        let objects = csv_text(good, &columns()).expect("objects");
        assert_eq!((objects[0].channel, objects[0].until, objects[1].until), (3, Some(20), None));
        let values: Vec<_> = objects.iter().map(|object| object.values.clone()).collect();
        let expected = [
            serde_json::json!({ "note": "a, b", "value": 1.5 }),
            serde_json::json!({ "note": null, "value": null }),
        ];
        assert_eq!(values, expected.map(Some));
        for (text, said) in [
            ("channel,value\n", "1: no column is named since"),
            ("channel,since,x\n", "1: no column is \"x\"; there are value, note"),
            ("channel,since,value\n1,2,3\n1,2,high\n", "3: value: \"high\" is no float: write"),
            ("channel,since\n1,-2\n", "2: since: write a time of 0 to"),
            ("channel,since\nx,2\n", "2: channel: write a number"),
            ("channel,since\n1,2,3\n", "2: CSV error"),
        ] {
            let why = csv_text(text, &columns()).expect_err("refused");
            assert!(why.starts_with(said), "{why}");
        }
    }

    #[test]
    fn json_lines_are_put_together_by_folder_and_tag() {
        let text = "{\"folder\":\"/b\",\"channel\":1,\"since\":0,\"values\":[1]}\n\n\
                    {\"channel\":1,\"since\":5,\"records\":[],\"tag\":\"t\"}\n\
                    {\"channel\":2,\"since\":6,\"values\":[1],\"tag\":\"t\"}\n";
        let batches = batches(lines_text(text, Some("/a")).expect("objects"));
        let sizes = batches.iter().map(|batch| (&batch.folder[..], batch.objects.len()));
        assert_eq!(sizes.collect::<Vec<_>>(), [("/a", 2), ("/b", 1)]);
        let why = lines_text(text, None).expect_err("refused");
        assert!(why.starts_with("3: \"folder\" is missing"), "{why}");
        assert!(lines_text("{\"x\":1}", None).expect_err("refused").starts_with("1: unknown"));
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
