//! A data directory: FORMAT says which service and version it is of, LOCK that it is in use.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};

use crate::Failure;

/// The most that is read of FORMAT.
const MAX_FORMAT_BYTES: u64 = 256;

/// `--data`.
#[derive(Clone, Debug, clap::Args)]
pub struct DataArgs {
    /// The directory that keeps the service's data; it is made if it isn't there, in one that is
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
}

/// A data directory that this process holds; it is free again once this is dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Opens or makes the directory of `service`, whose files have the layout `version`.
    ///
    /// # Errors
    /// A usage error when it is another service's, or no data directory; another error when it is
    /// another version's, in use, or can't be written.
    pub(crate) fn open(path: &Path, service: &str, version: u32) -> Result<Self, Failure> {
        let shown = path.display();
        make_data(path)?;
        check_owner(path, service)?;
        let lock_path = path.join("LOCK");
        // To open a pipe waits for its other end.
        if let Ok(about) = lock_path.metadata()
            && !about.is_file()
        {
            let (what, lock) = (base::kind_name(about.file_type()), lock_path.display());
            return Err(anyhow!("{lock} is {what}, and has to be a regular file").into());
        }
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&lock_path);
        let mut lock = lock.with_context(|| {
            format!("--data {shown}: {} can't be written; check who owns it", lock_path.display())
        })?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::Other(anyhow!(
                    "--data {shown} is in use by process {}: stop that one, or choose another \
                     directory",
                    holder(&lock_path)
                )));
            }
            Err(TryLockError::Error(error)) => {
                let error = anyhow::Error::from(error);
                return Err(error.context(format!("--data {shown} can't be locked")).into());
            }
        }
        check_format(path, service, version)?;
        lock.set_len(0)?;
        writeln!(lock, "{}", std::process::id())?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Makes the directory of `--data` where it isn't there. The one above it has to be, so that a path
/// that is mistyped makes none.
///
/// # Errors
/// A usage error where the one above isn't there; another error where it can't be made.
pub fn make_data(path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    match std::fs::create_dir(path) {
        Err(_) if path.is_dir() => Ok(()),
        Err(why)
            if why.kind() == ErrorKind::NotFound && !path.parent().is_some_and(Path::is_dir) =>
        {
            Err(Failure::Usage(format!(
                "--data {shown}: there is no directory {}: make it first, or correct the path",
                path.parent().unwrap_or(path).display()
            )))
        }
        made => Ok(made
            .with_context(|| format!("--data {shown} can't be made; choose another directory"))?),
    }
}

/// Who holds the lock, as its file says.
fn holder(lock: &Path) -> String {
    let text = base::read_text(lock, MAX_FORMAT_BYTES).unwrap_or_default();
    match text.trim() {
        "" => "unknown".to_owned(),
        process => process.to_owned(),
    }
}

/// Refuses, before anything is written, a directory that holds something else.
fn check_owner(path: &Path, service: &str) -> Result<(), Failure> {
    // FORMAT.new is what a crash leaves of a directory that was being made.
    const OURS: [&str; 2] = ["LOCK", "FORMAT.new"];
    let shown = path.display();
    if path.join("FORMAT").exists() {
        return Ok(());
    }
    let names = std::fs::read_dir(path).with_context(|| format!("--data {shown}"))?;
    let mut others = names.flatten().filter(|one| OURS.iter().all(|own| one.file_name() != *own));
    match others.next() {
        None => Ok(()),
        Some(other) => Err(Failure::Usage(format!(
            "--data {shown} holds {:?} but no FORMAT, so it is no data directory of {service}: \
             choose an empty one",
            other.file_name()
        ))),
    }
}

/// Writes FORMAT into an empty directory; in another one it has to be the one that is meant.
fn check_format(path: &Path, service: &str, version: u32) -> Result<(), Failure> {
    let (format, meant) = (path.join("FORMAT"), format!("{service} {version}"));
    let shown = path.display();
    if !format.exists() {
        let written = base::replace_file(&format, |file| writeln!(file, "{meant}"));
        return Ok(written.with_context(|| format!("{shown}/FORMAT can't be written"))?);
    }
    let text = base::read_text(&format, MAX_FORMAT_BYTES)?;
    let (whose, found) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    if whose != service {
        return Err(Failure::Usage(format!(
            "--data {shown} is of the service {whose:?}, not {service:?}: choose another"
        )));
    }
    let refused = match found.parse::<u32>() {
        Ok(found) if found == version => return Ok(()),
        Ok(found) if found > version => anyhow!(
            "--data {shown} has version {found} of {service}'s data, and this program knows \
             version {version}: use the newer loadline that wrote it, or another directory"
        ),
        Ok(found) => anyhow!(
            "--data {shown} has version {found} of {service}'s data, and this program knows \
             version {version} only: start with an empty directory, or use the older loadline"
        ),
        Err(_) => anyhow!("{}: {found:?} is no version number", format.display()),
    };
    Err(Failure::Other(refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_belongs_to_one_service_one_version_and_one_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data");
        let open = DataDir::open(&path, "toy", 2).expect("made");
        let said = DataDir::open(&path, "toy", 2).expect_err("refused").to_string();
        assert!(said.contains(&format!("in use by process {}", std::process::id())), "{said}");
        drop(open);
        // A process that another test starts has the lock, too, until it runs its program.
        let free = |service, version| loop {
            match DataDir::open(&path, service, version) {
                Err(why) if why.to_string().contains("in use") => std::thread::yield_now(),
                opened => break opened,
            }
        };
        let refused = |service, version| free(service, version).expect_err("refused").to_string();
        drop(free("toy", 2).expect("free again"));
        assert!(refused("other", 2).contains("of the service \"toy\", not \"other\""));
        assert!(refused("toy", 1).contains("use the newer loadline"));
        assert!(refused("toy", 3).contains("start with an empty directory"));
        std::fs::write(path.join("FORMAT"), "toy x\n").expect("written");
        assert!(refused("toy", 2).contains("\"x\" is no version number"));
    }

    #[test]
    fn a_directory_is_made_but_not_those_above_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let above = folder.path().join("mistyped");
        let said = DataDir::open(&above.join("data"), "toy", 1).expect_err("refused").to_string();
        let meant = format!("there is no directory {}: make it", above.display());
        assert!(said.contains(&meant) && !above.exists(), "{said}");
        std::fs::create_dir(&above).expect("made");
        drop(DataDir::open(&above.join("data"), "toy", 1).expect("made"));
    }

    #[test]
    fn a_pipe_in_place_of_the_lock_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let lock = folder.path().join("LOCK");
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &lock, mode).expect("a pipe");
        let said = DataDir::open(folder.path(), "toy", 1).expect_err("refused").to_string();
        assert!(said.contains("LOCK is a pipe (FIFO), and has to be a regular file"), "{said}");
    }

    #[test]
    fn a_directory_of_something_else_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("letter.txt"), "Dear").expect("written");
        let said = DataDir::open(folder.path(), "toy", 1).expect_err("refused").to_string();
        assert!(said.contains("\"letter.txt\" but no FORMAT"), "{said}");
    }
}
