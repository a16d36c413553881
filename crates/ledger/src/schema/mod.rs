//! The schema: what a new ledger is made of, and the versions that are refused.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::error::LedgerError;
use crate::rows::tables;

/// The views of a new ledger.
const VIEWS: &str = include_str!("views.sql");

/// The schema version that this build reads and writes (`PRAGMA user_version`); a change of a table
/// or a view needs the next. Those before were in no release and are refused, each by its number.
pub const SCHEMA_VERSION: i64 = 23;

/// The last version that a commit of loadline reads, and that commit, which reads those before it
/// as well.
const READERS_OF_OLDER: [(i64, &str); 8] = [
    (15, "5f3e8e0"),
    (16, "6e4a190"),
    (17, "cc38db1"),
    (18, "4598be7"),
    (19, "f17baba"),
    (20, "ccaf051"),
    (21, "443e4de"),
    (22, "40c7b16"),
];

/// Marks the file as a ledger (`PRAGMA application_id`): "LLDG".
const APPLICATION_ID: i64 = 0x4C4C_4447;

/// Makes the tables and views of a ledger that is still empty. Refuses what [`check`] refuses.
pub(crate) fn create(connection: &mut Connection, path: &Path) -> Result<(), LedgerError> {
    if is_ledger(connection, path)? {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Asked again under the lock: another process may have made it meanwhile.
    if is_ledger(&transaction, path)? {
        return Ok(());
    }
    for table in tables() {
        transaction.execute_batch(&table.create())?;
    }
    transaction.execute_batch(VIEWS)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    transaction.commit()?;
    Ok(())
}

/// Refuses an empty database, one of something else, and every other version.
pub(crate) fn check(connection: &Connection, path: &Path) -> Result<(), LedgerError> {
    match is_ledger(connection, path)? {
        true => Ok(()),
        false => Err(LedgerError::Missing { path: path.to_owned() }),
    }
}

/// Whether the database is a ledger of this version, or else empty; anything else is refused.
fn is_ledger(connection: &Connection, path: &Path) -> Result<bool, LedgerError> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let found = pragma("user_version")?;
    let application = pragma("application_id")?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables == 0 && found == 0 && application == 0 {
        return Ok(false);
    }
    let (path, known) = (path.to_owned(), SCHEMA_VERSION);
    match found {
        _ if application != APPLICATION_ID => Err(LedgerError::NotALedger { path }),
        found if found < known => {
            let reads = |(last, _): &&(i64, &str)| found <= *last;
            let reader = READERS_OF_OLDER.iter().find(reads).map_or("", |(_, commit)| commit);
            Err(LedgerError::OlderSchema { path, found, known, reader })
        }
        found if found > known => Err(LedgerError::NewerSchema { path, found, known }),
        _ => Ok(true),
    }
}
