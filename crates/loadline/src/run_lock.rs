//! The host's lock of measured runs.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::out::note;
use anyhow::{Context, bail};
use rustix::fs::OFlags;

/// Held while measuring: two measured runs on one host would measure each other.
#[derive(Debug)]
pub(crate) struct RunLock {
    _file: File,
}

impl RunLock {
    /// Takes the host's lock, waiting for it only if asked to.
    pub(crate) fn take(wait: bool) -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join("loadline.lock");
        let mut file = open_lock(&path).with_context(|| path.display().to_string())?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) if wait => {
                note(format!("waiting for {}", holder(&mut file)));
                file.lock()?;
            }
            Err(TryLockError::WouldBlock) => bail!(
                "this host is measuring already: {}\n  wait for it with --wait",
                holder(&mut file)
            ),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("{}", path.display()));
            }
        }
        let holder = format!("process {}: {}", std::process::id(), command_line());
        // The holder's name is a courtesy to those who wait; another user's file is only read.
        let said = file.set_len(0).and_then(|()| file.rewind());
        let _ = said.and_then(|()| file.write_all(holder.as_bytes()));
        Ok(Self { _file: file })
    }
}

/// Opens the file of the lock, which lies in a folder that others may write to: a link or anything
/// else than a regular file is refused, and another user's file is locked but never written.
fn open_lock(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits() as i32);
    let writable = options.clone().write(true).create(true).truncate(false).open(path);
    let file = match writable {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => options.open(path)?,
        opened => opened?,
    };
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(std::io::Error::other("is no regular file; remove it"));
    }
    if about.uid() != rustix::process::geteuid().as_raw() {
        return options.open(path);
    }
    Ok(file)
}

/// What was typed, for people: bytes that are no text are replaced.
pub(crate) fn command_line() -> String {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    words.collect::<Vec<_>>().join(" ")
}

fn holder(file: &mut File) -> String {
    let mut said = String::new();
    // Whoever holds it may be writing this very moment: an empty answer is no error.
    let _ = file.rewind().and_then(|()| file.read_to_string(&mut said));
    if said.is_empty() { "another run".to_owned() } else { said }
}
