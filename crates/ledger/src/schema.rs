//! The schema's versions: one SQL file each, applied in order, counted by `PRAGMA user_version`.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::error::LedgerError;

/// The SQL that leads from each version to the next; the first makes an empty file version 1.
const MIGRATIONS: &[&str] = &[include_str!("schema/v1.sql")];

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
    for (version, sql) in (1_i64..).zip(MIGRATIONS).filter(|(version, _)| *version > found) {
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "user_version", version)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.commit()?;
    Ok(())
}

/// Refuses a database that can't be read without migrating it.
pub(crate) fn check(connection: &Connection, path: &Path) -> Result<(), LedgerError> {
    let found = found_version(connection, path)?;
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
