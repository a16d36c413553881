//! The schema's versions: one SQL file each, applied in order, counted by `PRAGMA user_version`.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::error::LedgerError;

/// The SQL that leads from each version to the next; the first makes an empty file version 1.
const MIGRATIONS: &[&str] = &[
    include_str!("v1.sql"),
    include_str!("v2.sql"),
    include_str!("v3.sql"),
    include_str!("v4.sql"),
    include_str!("v5.sql"),
    include_str!("v6.sql"),
    include_str!("v7.sql"),
    include_str!("v8.sql"),
    include_str!("v9.sql"),
    include_str!("v10.sql"),
    include_str!("v11.sql"),
    include_str!("v12.sql"),
    include_str!("v13.sql"),
    include_str!("v14.sql"),
    include_str!("v15.sql"),
];

/// The SQL that recreates all views.
const VIEWS: &str = include_str!("views.sql");

/// The schema version that this build writes.
pub const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;

/// Marks the file as a ledger (`PRAGMA application_id`): "LLDG".
const APPLICATION_ID: i64 = 0x4C4C_4447;

/// Brings a database up to [`SCHEMA_VERSION`], whatever older version (or nothing) it holds.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), LedgerError> {
    if found_version(connection, path)? == SCHEMA_VERSION {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Read again under the lock: another process may have migrated it meanwhile.
    let found = found_version(&transaction, path)?;
    if found == SCHEMA_VERSION {
        return Ok(());
    }
    for (version, sql) in (1_i64..).zip(MIGRATIONS).filter(|(version, _)| *version > found) {
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "user_version", version)?;
    }
    transaction.execute_batch(VIEWS)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.commit()?;
    Ok(())
}

/// Refuses a database that can't be read without migrating it.
pub(crate) fn check(connection: &Connection, path: &Path) -> Result<(), LedgerError> {
    let found = found_version(connection, path)?;
    if found == 0 {
        return Err(LedgerError::Missing { path: path.to_owned() });
    }
    if found < SCHEMA_VERSION {
        let (path, known) = (path.to_owned(), SCHEMA_VERSION);
        return Err(LedgerError::OlderSchema { path, found, known });
    }
    Ok(())
}

/// The version in the file; refuses files of something else and of a newer loadline.
fn found_version(connection: &Connection, path: &Path) -> Result<i64, LedgerError> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let found = pragma("user_version")?;
    let application = pragma("application_id")?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let empty = tables == 0 && found == 0 && application == 0;
    if application != APPLICATION_ID && !empty {
        return Err(LedgerError::NotALedger { path: path.to_owned() });
    }
    if found > SCHEMA_VERSION {
        let (path, known) = (path.to_owned(), SCHEMA_VERSION);
        return Err(LedgerError::NewerSchema { path, found, known });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::Ledger;

    /// A ledger of version 1 with one run, in the way that ledgers are kept.
    fn old_ledger(path: &Path) {
        let old = Connection::open(path).unwrap();
        old.pragma_update(None, "journal_mode", "wal").unwrap();
        old.execute_batch(MIGRATIONS[0]).unwrap();
        old.execute_batch(
            "CREATE VIEW trials AS SELECT id AS run FROM run;
             INSERT INTO suite VALUES (1, 'hash', 'a.toml', 'Cache', '[]', '[]', '');
             INSERT INTO fingerprint VALUES (1, 'f', '{}');
             INSERT INTO run VALUES (7, 1, 1, 'loadline run', '0.1.0', -1, '2026-01-02T03:04:05Z',
                 NULL, 'finished', NULL, 'rate_per_s', 0.02, 0.95, 1, 'pid', 'boot', 2);",
        )
        .unwrap();
        old.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        old.pragma_update(None, "user_version", 1).unwrap();
    }

    #[test]
    fn an_older_ledger_can_be_read_without_being_changed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ledger.sqlite");
        assert!(matches!(Ledger::open_as_it_is(&path), Err(LedgerError::Missing { .. })));
        assert!(matches!(Ledger::open_existing(&path), Err(LedgerError::Missing { .. })));
        old_ledger(&path);
        let before = std::fs::read(&path).unwrap();
        let read = Ledger::open_as_it_is(&path).unwrap();
        assert_eq!(pragma_version(&read.connection), SCHEMA_VERSION);
        let mut here = Ledger::in_memory().unwrap();
        assert_eq!(here.merge(&read).unwrap().taken.len(), 1);
        drop(read);
        assert_eq!(std::fs::read(&path).unwrap(), before);
        assert_eq!(Ledger::open_existing(&path).unwrap().runs().unwrap().len(), 1);
        assert!(Ledger::open_read_only(&path).is_ok(), "it was brought up to date");
    }

    #[test]
    fn a_ledger_of_version_1_keeps_its_runs_and_gains_series() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ledger.sqlite");
        old_ledger(&path);
        let refused = Ledger::open_read_only(&path).unwrap_err();
        assert!(matches!(refused, LedgerError::OlderSchema { found: 1, .. }));

        let ledger = Ledger::open(&path).unwrap();
        let run = ledger.last_run().unwrap().unwrap();
        assert_eq!(run.get(), 7);
        let view = ledger.run_view(run).unwrap();
        assert_eq!((view.run.seed, view.run.settings.len()), (u64::MAX, 0));
        // The same in every copy of the file: seed, ticks and pid, as far as they were kept.
        assert_eq!(view.uid, "ffffffffffffffff0000000200000001");
        assert_eq!(ledger.series(run).unwrap(), []);
        let version = pragma_version(&ledger.connection);
        assert_eq!(version, SCHEMA_VERSION);
        let rates = "SELECT count(rate_per_s) FROM trials";
        let none: i64 = ledger.connection.query_row(rates, [], |row| row.get(0)).unwrap();
        assert_eq!(none, 0, "its views are today's");
    }

    fn pragma_version(connection: &Connection) -> i64 {
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    }
}
