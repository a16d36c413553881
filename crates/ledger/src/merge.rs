//! Taking runs of another ledger into this one, and taking runs out.

use std::collections::{HashMap, HashSet};

use rusqlite::params_from_iter;
use rusqlite::types::Value;

use crate::error::LedgerError;
use crate::ids::RunId;
use crate::open::Ledger;
use crate::rows::tables;
use crate::table::Table;
use crate::word_columns::RunState;

/// The result of merging a ledger.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Merged {
    /// Runs that were copied: their ids there, and their ids here.
    pub taken: Vec<(RunId, RunId)>,
    /// Runs that are here already: their ids there.
    pub known: Vec<RunId>,
    /// Runs that are still being measured: their ids there.
    pub running: Vec<RunId>,
}

/// Which rows of a table are of run ?1.
fn of_run(table: &Table) -> Option<String> {
    match table.name {
        "run" => return Some("id = ?1".to_owned()),
        // Runs share these.
        name @ ("suite" | "fingerprint") => {
            return Some(format!("id = (SELECT {name}_id FROM run WHERE id = ?1)"));
        }
        _ => {}
    }
    let direct = table.refers().find(|(_, to)| *to == "run");
    let (column, to) = direct.or_else(|| table.refers().next())?;
    if to == "run" {
        return Some(format!("{column} = ?1"));
    }
    let above = of_run(tables().find(|table| table.name == to)?)?;
    Some(format!("{column} IN (SELECT id FROM {to} WHERE {above})"))
}

/// The new id of each row that was copied, by its table and its id there.
type NewIds = HashMap<(&'static str, i64), i64>;

impl Ledger {
    /// Copies every finished run of another ledger into this one, with new ids, all or none. A run
    /// that is here already, by its `uid`, is left alone, and so is one still being measured.
    ///
    /// Fails when a batch is open, or when SQLite refuses; then nothing was copied.
    pub fn merge(&mut self, other: &Ledger) -> Result<Merged, LedgerError> {
        let snapshot = other.connection.unchecked_transaction()?;
        let runs = other.runs()?;
        self.begin_batch()?;
        let copy = || -> Result<Merged, LedgerError> {
            let known: HashSet<String> = self.runs()?.into_iter().map(|run| run.uid).collect();
            let mut merged = Merged::default();
            for run in runs {
                if known.contains(&run.uid) {
                    merged.known.push(run.id);
                } else if run.state == RunState::Running {
                    merged.running.push(run.id);
                } else {
                    merged.taken.push((run.id, self.copy_run(other, run.id)?));
                }
            }
            Ok(merged)
        };
        let outcome = copy();
        drop(snapshot);
        match outcome {
            Ok(merged) => {
                self.commit_batch()?;
                Ok(merged)
            }
            Err(error) => {
                self.connection.execute_batch("ROLLBACK")?;
                Err(error)
            }
        }
    }

    fn copy_run(&self, other: &Ledger, run: RunId) -> Result<RunId, LedgerError> {
        let mut ids = NewIds::new();
        for table in tables() {
            if let Some(of_run) = of_run(table) {
                self.copy_table(other, table, &of_run, run, &mut ids)?;
            }
        }
        Ok(ids[&("run", run.get())].into())
    }

    fn copy_table(
        &self,
        other: &Ledger,
        table: &Table,
        of_run: &str,
        run: RunId,
        ids: &mut NewIds,
    ) -> Result<(), LedgerError> {
        let sql = format!("SELECT * FROM {} WHERE {of_run}", table.name);
        let mut statement = other.connection.prepare(&sql)?;
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let place = |name: &str| columns.iter().position(|column| column == name);
        let refers: Vec<(usize, &'static str)> =
            table.refers().filter_map(|(name, to)| Some((place(name)?, to))).collect();
        let (id_place, hash_place) = (place("id").filter(|_| table.has_id), place("hash"));
        let mut rows = statement.query([run])?;
        while let Some(row) = rows.next()? {
            let mut row = values(row, columns.len())?;
            for (place, to) in &refers {
                // A NULL refers to nothing, and stays.
                if let Value::Integer(old) = row[*place] {
                    row[*place] = ids[&(*to, old)].into();
                }
            }
            let old = id_place.map(|place| std::mem::replace(&mut row[place], Value::Null));
            // What runs share may be here already.
            let known = hash_place.map(|place| self.id_of(table.name, &row[place]));
            let new = match known.transpose()?.flatten() {
                Some(id) => id,
                None => self.insert("INSERT", table.name, &columns, params_from_iter(row))?,
            };
            if let Some(Value::Integer(old)) = old {
                ids.insert((table.name, old), new);
            }
        }
        Ok(())
    }

    /// Deletes runs with everything that hangs on them, and suites and fingerprints that no run is
    /// left of, then returns the space to the file system, and its bytes.
    ///
    /// Fails when SQLite refuses. The runs are deleted all or none; only giving the space back may
    /// fail after that, when something else uses the file.
    pub fn delete_runs(&mut self, runs: &[RunId]) -> Result<u64, LedgerError> {
        let before_bytes = self.size_bytes()?;
        self.begin_batch()?;
        let delete = || -> Result<(), LedgerError> {
            for run in runs {
                self.connection.prepare_cached("DELETE FROM run WHERE id = ?1")?.execute([run])?;
            }
            self.connection.execute_batch(
                "DELETE FROM suite WHERE id NOT IN (SELECT suite_id FROM run);
                 DELETE FROM fingerprint WHERE id NOT IN (SELECT fingerprint_id FROM run);",
            )?;
            Ok(())
        };
        if let Err(error) = delete() {
            self.connection.execute_batch("ROLLBACK")?;
            return Err(error);
        }
        self.commit_batch()?;
        self.connection.execute_batch("VACUUM")?;
        // VACUUM's output is in the log until a checkpoint moves it to the file.
        self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(before_bytes.saturating_sub(self.size_bytes()?))
    }

    fn size_bytes(&self) -> Result<u64, LedgerError> {
        let sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        Ok(self.connection.query_row(sql, [], |row| row.get(0))?)
    }
}

fn values(row: &rusqlite::Row<'_>, columns: usize) -> rusqlite::Result<Vec<Value>> {
    (0..columns).map(|column| row.get(column)).collect()
}
