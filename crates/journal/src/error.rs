//! What can go wrong, each with the file and what to do about it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::disk::Disk;

/// A damaged file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}, byte {offset}: {why}; restore all files from a backup", path.display())]
pub struct Damage {
    /// Which.
    pub path: PathBuf,
    /// Where the first group begins that can't be read.
    pub offset: u64,
    /// What is wrong with it.
    pub why: String,
}

/// Why a journal can't be opened, or doesn't take a record.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// A call of the system failed.
    #[error("{}: {doing}: {why}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// The system's error.
        why: Arc<io::Error>,
    },
    /// What was written could not be made durable, so what is on the disk is unknown.
    #[error(
        "{}: fsync failed ({why}), so the journal takes no more records: what was acknowledged is \
         safe; check the disk, then start again",
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
    /// A snapshot or a backup is being made, and there is one at a time.
    #[error("a snapshot or a backup is being made: wait until it is done")]
    Occupied,
    /// A backup's directory has a journal in it.
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

    /// Whether the disk is full: the same can be tried again when there is room.
    pub fn is_no_space(&self) -> bool {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        matches!(self, Self::Io { why, .. } if full.contains(&why.kind()))
    }
}
