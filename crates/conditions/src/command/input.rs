//! Objects that are typed, or read of files: a JSON object a line, or the binary form.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value as Json};

pub(super) use super::context::BadInput;
use super::parts::{Parts, Place};
use crate::model::{ColumnSpec, MAX_TIME, Refusal};
use crate::protocol::{
    Bulk, MAX_BODY_BYTES, Malformed, ObjectBody, cell_from_text, cell_json, json_end, json_time,
    split_insert,
};

/// What was named for all objects of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Named {
    pub(super) folder: Option<String>,
    pub(super) tag: Option<String>,
    pub(super) only_tag: bool,
}

/// The most bytes of a binary file.
const MAX_FILE_BYTES: u64 = 4 << 30;

/// `NAME=VALUE` words, as the values of one record.
pub(super) fn values(
    columns: &[ColumnSpec],
    words: &[String],
    may_lack: bool,
) -> Result<Json, BadInput> {
    let mut values = Map::new();
    for word in words {
        let bad = |why: String| BadInput(format!("{word:?}: {why}"));
        let pair = word.split_once('=');
        let (name, _) = pair.ok_or_else(|| bad("write COLUMN=VALUE".to_owned()))?;
        // The longest name that it begins with: names may have an = in them.
        let named = columns.iter().filter_map(|column| {
            Some((column, word.strip_prefix(column.name.as_str())?.strip_prefix('=')?))
        });
        let (column, text) = named
            .max_by_key(|(column, _)| column.name.len())
            .ok_or_else(|| bad(no_column(columns, name)))?;
        let value = cell_from_text(column.kind, text).map_err(|why| bad(why.to_string()))?;
        if values.insert(column.name.clone(), cell_json(&value)).is_some() {
            return Err(bad("this column has a value already".to_owned()));
        }
    }
    let lacking = columns.iter().map(|column| column.name.as_str());
    let lacking: Vec<_> = lacking.filter(|name| !values.contains_key(*name)).collect();
    if !lacking.is_empty() && !may_lack {
        return Err(BadInput(missing(&lacking)));
    }
    Ok(Json::Object(values))
}

/// Columns that are left out.
pub(super) fn missing(names: &[&str]) -> String {
    let names = names.join(", ");
    format!("nothing is given for {names}: add it, or --allow-missing for no value there")
}

pub(super) fn no_column(columns: &[ColumnSpec], name: &str) -> String {
    if columns.is_empty() {
        return format!(
            "no column is {name:?}, and there is none at all: `loadline conditions add-column \
             FOLDER {name}=KIND` adds it"
        );
    }
    let known: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
    format!("no column is {name:?}; there are {}", known.join(", "))
}

/// What is wrong with a file, and in which line.
pub(super) type Wrong = (u64, String);

/// The lines of a file, numbered from 1, without the byte order mark that it may begin with.
pub(super) struct Lines<R> {
    from: R,
    number: u64,
    line: Vec<u8>,
}

impl Lines<Box<dyn BufRead>> {
    /// Those of a file; `-` is standard input.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self::of(Box::new(std::io::stdin().lock())));
        }
        let file = open(path)?;
        if file.metadata().is_ok_and(|about| about.is_dir()) {
            return Err(BadInput(format!("{} is a directory", path.display())).into());
        }
        Ok(Self::of(Box::new(BufReader::with_capacity(1 << 20, file))))
    }
}

/// Opens a file that was named.
///
/// # Errors
/// When it can't be read: what was typed is wrong.
pub(super) fn open(path: &Path) -> Result<File, BadInput> {
    File::open(path).map_err(|why| BadInput(format!("{} can't be read: {why}", path.display())))
}

impl<R: BufRead> Lines<R> {
    pub(super) fn of(from: R) -> Self {
        Self { from, number: 0, line: Vec::new() }
    }

