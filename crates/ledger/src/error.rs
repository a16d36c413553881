//! The errors of a ledger, each with the remedy.

use std::path::PathBuf;

use rusqlite::ErrorCode;

use crate::ids::{RunId, TrialId};

/// Every way in which reading or writing a ledger fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The directory of a new ledger can't be made.
    #[error(
        "can't make the directory {} for the ledger (--ledger FILE names another place)",
        path.display()
    )]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The file can't be opened as a database.
    #[error("can't open the ledger {}: {why}{}", path.display(), advice(why))]
    Open {
        /// The file.
        path: PathBuf,
        /// SQLite's message.
        why: rusqlite::Error,
    },
    /// The path is a folder, a device or a pipe.
    #[error("{} is no file, and so no ledger: name another one with --ledger", path.display())]
    NoFile {
        /// The kind of file.
        path: PathBuf,
    },
    /// There is no ledger to read.
    #[error(
        "there is no ledger at {}: measure something first, or name another file",
        path.display()
    )]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The file is a database of something else.
    #[error("{} is a database, but not a ledger: name another file with --ledger", path.display())]
    NotALedger {
        /// The file.
        path: PathBuf,
    },
    /// A newer loadline wrote the file.
    #[error(
        "the ledger {} has schema {found}, and this loadline knows {known}: \
         use the newer loadline that wrote it, or another file with --ledger",
        path.display()
    )]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// The schema version found in it.
        found: i64,
        /// The version that this build knows.
        known: i64,
    },
    /// The file is of a schema that no release of loadline had.
    #[error(
        "the ledger {} has schema {found}, which no release had, and this loadline knows {known}: \
         the loadline of commit {reader} reads it (`report`, `ledger export`); \
         to measure on, move it away, or name another file with --ledger",
        path.display()
    )]
    OlderSchema {
        /// The file.
        path: PathBuf,
        /// The schema version found in it.
        found: i64,
        /// The version that this build knows.
        known: i64,
        /// The commit whose build reads it.
        reader: &'static str,
    },
    /// No run has this id.
    #[error("there is no run {0} in this ledger")]
    NoSuchRun(RunId),
    /// A run has lost the targets that it was written with.
    #[error(
        "the ledger {ledger} is damaged: run {run} has no targets in it; other runs may be whole \
         (loadline ledger list)"
    )]
    NoTargets {
        /// The file.
        ledger: String,
        /// The run.
        run: RunId,
    },
    /// A batch was begun inside another.
    #[error("a batch is open already")]
    BatchOpen,
    /// A trial was given more slow requests than it may have.
    #[error("trial {trial} has {limit} slow requests already, and no room for more")]
    SlowFull {
        /// The trial.
        trial: TrialId,
        /// Maximum per trial.
        limit: usize,
    },
    /// A histogram can't be encoded or decoded.
    #[error(
        "a latency histogram in the ledger is damaged ({0}): this run can't be read, others may be \
         whole (loadline ledger list)"
    )]
    Histogram(String),
    /// A column holds a word that no loadline of this schema writes.
    #[error("{column} in the ledger is \"{word}\", a word that this loadline doesn't know")]
    UnknownWord {
        /// The table and column.
        column: &'static str,
        /// The word.
        word: String,
    },
    /// A chunk of samples can't be unpacked.
    #[error("the samples from {start_ns} ns on are damaged")]
    Chunk {
        /// When it begins.
        start_ns: u64,
    },
    /// The identity of this process can't be read from /proc.
    #[error("can't read this process's identity from /proc")]
    Process(#[source] std::io::Error),
    /// SQLite refused.
    #[error("the ledger refused: {0}{advice}", advice = advice(.0))]
    Sql(rusqlite::Error),
}

impl LedgerError {
    /// A histogram that can't be encoded, decoded or merged.
    pub fn histogram(why: impl std::fmt::Display) -> Self {
        Self::Histogram(why.to_string())
    }

    /// Whether there is no ledger at the path: nothing, or something else.
    #[must_use]
    pub fn is_no_ledger(&self) -> bool {
        match self {
            Self::NoFile { .. } | Self::Missing { .. } | Self::NotALedger { .. } => true,
            Self::Open { why, .. } => why.sqlite_error_code() == Some(ErrorCode::NotADatabase),
            _ => false,
        }
    }

    /// Whether SQLite can't open the file, or one that it needs beside it.
    pub(crate) fn is_cannot_open(&self) -> bool {
        let (Self::Open { why, .. } | Self::Sql(why)) = self else { return false };
        matches!(why.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
    }
}

impl From<rusqlite::Error> for LedgerError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

/// The remedy for an error of SQLite, as the rest of a sentence.
fn advice(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt) => {
            "; the file is damaged: `sqlite3 FILE .recover` saves what can be read, and another \
             file is named with --ledger"
        }
        Some(ErrorCode::NotADatabase) => "; name another file with --ledger",
        Some(ErrorCode::DiskFull) => "; make room on its disk: all that was written is kept",
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            "; it and its folder have to be yours to write (to read it, copy it with its -wal file \
             to a folder of yours), or name another with --ledger"
        }
        _ => "",
    }
}
