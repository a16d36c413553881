//! Opening a ledger.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::backup::Backup;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::LedgerError;
use crate::schema;

/// Time for which a statement waits for another process's write to end. A measuring run holds the
/// write lock for up to a second at a time.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Between two tries of what SQLite doesn't wait for itself.
const BUSY_PAUSE: Duration = Duration::from_millis(1);

/// Pages that are copied at a time; the ledger isn't locked between two times.
const COPY_PAGES: std::ffi::c_int = 1_024;

/// Statements kept prepared, so that one batch a second costs no parsing.
const STATEMENTS_KEPT: usize = 64;

/// An open ledger.
#[derive(Debug)]
pub struct Ledger {
    pub(crate) connection: Connection,
}

impl Ledger {
    /// Opens a ledger for reading and writing; makes it, and its directory, when absent, and
    /// brings an older schema up to date.
    ///
    /// Fails when the file is something else, when a newer loadline wrote it, or when it can't
    /// be written.
    pub fn open(path: impl AsRef<Path>) -> Result<Ledger, LedgerError> {
        let path = path.as_ref();
        if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            std::fs::create_dir_all(directory)
                .map_err(|source| LedgerError::Directory { path: directory.to_owned(), source })?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = connect(path, flags)?;
        schema::migrate(&mut connection, path)?;
        Ok(Ledger { connection })
    }

    /// Opens a ledger for reading only. Neither waits for the other when a run is writing to it.
    ///
    /// Fails when there is none, and when it would have to be migrated first. A ledger that
    /// isn't being written still needs a directory in which SQLite may put its `-shm` file.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Ledger, LedgerError> {
        let path = path.as_ref();
        if !path.exists() {
            return Err(LedgerError::Missing { path: path.to_owned() });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = connect(path, flags)?;
        schema::check(&connection, path)?;
        Ok(Ledger { connection })
    }

    /// Opens a ledger for reading and writing and brings an older schema up to date, as
    /// [`Ledger::open`] does, but makes none.
    ///
    /// Fails as that, and when there is none.
    pub fn open_existing(path: impl AsRef<Path>) -> Result<Ledger, LedgerError> {
        let path = path.as_ref();
        if !path.exists() {
            return Err(LedgerError::Missing { path: path.to_owned() });
        }
        Self::open(path)
    }

    /// Opens a ledger for reading only, whatever version its schema is of: an older one is copied
    /// to a nameless temporary file and brought up to date there. The file stays as it is.
    ///
    /// Fails as [`Ledger::open_read_only`], and when there is no room for the copy.
    pub fn open_as_it_is(path: impl AsRef<Path>) -> Result<Ledger, LedgerError> {
        let path = path.as_ref();
        let found = Self::open_read_only(path);
        // An empty file is of version 0, and no ledger yet.
        if !matches!(found, Err(LedgerError::OlderSchema { found: 1.., .. })) {
            return found;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let older = connect(path, flags)?;
        // SQLite takes a database without a name as a temporary one.
        let mut connection = Connection::open("")?;
        let copy = Backup::new(&older, &mut connection)?;
        copy.run_to_completion(COPY_PAGES, Duration::ZERO, None)?;
        drop(copy);
        connection.pragma_update(None, "foreign_keys", true)?;
        schema::migrate(&mut connection, path)?;
        Ok(Ledger { connection })
    }

    /// A ledger in memory, gone when dropped. For tests of what reads ledgers.
    pub fn in_memory() -> Result<Ledger, LedgerError> {
        let mut connection = Connection::open_in_memory()?;
        connection.pragma_update(None, "foreign_keys", true)?;
        schema::migrate(&mut connection, Path::new(":memory:"))?;
        Ok(Ledger { connection })
    }
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, LedgerError> {
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
        if flags.contains(OpenFlags::SQLITE_OPEN_READ_WRITE) {
            write_ahead(&connection)?;
        }
        // In WAL mode NORMAL loses nothing to a killed process; only a power cut may take the
        // last commits, and never the file. FULL would sync the disk once a second in the
        // middle of measuring.
        connection.pragma_update(None, "synchronous", "normal")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        Ok(connection)
    };
    // A pipe would be waited for without end.
    if path.metadata().is_ok_and(|about| !about.is_file()) {
        return Err(LedgerError::NoFile { path: path.to_owned() });
    }
    open().map_err(|why| LedgerError::Open { path: path.to_owned(), why })
}

/// Sets WAL mode. SQLite refuses this at once, without its busy time-out, while another process
/// does the same: both hold a read lock that the other would wait for.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let end = Instant::now() + BUSY_TIMEOUT;
    loop {
        match connection.pragma_update(None, "journal_mode", "wal") {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && Instant::now() < end =>
            {
                std::thread::sleep(BUSY_PAUSE);
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::SCHEMA_VERSION;

    #[test]
    fn a_newer_schema_is_refused_with_what_to_do() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b/ledger.sqlite");
        let ledger = Ledger::open(&path).unwrap();
        ledger.connection.pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
        drop(ledger);
        for opened in [Ledger::open(&path), Ledger::open_read_only(&path)] {
            let error = opened.unwrap_err();
            assert!(matches!(error, LedgerError::NewerSchema { .. }));
            assert!(error.to_string().contains("use the newer loadline"), "{error}");
        }
    }

    #[test]
    fn another_programs_database_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("other.sqlite");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE mine (x)").unwrap();
        assert!(matches!(Ledger::open(&path), Err(LedgerError::NotALedger { .. })));
        let text = directory.path().join("notes.txt");
        std::fs::write(&text, "not a database at all, but long enough to look at").unwrap();
        let error = Ledger::open(&text).unwrap_err().to_string();
        assert!(error.ends_with("file is not a database; name another file with --ledger"));
        let folder = Ledger::open_read_only(directory.path());
        assert!(matches!(folder, Err(LedgerError::NoFile { .. })));
        // Nothing was ever written to an empty file, so it is not of an older version.
        let empty = directory.path().join("empty");
        std::fs::write(&empty, "").unwrap();
        assert!(matches!(Ledger::open_read_only(&empty), Err(LedgerError::Missing { .. })));
        assert!(Ledger::open(&empty).is_ok());
    }

    #[test]
    fn reading_asks_for_a_file_that_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("none.sqlite");
        assert!(matches!(Ledger::open_read_only(&path), Err(LedgerError::Missing { .. })));
        assert!(!path.exists());
    }

    #[test]
    fn many_processes_may_make_the_same_ledger_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ledger.sqlite");
        let open = || Ledger::open(&path).map(drop);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
        });
    }
}
