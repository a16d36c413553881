//! What can go wrong, each with the file and what to do about it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::disk::Disk;

/// What fails, in [`Error::Io`], before a byte of a file is written.
pub(crate) const CREATE: &str = "create";

/// A damaged file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {why}; restore all files from a backup", path.display(), place(*offset))]
pub struct Damage {
    /// Which, or the directory where one is missing.
    pub path: PathBuf,
    /// Where the first group begins that can't be read; 0 stands for the whole file.
    pub offset: u64,
    /// What is wrong with it.
    pub why: String,
}

/// A byte of a file in a message, unless the whole is meant.
pub(crate) fn place(offset: u64) -> String {
    if offset == 0 { String::new() } else { format!(", byte {offset}") }
}

/// Why a journal can't be opened, or doesn't take a record.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// A call of the system failed.
    #[error("cannot {doing} {}: {why}", path.display())]
    Io {
        /// What it is to do, as a verb.
        doing: &'static str,
        /// The file, or the directory.
        path: PathBuf,
        /// The system's error.
        why: Arc<io::Error>,
    },
    /// What was written could not be made durable, so what is on the disk is unknown.
    #[error(
        "{}: fsync failed ({why}): what was written since the last one may be lost, and the \
         journal takes no more records; check the disk, then start again",
        path.display()
    )]
    Sync {
        /// Which file or directory.
        path: PathBuf,
        /// The system's error.
        why: Arc<io::Error>,
    },
    /// A file is damaged where a crash can't have damaged it.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// Whoever reads the records does not take one that is undamaged.
    #[error("{}: record {seq} is undamaged, but was refused: {why}", path.display())]
    Refused {
        /// The record's file.
        path: PathBuf,
        /// Its number.
        seq: u64,
        /// Why.
        why: String,
    },
    /// A record is too large.
    #[error("a record of {bytes} bytes: {most_bytes} bytes are the most")]
    TooLarge {
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        most_bytes: usize,
    },
    /// Too much waits to be written; there is room again when some of it has been.
    #[error("{bytes} bytes wait to be written, of at most {most_bytes}: try again later")]
    Busy {
        /// How much waits.
        bytes: usize,
        /// How much may.
        most_bytes: usize,
    },
    /// A snapshot is being made, and there is one at a time.
    #[error("a snapshot is being made: wait until it is done")]
    Exclusive,
    /// The directory of a copy has a journal in it.
    #[error("{}: there is a journal already: choose an empty directory", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// The journal has been closed, or its thread has ended.
    #[error("the journal is closed")]
    Closed,
}

impl Error {
    pub(crate) fn io(disk: &dyn Disk, name: &str, doing: &'static str, why: io::Error) -> Self {
        Self::Io { doing, path: disk.path(name), why: Arc::new(why) }
    }

    pub(crate) fn sync(disk: &dyn Disk, name: &str, why: io::Error) -> Self {
        Self::Sync { path: disk.path(name), why: Arc::new(why) }
    }

    /// Whether the disk is full.
    pub fn is_no_space(&self) -> bool {
        matches!(self, Self::Io { why, .. } if is_full(why))
    }

    /// Whether the same can be tried again: the disk was full, or a file could not be created, as
    /// when too many are open. Where the directory is gone, or may not be written to, that ends it.
    pub fn is_passing(&self) -> bool {
        use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem};
        let lasts = [NotFound, NotADirectory, PermissionDenied, ReadOnlyFilesystem];
        let passes = |why: &io::Error| !lasts.contains(&why.kind());
        self.is_no_space() || matches!(self, Self::Io { doing: CREATE, why, .. } if passes(why))
    }

    /// Whether a file was missing.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Io { why, .. } if why.kind() == io::ErrorKind::NotFound)
    }
}

/// Whether a call failed because the disk is full.
pub(crate) fn is_full(why: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    // The last is a limit on the size of a file (`ulimit -f`).
    matches!(why.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
