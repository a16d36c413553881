//! State changes in SQLite: the tables of `schema.sql`, in a file or in memory. Control plane.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, ToSql, params};
use serde_json::{Value as Json, json};
use service::Failure;

use crate::history::{Change, Last, Step, Token, awaited, limits, tokens};
use crate::model::Snapshot;

const SCHEMA: &str = include_str!("schema.sql");
const VIEWS: &str = include_str!("views.sql");

/// Marks a file as a history (`PRAGMA application_id`): "LLWH".
const APPLICATION_ID: i32 = 0x4c4c_5748;

/// The version of the tables (`PRAGMA user_version`).
const VERSION: i32 = 4;

/// How long another process may hold the file.
const PATIENCE: Duration = Duration::from_secs(10);

type Result<T> = std::result::Result<T, Failure>;

/// The tables.
pub(super) struct Store {
    connection: Connection,
    /// Whether it is a file: changes are kept, too, not only what comes of them.
    pub(super) is_file: bool,
    containers: HashSet<String>,
    /// A node that is looked for in what is taken, and whether it, or one below it, was there.
    sought: (String, bool),
}

/// How far a log was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Read {
    /// What it was called then.
    pub(super) name: String,
    pub(super) bytes: u64,
}

/// Makes the views anew where those of a file are an older program's: they hold nothing.
fn renew_views(connection: &Connection) -> rusqlite::Result<()> {
    let of = |connection: &Connection| -> rusqlite::Result<Vec<(String, String)>> {
        let select = "SELECT name, sql FROM sqlite_schema WHERE type = 'view' ORDER BY name";
        let mut select = connection.prepare(select)?;
        select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    };
    let own = Connection::open_in_memory()?;
    own.execute_batch(SCHEMA)?;
    own.execute_batch(VIEWS)?;
    let (found, own) = (of(connection)?, of(&own)?);
    if own.iter().all(|one| found.contains(one)) {
        return Ok(());
    }
    let old = own.iter().map(|(name, _)| format!("DROP VIEW IF EXISTS {name};"));
    let old: String = old.collect();
    connection.execute_batch(&format!("BEGIN IMMEDIATE;{old}{VIEWS}COMMIT;"))
}

