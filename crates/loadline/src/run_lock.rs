//! The host's lock of measured runs: one file, whoever runs and whatever the shell has set.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::out::note;
use anyhow::{Context, bail};
use rustix::fs::{Access, OFlags, access};

/// The folders in which it may lie: the first one that everyone may write to. Nothing else decides,
/// so that all users of a host choose the same.
const FOLDERS: [&str; 2] = ["/run/lock", "/tmp"];

/// Names another file, such as one that containers of one host share.
const VARIABLE: &str = "LOADLINE_LOCK";

/// How often it is tried again.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Held while measuring: two measured runs on one host would measure each other.
#[derive(Debug)]
pub(crate) struct RunLock {
    _file: File,
}

impl RunLock {
    /// Takes the host's lock, waiting for it only if asked to; `None` where `stop` ends the wait.
    pub(crate) fn take(wait: bool, stop: &AtomicBool) -> anyhow::Result<Option<Self>> {
        let path = place(std::env::var_os(VARIABLE), &FOLDERS.map(Path::new));
        loop {
            let locked = lock(&path, wait, stop).with_context(|| path.display().to_string())?;
            let Some(file) = locked else { return Ok(None) };
            // One that was removed meanwhile, as by a cleaner of old files, is no one else's lock.
            if is_at(&file, &path) {
                return Ok(Some(Self { _file: file }));
            }
        }
    }
}

/// Where the lock lies: what is `set`, or the first of `folders` that everyone may write to.
/// Without one it is only of those who share a temporary folder.
fn place(set: Option<OsString>, folders: &[&Path]) -> PathBuf {
    if let Some(set) = set.filter(|set| !set.is_empty()) {
        return set.into();
    }
    let shared = folders.iter().find(|folder| is_shared(folder)).map(|folder| folder.to_path_buf());
    shared.unwrap_or_else(std::env::temp_dir).join("loadline.lock")
}

/// Whether everyone may make files in a folder, and no one may remove another's. A link to one is
/// none.
fn is_shared(folder: &Path) -> bool {
    let is_sticky = |mode: u32| mode & 0o1777 == 0o1777;
    let about = folder.symlink_metadata();
    about.is_ok_and(|about| about.is_dir() && is_sticky(about.mode()))
        && access(folder, Access::WRITE_OK).is_ok()
}

fn lock(path: &Path, wait: bool, stop: &AtomicBool) -> anyhow::Result<Option<File>> {
    let mut file = open_lock(path)?;
    let mut waits_for = String::new();
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if !wait => bail!(
                "this host is measuring already: {}\n  wait for it with --wait",
                holder(&mut file)
            ),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let now = holder(&mut file);
        if now != waits_for {
            note(format!("waiting for {now}"));
            waits_for = now;
        }
        // A lock that is waited for in the kernel would hear of no signal.
        std::thread::sleep(LOOK_EVERY);
    }
    let holder = format!("process {}: {}", std::process::id(), command_line());
    // The holder's name is a courtesy to those who wait; another user's file is only read.
    let said = file.set_len(0).and_then(|()| file.rewind());
    let _ = said.and_then(|()| file.write_all(holder.as_bytes()));
    Ok(Some(file))
}

/// Opens the file of the lock, which lies in a folder that others may write to: a link or anything
/// else than a regular file of one name is refused, and another user's file is locked but never
/// written. Everyone may read it, whatever its maker's umask: that is enough to lock it.
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
    if !about.is_file() || about.nlink() > 1 {
        let help = format!("is no regular file of its own; remove it, or set {VARIABLE}");
        return Err(std::io::Error::other(help));
    }
    if about.uid() != rustix::process::geteuid().as_raw() {
        return options.open(path);
    }
    if about.mode() & 0o444 != 0o444 {
        file.set_permissions(Permissions::from_mode(0o644))?;
    }
    Ok(file)
}

fn is_at(file: &File, path: &Path) -> bool {
    let identity = |about: std::fs::Metadata| (about.dev(), about.ino());
    let there = path.symlink_metadata().map(identity);
    file.metadata().map(identity).ok().zip(there.ok()).is_some_and(|(held, there)| held == there)
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_lock_lies_in_the_first_folder_that_everyone_may_write_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let make = |name: &str, mode: u32| {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).expect("made");
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("set");
            path
        };
        let (own, unsafe_one, shared) =
            (make("own", 0o755), make("open", 0o777), make("all", 0o1777));
        let link = folder.path().join("link");
        symlink(&shared, &link).expect("a link");
        let folders = [&folder.path().join("none"), &own, &unsafe_one, &link, &shared];
        let folders: Vec<&Path> = folders.iter().map(|path| path.as_path()).collect();
        assert_eq!(place(None, &folders), shared.join("loadline.lock"));
        assert_eq!(place(Some("/x/lock".into()), &folders), Path::new("/x/lock"));
        let elsewhere = std::env::temp_dir().join("loadline.lock");
        assert_eq!(place(Some("".into()), &folders[..2]), elsewhere);
    }

    #[test]
    fn everyone_may_read_the_lock_and_a_file_of_two_names_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, other) = (folder.path().join("lock"), folder.path().join("other"));
        std::fs::write(&other, "of value").expect("written");
        std::fs::hard_link(&other, &path).expect("a link");
        let goes_on = AtomicBool::new(false);
        let refused = lock(&path, false, &goes_on).expect_err("it has two names").to_string();
        assert!(refused.contains("LOADLINE_LOCK"), "{refused}");
        assert_eq!(std::fs::read(&other).expect("read"), b"of value");
        std::fs::remove_file(&other).expect("removed");
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("set");
        let held = lock(&path, false, &goes_on).expect("it is free").expect("and taken");
        let stopped = lock(&path, true, &AtomicBool::new(true)).expect("no error");
        assert!(stopped.is_none(), "a signal ends the wait");
        assert_eq!(held.metadata().expect("there").mode() & 0o777, 0o644);
        assert!(is_at(&held, &path));
        std::fs::remove_file(&path).expect("removed");
        assert!(!is_at(&held, &path));
    }
}
