//! Opening a ledger.

use std::fs::DirBuilder;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::LedgerError;
use crate::schema;

/// Time for which a statement waits for another process's write to end. A measuring run holds the
/// write lock for up to a second at a time.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Between two tries of what SQLite doesn't wait for itself.
const BUSY_PAUSE: Duration = Duration::from_millis(1);

/// Statements kept prepared, so that one batch a second costs no parsing.
const STATEMENTS_KEPT: usize = 64;

/// An open ledger.
#[derive(Debug)]
pub struct Ledger {
    pub(crate) connection: Connection,
}

impl Ledger {
    /// Opens a ledger for reading and writing; makes it, and its directory, when absent.
    ///
    /// Fails when the file is something else, when its schema is of another version, or when it
    /// can't be written.
    pub fn open(path: impl AsRef<Path>) -> Result<Ledger, LedgerError> {
        let path = path.as_ref();
        if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            make_directory(directory)?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = connect(path, flags)?;
        schema::create(&mut connection, path)?;
        Ok(Ledger { connection })
    }

    /// Opens a ledger for reading only. Neither waits for the other when a run is writing to it.
    ///
    /// Fails when there is none, and when its schema is of another version. Where SQLite can't put
    /// its `-shm` file beside it, such as in a read-only directory, a ledger is read as it lies
    /// there, as long as no `-wal` file holds more of it.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Ledger, LedgerError> {
        let path = path.as_ref();
        if !path.exists() {
            return Err(LedgerError::Missing { path: path.to_owned() });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = |at: &Path, flags| {
            let connection = connect(at, flags)?;
            schema::check(&connection, path)?;
            Ok(Ledger { connection })
        };
        open(path, flags).or_else(|error: LedgerError| match immutable(path) {
            Some(at) if error.is_cannot_open() => {
                open(&at, flags | OpenFlags::SQLITE_OPEN_URI).map_err(|_| error)
            }
            _ => Err(error),
        })
    }

    /// Opens a ledger for reading and writing, as [`Ledger::open`] does, but makes none.
    ///
    /// Fails as that, and when there is none.
    pub fn open_existing(path: impl AsRef<Path>) -> Result<Ledger, LedgerError> {
        let path = path.as_ref();
        if !path.exists() {
            return Err(LedgerError::Missing { path: path.to_owned() });
        }
        Self::open(path)
    }

    /// A ledger in memory, gone when dropped. For tests of what reads ledgers.
    pub fn in_memory() -> Result<Ledger, LedgerError> {
        let mut connection = Connection::open_in_memory()?;
        connection.pragma_update(None, "foreign_keys", true)?;
        schema::create(&mut connection, Path::new(":memory:"))?;
        Ok(Ledger { connection })
    }
}

/// Makes the directory of a ledger where there is none. A ledger holds commands: not every user may
/// write to it, even where the umask, such as that of some containers of CI, lets them.
///
/// Fails when it can't be made.
pub fn make_directory(directory: &Path) -> Result<(), LedgerError> {
    const NOT_BY_ALL: u32 = 0o775;
    let made = DirBuilder::new().recursive(true).mode(NOT_BY_ALL).create(directory);
    made.map_err(|source| LedgerError::Directory { path: directory.to_owned(), source })
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

/// The name by which SQLite takes a file for one that never changes, and looks for nothing beside
/// it; `None` when the log beside it holds more.
fn immutable(path: &Path) -> Option<PathBuf> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if Path::new(&log).metadata().is_ok_and(|about| about.len() > 0) {
        return None;
    }
    let mut name = "file:".to_owned();
    for byte in path.canonicalize().ok()?.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => name.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => name.push(char::from(*byte)),
            byte => name += &format!("%{byte:02X}"),
        }
    }
    Some(PathBuf::from(name + "?immutable=1"))
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
    fn another_schema_is_refused_with_what_to_do_and_left_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b/ledger.sqlite");
        let made = Ledger::open(&path).unwrap();
        for (version, remedy) in [
            (SCHEMA_VERSION + 1, "use the newer loadline"),
            (SCHEMA_VERSION - 1, "the loadline of commit 40c7b16"),
            (21, "the loadline of commit 443e4de"),
            (20, "the loadline of commit ccaf051"),
            (16, "the loadline of commit 6e4a190"),
            (15, "the loadline of commit 5f3e8e0"),
            (1, ""),
        ] {
            made.connection.pragma_update(None, "user_version", version).unwrap();
            for open in [Ledger::open, Ledger::open_existing, Ledger::open_read_only] {
                let error = open(&path).unwrap_err().to_string();
                assert!(error.contains(&format!("has schema {version}")), "{error}");
                assert!(error.contains(remedy), "{error}");
            }
            let found = made.connection.pragma_query_value(None, "user_version", |row| row.get(0));
            assert_eq!(found, Ok(version));
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
        // Nothing was ever written to an empty file, so it is not of another version.
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

    /// SQLite follows no link, so one in the place of the `-shm` file is in the way even of root.
    #[test]
    fn a_ledger_that_nothing_can_be_put_beside_is_read_as_it_lies_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a 50 % ledger?.sqlite");
        drop(Ledger::open(&path).unwrap());
        let beside = directory.path().join("a 50 % ledger?.sqlite-shm");
        std::os::unix::fs::symlink("nowhere", beside).unwrap();
        assert_eq!(Ledger::open_read_only(&path).unwrap().runs().unwrap(), []);
        // What a log holds would be missing.
        std::fs::write(directory.path().join("a 50 % ledger?.sqlite-wal"), "more").unwrap();
        let refused = Ledger::open_read_only(&path).unwrap_err().to_string();
        assert!(refused.contains("its folder have to be yours to write"), "{refused}");
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
