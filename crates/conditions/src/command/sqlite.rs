//! An export as a SQLite database: a table for each folder, named by its path. SQLite tells no
//! capital letters from small ones: where only these differ, underscores follow.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params_from_iter};

use crate::model::{ColumnSpec, Value};
use crate::protocol::{Bulk, split_insert};

/// The columns that every table begins with: `record` counts the records of an object.
const BEGIN: [&str; 4] = ["channel", "since", "until", "record"];

/// Fills an empty file with what an export holds. Those of `folders` of which there is nothing in
/// it have a table, too.
pub(super) fn write(
    path: &Path,
    export: &[u8],
    folders: &[(String, Vec<ColumnSpec>)],
) -> anyhow::Result<()> {
    let mut database = Connection::open(path)?;
    // The file is removed where this fails, and a journal would be left beside it.
    database.execute_batch("PRAGMA journal_mode = OFF")?;
    let all = database.transaction()?;
    let mut made = Tables::default();
    for Bulk { columns, batch } in bulks(export)? {
        let table = made.of(&all, &batch.folder, &columns)?;
        let marks = vec!["?"; BEGIN.len() + columns.len()].join(", ");
        let mut insert = all.prepare_cached(&format!("INSERT INTO {table} VALUES ({marks})"))?;
        let mut row = 0;
        for object in &batch.objects {
            for record in 0..object.records {
                let numbers = [
                    i64::from(object.channel),
                    object.since as i64,
                    object.until as i64,
                    i64::from(record),
                ];
                let cells = batch.payload.row(row).map(sql);
                insert
                    .execute(params_from_iter(numbers.map(Sql::from).into_iter().chain(cells)))?;
                row += 1;
            }
        }
    }
    for (folder, columns) in folders {
        made.of(&all, folder, columns)?;
    }
    Ok(all.commit()?)
}

/// The tables that are made.
#[derive(Default)]
struct Tables {
    /// Their names, quoted, by folder.
    named: BTreeMap<String, String>,
    /// The names in small letters.
    taken: BTreeSet<String>,
}

impl Tables {
    /// The name of a folder's table, which is made where it isn't there yet.
    fn of(
        &mut self,
        database: &Connection,
        folder: &str,
        columns: &[ColumnSpec],
    ) -> rusqlite::Result<String> {
        if let Some(table) = self.named.get(folder) {
            return Ok(table.clone());
        }
        let mut name = folder.to_owned();
        while !self.taken.insert(name.to_ascii_lowercase()) {
            name.push('_');
        }
        let (table, names) = (quoted(&name), names(columns).join(", "));
        database.execute_batch(&format!("CREATE TABLE {table} ({names})"))?;
        self.named.insert(folder.to_owned(), table.clone());
        Ok(table)
    }
}

/// The batches of an export in the binary form.
fn bulks(mut bytes: &[u8]) -> anyhow::Result<Vec<Bulk>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (bulks, rest) = split_insert(bytes)?;
        all.extend(bulks);
        bytes = rest;
    }
    Ok(all)
}

/// The names of a table's columns; SQLite tells no capital letters from small ones.
fn names(columns: &[ColumnSpec]) -> Vec<String> {
    let mut taken: Vec<String> = BEGIN.map(str::to_owned).to_vec();
    let mut names: Vec<String> = BEGIN.map(quoted).to_vec();
    for column in columns {
        let mut name = column.name.clone();
        while taken.iter().any(|other| other.eq_ignore_ascii_case(&name)) {
            name.push('_');
        }
        names.push(quoted(&name));
        taken.push(name);
    }
    names
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A cell as SQLite has it: a whole number of more than 63 bits is text.
fn sql(value: Value) -> Sql {
    match value {
        Value::Null => Sql::Null,
        Value::Bool(value) => Sql::Integer(value.into()),
        Value::Integer(value) => match i64::try_from(value) {
            Ok(value) => Sql::Integer(value),
            Err(_) => Sql::Text(value.to_string()),
        },
        Value::Float(value) => Sql::Real(value.into()),
        Value::Double(value) => Sql::Real(value),
        Value::Text(text) => Sql::Text(text),
        Value::Bytes(bytes) => Sql::Blob(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Kind, Object};
    use crate::protocol::encode_insert;

    #[test]
    fn a_folder_is_a_table_that_sql_can_ask() {
        let column = |(name, kind): (&str, _)| ColumnSpec { name: name.to_owned(), kind };
        let columns = [("Since", Kind::Uint64), ("a\"b", Kind::String), ("A\"b", Kind::Float)];
        let mut bulk = Bulk::new("/det/x", None, false, columns.map(column).to_vec());
        let object = Object { channel: 3, since: 5, until: 9, records: 2 };
        bulk.batch.objects.push(object);
        for text in ["one", "two"] {
            let cells = &mut bulk.batch.payload.columns;
            cells[0].push(&Value::Integer(u64::MAX.into())).expect("a number");
            cells[1].push(&Value::Text(text.to_owned())).expect("text");
            cells[2].push_null();
            bulk.batch.payload.rows += 1;
        }
        let parts = [bulk.clone(), bulk].map(|bulk| encode_insert([bulk].iter())).concat();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.sqlite");
        let other = |path: &str| (path.to_owned(), Vec::new());
        let folders = ["/det/X", "/det/empty", "/det/x"].map(other);
        write(&path, &parts, &folders).expect("written");
        let database = Connection::open(&path).expect("a database");
        let asked = "SELECT group_concat(\"a\"\"b\" || record), max(\"Since_\"), \
                     count(\"A\"\"b_\") \
                     FROM \"/det/x\" WHERE channel = 3 AND since <= 5";
        let found: (String, String, i64) = database
            .query_row(asked, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .expect("an answer");
        let texts = "one0,two1,one0,two1".to_owned();
        assert_eq!(found, (texts, u64::MAX.to_string(), 0));
        for empty in ["/det/empty", "/det/X_"] {
            let asked = format!("SELECT count(*) FROM {}", quoted(empty));
            assert_eq!(database.query_row(&asked, [], |row| row.get(0)), Ok(0), "{empty}");
        }
    }
}