    /// The next line with its number and what ends it.
    ///
    /// # Errors
    /// When it can't be read, or is too long; the error has its number.
    pub(super) fn next(&mut self) -> Result<Option<(u64, &[u8])>, Wrong> {
        self.line.clear();
        self.number += 1;
        let most = MAX_BODY_BYTES as u64;
        let read = (&mut self.from).take(most).read_until(b'\n', &mut self.line);
        match read.map_err(|why| (self.number, format!("it can't be read: {why}")))? {
            0 => return Ok(None),
            bytes if bytes == MAX_BODY_BYTES => {
                let why = format!("a line of more than {most} bytes: give an object fewer records");
                return Err((self.number, why));
            }
            _ => {}
        }
        let line = match self.number {
            1 => self.line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&self.line),
            _ => &self.line,
        };
        Ok(Some((self.number, line)))
    }
}

/// Where a line of a file says no object.
pub(super) fn bad_line(path: &Path, line: u64, why: impl Display) -> BadInput {
    BadInput(format!("{}:{line}: {why}", path.display()))
}

/// Refuses what is no interval of time.
pub(super) fn interval(since: u64, until: u64) -> Result<(), String> {
    match since < until && until <= MAX_TIME {
        true => Ok(()),
        false => Err(Refusal::BadInterval(since, until).to_string()),
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
    #[serde(deserialize_with = "json_time")]
    since: u64,
    #[serde(default, deserialize_with = "json_end")]
    until: Option<u64>,
    values: Option<Json>,
    records: Option<Vec<Json>>,
}

impl Line {
    /// The object of a line, and where it belongs. `all` is what was named for all lines.
    fn read(text: &[u8], all: &Named) -> Result<(Place, ObjectBody), String> {
        let line: Self = serde_json::from_slice(text.trim_ascii_end()).map_err(|why| {
            let said = why.to_string();
            let said = said.rsplit_once(" at line ").map_or(&*said, |(said, _)| said);
            format!("{said} (column {})", why.column())
        })?;
        let Self { folder, tag, only_tag, channel, since, until, values, records } = line;
        let folder = one_of("folder", "FOLDER", folder, all.folder.as_ref())?;
        let folder = folder.ok_or("\"folder\" is missing: add it, or name one for all lines")?;
        let tag = one_of("tag", "--tag", tag, all.tag.as_ref())?;
        if all.tag.is_some() && only_tag.is_some_and(|own| own != all.only_tag) {
            return Err("\"only_tag\" is not what --only-tag says: leave one of them out".into());
        }
        let only_tag = only_tag.unwrap_or(all.only_tag);
        interval(since, until.unwrap_or(MAX_TIME))?;
        Ok(((folder, tag, only_tag), ObjectBody { channel, since, until, values, records }))
    }
}

/// What the line says, or what was named for all lines; these two don't differ.
fn one_of(
    what: &str,
    named: &str,
    own: Option<String>,
    all: Option<&String>,
) -> Result<Option<String>, String> {
    match (own, all) {
        (Some(own), Some(all)) if own != *all => Err(format!(
            "its {what} is {own:?}, and {named} {all:?}: leave {named} out to insert each line \
             where it says, or take \"{what}\" out of the lines"
        )),
        (own, all) => Ok(own.or_else(|| all.cloned())),
    }
}

/// Adds the objects of a file with a JSON object a line. What a line doesn't name is as in `all`.
pub(super) fn json_lines(
    path: &Path,
    all: &Named,
    parts: &mut Parts,
    columns: impl Fn(&str) -> anyhow::Result<Vec<ColumnSpec>>,
) -> anyhow::Result<()> {
    let mut lines = Lines::open(path)?;
    while let Some((number, text)) =
        lines.next().map_err(|(number, why)| bad_line(path, number, why))?
    {
        if text.iter().all(u8::is_ascii_whitespace) || parts.skips() {
            continue;
        }
        let bad = |why: String| bad_line(path, number, why);
        let (place, object) = Line::read(text, all).map_err(bad)?;
        let known = parts.place(&place, || columns(&place.0))?;
        let add = |bulk: &mut Bulk| {
            let Bulk { columns, batch } = bulk;
            let object = object.add_to(&mut batch.payload, columns).map_err(bad)?;
            Ok::<_, BadInput>((object, number))
        };
        parts.add(known, add)?;
    }
    Ok(())
}

/// Adds the objects of a file in the binary form. The server checks its `columns`, unless this
/// `is_dry`.
pub(super) fn binary(
    path: &Path,
    parts: &mut Parts,
    columns: impl Fn(&str) -> anyhow::Result<Vec<ColumnSpec>>,
    is_dry: bool,
) -> anyhow::Result<()> {
    let mut known: BTreeMap<String, Vec<ColumnSpec>> = BTreeMap::new();
    let input = Path::new("/dev/stdin");
    let bytes = match path.as_os_str() == "-" {
        true => base::read_bytes(input, MAX_FILE_BYTES),
        false => base::read_bytes(path, MAX_FILE_BYTES),
    };
    let bytes = bytes.map_err(|why| BadInput(why.to_string()))?;
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        let (bulks, after) = split_insert(rest).map_err(|why| {
            let Malformed { form, at: inside, .. } = why;
            let (path, all) = (path.display(), bytes.len());
            BadInput(format!("{path}: no {form}: wrong at byte {} of {all}", at + inside))
        })?;
        for bulk in bulks {
            let folder = &bulk.batch.folder;
            if is_dry && !known.contains_key(folder) {
                known.insert(folder.clone(), columns(folder)?);
            }
            if known.get(folder).is_some_and(|own| *own != bulk.columns) {
                let why = Refusal::BadPayload(folder.clone());
                return Err(BadInput(format!("{}: {why}", path.display())).into());
            }
            parts.add_bulk(bulk)?;
        }
        rest = after;
    }
    Ok(())
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
    fn a_line_names_its_folder_and_tag_or_has_those_of_all_lines() {
        let named = |folder: Option<&str>, tag: Option<&str>, only_tag| Named {
            folder: folder.map(str::to_owned),
            tag: tag.map(str::to_owned),
            only_tag,
        };
        let (none, all) = (named(None, None, false), named(Some("/a"), Some("t"), true));
        let own =
            br#"{"folder":"/b","tag":"u","only_tag":false,"channel":1,"since":0,"values":[1]}"#;
        let (place, _) = Line::read(own, &none).expect("an object");
        assert_eq!(place, ("/b".to_owned(), Some("u".to_owned()), false));
        let bare = br#"{"channel":1,"since":5,"until":"max","records":[]}"#;
        let place = ("/a".to_owned(), Some("t".to_owned()), true);
        assert_eq!(Line::read(bare, &all).expect("an object").0, place);
        for (line, all, said) in [
            (&bare[..], &none, "\"folder\" is missing"),
            (own, &named(Some("/a"), None, false), "its folder is \"/b\", and FOLDER \"/a\""),
            (own, &named(None, Some("t"), false), "its tag is \"u\", and --tag \"t\""),
            (own, &named(None, Some("u"), true), "\"only_tag\" is not what"),
            (b"{\"x\":1}\n", &none, "unknown field"),
            (br#"{"channel":1,"#, &none, "EOF while parsing a value (column 13)"),
            (br#"{"folder":"/a","channel":1,"since":2,"until":1}"#, &none, "[2, 1) is no interval"),
        ] {
            let why = Line::read(line, all).expect_err("refused");
            assert!(why.starts_with(said), "{why}");
        }
    }

    #[test]
    fn a_name_with_an_equals_sign_is_typed_as_it_is() {
        let column = |name: &str| ColumnSpec { name: name.to_owned(), kind: Kind::Int32 };
        let columns = [column("a"), column("a=b")];
        let words = ["a=b=2".to_owned(), "a=1".to_owned()];
        let read = values(&columns, &words, false).expect("values");
        assert_eq!(read, serde_json::json!({ "a": 1, "a=b": 2 }));
    }

    #[test]
    fn words_are_values_of_columns() {
        let words = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            values(&columns(), &words, false)
        };
        let read = words(&["value=2", "note=a=b"]).expect("values");
        assert_eq!(read, serde_json::json!({ "value": 2.0, "note": "a=b" }));
        for (typed, said) in [
            (&["value"][..], "write COLUMN=VALUE"),
            (&["x=1"], "no column is \"x\""),
            (&["value=high"], "\"high\" is no float"),
            (&["value=1", "value=2"], "has a value already"),
            (&["value=1"], "nothing is given for note"),
        ] {
            let why = words(typed).expect_err("refused").to_string();
            assert!(why.contains(said), "{why}");
        }
        assert!(no_column(&[], "x").contains("add-column FOLDER x=KIND"));
    }
}
