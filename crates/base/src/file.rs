//! Files that people name: read whole, but never without end.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::units::ByteCount;

/// A file that can't be used, with the line where there is one.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It can't be read.
    #[error("{}: {why}", path.display())]
    Unread {
        /// Which.
        path: PathBuf,
        /// The system's error.
        why: io::Error,
    },
    /// It has no end, or one that is too far away.
    #[error("{}: it is longer than {most}, the most that is read of it", path.display())]
    TooLong {
        /// Which.
        path: PathBuf,
        /// How long it may be.
        most: ByteCount,
    },
    /// It is not UTF-8.
    #[error("{}:{line}: this line is no UTF-8 text", path.display())]
    NoText {
        /// Which.
        path: PathBuf,
        /// The first line with other bytes, from 1.
        line: usize,
    },
}

/// What `path` holds, a pipe too, if that is at most `most_bytes`.
///
/// # Errors
/// When it can't be read, or goes on.
pub fn read_bytes(path: &Path, most_bytes: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    let file = File::open(path);
    let read = file.and_then(|file| file.take(most_bytes + 1).read_to_end(&mut bytes));
    read.map_err(|why| FileError::Unread { path: path.to_owned(), why })?;
    match bytes.len() as u64 > most_bytes {
        true => {
            Err(FileError::TooLong { path: path.to_owned(), most: ByteCount { bytes: most_bytes } })
        }
        false => Ok(bytes),
    }
}

/// As [`read_bytes`], of a file that is text.
///
/// # Errors
/// As [`read_bytes`], and when it is no UTF-8.
pub fn read_text(path: &Path, most_bytes: u64) -> Result<String, FileError> {
    String::from_utf8(read_bytes(path, most_bytes)?).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        FileError::NoText { path: path.to_owned(), line }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_not_be_taken_is_said_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "one\ntwo \u{fc}").unwrap();
        assert_eq!(read_text(&file, 10).unwrap(), "one\ntwo \u{fc}");
        let said = |most| read_text(&file, most).unwrap_err().to_string();
        assert!(said(9).ends_with("file: it is longer than 9 B, the most that is read of it"));
        std::fs::write(&file, b"one\ntwo \xfc\n").unwrap();
        assert!(said(10).ends_with("file:2: this line is no UTF-8 text"));
        let endless = read_text(Path::new("/dev/zero"), 1 << 20).unwrap_err().to_string();
        assert!(endless.starts_with("/dev/zero: it is longer than 1 MiB"), "{endless}");
    }
}
