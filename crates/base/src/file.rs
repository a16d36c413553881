//! Files that people name: read whole, but never without end.

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

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
    /// It is a pipe, a device or a directory where a regular file is needed.
    #[error("{}: it is {what}, and has to be a regular file", path.display())]
    NotRegular {
        /// Which.
        path: PathBuf,
        /// What it is.
        what: &'static str,
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

/// What `path` holds, if that is at most `most_bytes`. Of pipes only those are read that this
/// process has open, as `/dev/stdin` and a shell's `<(…)`: opening another one waits for its
/// writer, which may never come.
///
/// # Errors
/// When it can't be read, or goes on.
pub fn read_bytes(path: &Path, most_bytes: u64) -> Result<Vec<u8>, FileError> {
    let is_pipe = |path: &Path| path.metadata().is_ok_and(|about| about.file_type().is_fifo());
    if !path.starts_with("/dev") && !path.starts_with("/proc/self/fd") && is_pipe(path) {
        return Err(FileError::NotRegular { path: path.to_owned(), what: PIPE });
    }
    read_within(path, File::open(path), most_bytes)
}

/// As [`read_bytes`], of a regular file only: for what is read while a service runs. Opening never
/// waits, as opening a pipe waits for its writer.
///
/// # Errors
/// As [`read_bytes`], and when it is no regular file.
pub fn read_regular(path: &Path, most_bytes: u64) -> Result<Vec<u8>, FileError> {
    let file = OpenOptions::new().read(true).custom_flags(no_wait()).open(path).and_then(|file| {
        let kind = file.metadata()?.file_type();
        Ok((file, kind))
    });
    match file {
        Ok((_, kind)) if !kind.is_file() => {
            Err(FileError::NotRegular { path: path.to_owned(), what: kind_name(kind) })
        }
        file => read_within(path, file.map(|(file, _)| file), most_bytes),
    }
}

/// The flags of open(2) with which opening never waits, nor takes a terminal.
pub fn no_wait() -> i32 {
    (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed()
}

const PIPE: &str = "a pipe (FIFO)";

/// What a file is that is no regular one, in words.
pub fn kind_name(kind: FileType) -> &'static str {
    match kind {
        _ if kind.is_fifo() => PIPE,
        _ if kind.is_dir() => "a directory",
        _ if kind.is_char_device() || kind.is_block_device() => "a device",
        _ => "a special file",
    }
}

fn read_within(path: &Path, file: io::Result<File>, most_bytes: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
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
    into_text(path, read_bytes(path, most_bytes)?)
}

/// What was read of `path`, as text.
///
/// # Errors
/// When it is no UTF-8.
pub fn into_text(path: &Path, bytes: Vec<u8>) -> Result<String, FileError> {
    String::from_utf8(bytes).map_err(|error| {
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

    #[test]
    fn what_may_wait_for_ever_is_refused_where_a_regular_file_is_needed() {
        let folder = tempfile::tempdir().unwrap();
        let [file, pipe] = ["file", "pipe"].map(|name| folder.path().join(name));
        std::fs::write(&file, "text").unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, mode, 0).unwrap();
        assert_eq!(read_regular(&file, 4).unwrap(), b"text");
        assert!(matches!(read_regular(&file, 3), Err(FileError::TooLong { .. })));
        let said = |path: &Path| read_regular(path, 9).unwrap_err().to_string();
        assert!(said(&pipe).ends_with("pipe: it is a pipe (FIFO), and has to be a regular file"));
        assert!(read_bytes(&pipe, 9).unwrap_err().to_string().contains("it is a pipe"));
        assert!(said(folder.path()).contains("it is a directory"));
        assert!(said(Path::new("/dev/null")).contains("it is a device"));
    }
}
