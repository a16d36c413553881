//! Where things are kept: `.loadline/` with the ledger and the logs, and the host's run lock.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use ledger::{Ledger, LedgerError};
use rustix::fs::OFlags;

use crate::exit::Failure;
use crate::out::note;

/// The folder's name.
const FOLDER: &str = ".loadline";

/// Where this run's things go.
#[derive(Debug)]
pub(crate) struct Home {
    /// The ledger's file.
    pub(crate) ledger: PathBuf,
    /// A folder per run is made in this one.
    pub(crate) logs: PathBuf,
    /// Whether the ledger was asked for by name.
    is_named: bool,
}

impl Home {
    /// The ledger of that name.
    pub(crate) fn named(ledger: &Path) -> Self {
        let logs = ledger.parent().unwrap_or(Path::new(".")).join("runs");
        Self { ledger: ledger.to_owned(), logs, is_named: true }
    }

    /// The ledger that was asked for, or the nearest `.loadline` upward, or one here.
    pub(crate) fn find(ledger: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(ledger) = ledger {
            return Ok(Self::named(ledger));
        }
        let here = std::env::current_dir().context("the current folder can't be read")?;
        let folder = here.ancestors().map(|folder| folder.join(FOLDER)).find(|f| f.is_dir());
        let folder = folder.unwrap_or_else(|| here.join(FOLDER));
        let (ledger, logs) = (folder.join("ledger.sqlite"), folder.join("runs"));
        Ok(Self { ledger, logs, is_named: false })
    }
}

impl Home {
    /// Opens the ledger for reading only. One of an older schema is read through a copy, as an
    /// older loadline may still write to it; that takes a while, so it is said on standard error.
    pub(crate) fn read(&self) -> Result<Ledger, Failure> {
        let opened = match Ledger::open_read_only(&self.ledger) {
            Err(LedgerError::OlderSchema { found: found @ 1.., known, .. }) => {
                note(format!(
                    "this ledger has the older schema {found}, and is read through a copy that has \
                     {known}; `loadline run` or `ledger prune` bring the ledger itself up to date"
                ));
                Ledger::open_as_it_is(&self.ledger)
            }
            opened => opened,
        };
        opened.map_err(|error| self.failure(error))
    }

    /// What goes wrong with this ledger, by its name. One that can't be opened is a mistake of
    /// whoever named what is none.
    pub(crate) fn failure(&self, error: LedgerError) -> Failure {
        match error {
            error if self.is_named && error.is_no_ledger() => Failure::usage(error),
            LedgerError::Sql(_) => {
                Failure::Other(anyhow::Error::new(error).context(self.ledger.display().to_string()))
            }
            error => error.into(),
        }
    }

    /// Where commits are built, a folder for each.
    pub(crate) fn builds(&self) -> PathBuf {
        self.logs.with_file_name("builds")
    }
}

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