impl Store {
    /// Tables that are gone with this process.
    pub(super) fn in_memory() -> Result<Self> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch(SCHEMA)?;
        connection.execute_batch(VIEWS)?;
        let (containers, sought) = (HashSet::new(), Default::default());
        Ok(Self { connection, is_file: false, containers, sought })
    }

    /// Those of a file, which is made where it isn't there.
    pub(super) fn open(file: &Path) -> Result<Self> {
        let shown = file.display();
        let wrong = |why: rusqlite::Error| Failure::Usage(format!("--to {shown}: {why}"));
        let connection = Connection::open(file).map_err(wrong)?;
        connection.busy_timeout(PATIENCE)?;
        let pragma = |name: &str| -> Result<i32> {
            connection.pragma_query_value(None, name, |row| row.get(0)).map_err(wrong)
        };
        let count = "SELECT count(*) FROM sqlite_schema";
        let found: i64 = connection.query_row(count, [], |row| row.get(0)).map_err(wrong)?;
        if found == 0 {
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.execute_batch(&format!(
                "BEGIN IMMEDIATE;{SCHEMA}{VIEWS}PRAGMA application_id = {APPLICATION_ID};\
                 PRAGMA user_version = {VERSION};COMMIT;"
            ))?;
        } else if pragma("application_id")? != APPLICATION_ID {
            let why = "it is a database of something else: name another file";
            return Err(Failure::Usage(format!("--to {shown}: {why}")));
        } else if pragma("user_version")? != VERSION {
            let other = pragma("user_version")?;
            let why = format!("its tables have version {other}, and {VERSION} is read");
            return Err(Failure::Usage(format!("--to {shown}: {why}: name another file")));
        } else {
            renew_views(&connection).map_err(wrong)?;
        }
        // A crash of the machine loses the last seconds, which are read again.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        let mut containers = connection.prepare("SELECT path FROM container")?;
        let found = containers.query_map([], |row| row.get(0))?;
        let known = found.collect::<std::result::Result<HashSet<String>, _>>()?;
        drop(containers);
        Ok(Self { connection, is_file: true, containers: known, sought: Default::default() })
    }

    /// Has it looked for a node, or one below it, in what is taken from here on.
    pub(super) fn seek(&mut self, path: &str) {
        self.sought = (path.to_owned(), false);
    }

    /// Whether the node that is looked for, or one below it, was in what was taken, also before.
    pub(super) fn has_found(&self) -> Result<bool> {
        let (path, is_found) = &self.sought;
        // `0` is behind `/`.
        let select = "SELECT count(*) FROM (SELECT 1 FROM change WHERE path = ?1 OR \
                      path > ?1 || '/' AND path < ?1 || '0' LIMIT 1)";
        let row = |row: &rusqlite::Row<'_>| row.get::<_, bool>(0);
        Ok(*is_found || self.connection.query_row(select, [path], row)?)
    }

    /// Does something as one change of the file: all of it, or nothing.
    pub(super) fn change<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let done = work(self);
        match &done {
            Ok(_) => self.connection.execute_batch("COMMIT")?,
            // What has failed may have ended it already, as a full disk does.
            Err(_) => drop(self.connection.execute_batch("ROLLBACK")),
        }
        done
    }

    /// Takes a change of a state.
    pub(super) fn take(&mut self, change: &Change<'_>) -> Result<()> {
        let Change { at, path, state, detail } = *change;
        let word = state.word();
        let (sought, is_found) = &mut self.sought;
        let behind = path.strip_prefix(sought.as_str());
        *is_found |= behind.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if self.is_file {
            let insert = "INSERT INTO change (at, path, state, detail) VALUES (?, ?, ?, ?)";
            let mut insert = self.connection.prepare_cached(insert)?;
            insert.execute(params![at, path, word, detail])?;
        }
        self.contain(path)?;
        if path == "/" || self.containers.contains(path) {
            return Ok(());
        }
        self.pair(change)
    }

    /// Has the runs of a task follow.
    fn pair(&self, change: &Change<'_>) -> Result<()> {
        let Change { at, path, state, detail } = *change;
        let known = "SELECT id, state FROM run WHERE path = ? ORDER BY id DESC LIMIT 1";
        let mut known = self.connection.prepare_cached(known)?;
        let known = known.query_row([path], |row| {
            Ok((row.get::<_, i64>(0)?, Last::of(&row.get::<_, String>(1)?)))
        });
        let known = known.optional()?;
        let statement = match Step::of(state, known.map(|(_, last)| last)) {
            None => return Ok(()),
            Some(Step::Begin) => {
                "INSERT INTO run (path, submitted, state, detail) VALUES (?5, ?2, ?3, ?4)"
            }
            Some(Step::BeginActive) => {
                "INSERT INTO run (path, active, state, detail) VALUES (?5, ?2, ?3, ?4)"
            }
            Some(Step::Run) => "UPDATE run SET active = ?2, state = ?3, detail = ?4 WHERE id = ?1",
            Some(Step::End) => "UPDATE run SET ended = ?2, state = ?3, detail = ?4 WHERE id = ?1",
            Some(Step::TakeBack) => "DELETE FROM run WHERE id = ?1",
            Some(Step::LoseSight) => "UPDATE run SET state = ?3, detail = ?4 WHERE id = ?1",
        };
        let mut statement = self.connection.prepare_cached(statement)?;
        let all: [&dyn ToSql; 5] = [&known.map(|(id, _)| id), &at, &state.word(), &detail, &path];
        let count = statement.parameter_count();
        statement.execute(&all[..count])?;
        Ok(())
    }

    /// Nodes around this one are no tasks: what seemed to be their runs is none.
    fn contain(&mut self, path: &str) -> Result<()> {
        let name = path.rsplit('/').next().unwrap_or_default();
        // What is below a task is an alias: the task has runs all the same.
        let number = name.strip_prefix("alias").unwrap_or_default();
        let is_alias = number.bytes().all(|byte| byte.is_ascii_digit()) && !number.is_empty();
        let ends = path.rmatch_indices('/').skip(usize::from(is_alias));
        for (at, _) in ends.filter(|(at, _)| *at > 0) {
            let above = &path[..at];
            if self.containers.contains(above) {
                break;
            }
            self.containers.insert(above.to_owned());
            self.connection.execute("INSERT OR IGNORE INTO container VALUES (?)", [above])?;
            self.connection.execute("DELETE FROM run WHERE path = ?", [above])?;
        }
        Ok(())
    }

    /// Takes what a definition says of its tasks, in place of what another said before.
    pub(super) fn define(&mut self, tree: &Snapshot) -> Result<()> {
        self.connection
            .execute_batch("DELETE FROM awaits; DELETE FROM token; DELETE FROM limits")?;
        let connection = &self.connection;
        let mut insert = connection.prepare("INSERT OR IGNORE INTO awaits VALUES (?, ?)")?;
        for (path, awaited) in awaited(tree) {
            insert.execute(params![path, awaited])?;
        }
        let mut insert = connection.prepare("INSERT INTO token VALUES (?, ?, ?, ?)")?;
        for Token { path, limit, tokens, is_submission } in tokens(tree) {
            insert.execute(params![path, limit, tokens, is_submission])?;
        }
        let mut insert = connection.prepare("INSERT OR REPLACE INTO limits VALUES (?, ?)")?;
        for (limit, tokens) in limits(tree) {
            insert.execute(params![limit, tokens])?;
        }
        Ok(())
    }

    /// How far a log of this first line and length was read, whatever it was called.
    pub(super) fn read(&self, first_line: &str, length: u64) -> Result<Option<Read>> {
        let select = "SELECT name, bytes FROM source WHERE is_server = 0 AND first_line = ? \
                      AND bytes <= ? ORDER BY bytes DESC LIMIT 1";
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        let row = self.connection.query_row(select, params![first_line, length], |row| {
            Ok(Read { name: row.get(0)?, bytes: row.get::<_, i64>(1)?.unsigned_abs() })
        });
        Ok(row.optional()?)
    }

    /// The server that was followed, if one was.
    pub(super) fn followed(&self) -> Result<Option<String>> {
        let select = "SELECT name FROM source WHERE is_server";
        Ok(self.connection.query_row(select, [], |row| row.get(0)).optional()?)
    }

    /// Notes how far a log was read, in place of what was known of it.
    pub(super) fn note_log(
        &self,
        known: Option<&Read>,
        read: &Read,
        first_line: &str,
    ) -> Result<()> {
        let delete = "DELETE FROM source WHERE name = ? AND first_line = ?";
        if let Some(known) = known {
            self.connection.execute(delete, params![known.name, first_line])?;
        }
        let bytes = i64::try_from(read.bytes).unwrap_or(i64::MAX);
        let insert = "INSERT OR REPLACE INTO source VALUES (?, 0, ?, ?)";
        self.connection.execute(insert, params![read.name, bytes, first_line])?;
        Ok(())
    }

    /// Notes that a server is followed.
    pub(super) fn note_server(&self, address: &str) -> Result<()> {
        let insert = "INSERT OR IGNORE INTO source VALUES (?, 1, 0, '')";
        self.connection.execute(insert, [address])?;
        Ok(())
    }

    /// The last lines that were read.
    pub(super) fn last_lines(&self) -> Result<String> {
        let select = "SELECT lines FROM last_lines";
        Ok(self.connection.query_row(select, [], |row| row.get(0))?)
    }

    /// Notes the last lines that were read.
    pub(super) fn note_lines(&self, lines: &str) -> Result<()> {
        self.connection.execute("UPDATE last_lines SET lines = ?", [lines])?;
        Ok(())
    }

    /// Notes that lines may be missing before the next change.
    pub(super) fn note_gap(&self, why: &str) -> Result<()> {
        let insert = "INSERT INTO gap SELECT coalesce(max(id), 0) + 1, ? FROM change";
        self.connection.execute(insert, [why])?;
        Ok(())
    }

    /// Has questions from here on see only the runs at and below a node.
    pub(super) fn only_under(&self, under: &str) -> Result<()> {
        let under = under.trim_end_matches('/').replace('\'', "''");
        if under.is_empty() {
            return Ok(());
        }
        // Views of this process hide what the file has of the same names. `0` is behind `/`.
        let views = VIEWS.replace("CREATE VIEW", "CREATE TEMP VIEW");
        let is_under = format!("path = '{under}' OR path > '{under}/' AND path < '{under}0'");
        let run = format!("CREATE TEMP VIEW run AS SELECT * FROM main.run WHERE {is_under};");
        self.connection.execute_batch(&format!("{run}{views}"))?;
        Ok(())
    }

    /// The rows of a question, each an object of the columns' names.
    pub(super) fn rows(&self, question: &str, most: usize) -> Result<Vec<Json>> {
        let mut statement = self.connection.prepare(question)?;
        let names: Vec<String> = statement.column_names().map(ToOwned::to_owned).collect();
        let mut rows = statement.query([])?;
        let mut all = Vec::new();
        while all.len() < most
            && let Some(row) = rows.next()?
        {
            let mut one = serde_json::Map::new();
            for (at, name) in names.iter().enumerate() {
                use rusqlite::types::ValueRef;
                let value = match row.get_ref(at)? {
                    ValueRef::Integer(number) => json!(number),
                    ValueRef::Real(number) => json!(number),
                    ValueRef::Text(text) => json!(String::from_utf8_lossy(text)),
                    ValueRef::Null | ValueRef::Blob(_) => continue,
                };
                one.insert(name.clone(), value);
            }
            all.push(one.into());
        }
        Ok(all)
    }

    /// A question's number.
    pub(super) fn number(&self, question: &str) -> Result<i64> {
        Ok(self.connection.query_row(question, [], |row| row.get(0))?)
    }
}
