//! Where runs are kept: `.loadline/` with the ledger and the logs.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::exit::Failure;
use anyhow::Context;
use ledger::{Ledger, LedgerError};
use rustix::process::geteuid;

/// The folder's name.
const FOLDER: &str = ".loadline";

/// The name of its ledger.
const LEDGER: &str = "ledger.sqlite";

/// Where this run's things go.
#[derive(Debug)]
pub(crate) struct Storage {
    /// The ledger's file.
    pub(crate) ledger: PathBuf,
    /// A folder per run is made in this one.
    pub(crate) logs: PathBuf,
}

impl Storage {
    /// The ledger of that name. Several may lie in one folder, and their runs have the same
    /// numbers, so each has a folder of logs after its own name.
    pub(crate) fn named(ledger: &Path) -> Self {
        let name = ledger.file_name().unwrap_or_default();
        let mut logs = OsString::from("runs");
        if name != LEDGER {
            logs = name.to_owned();
            logs.push(".runs");
        }
        Self { ledger: ledger.to_owned(), logs: ledger.with_file_name(logs) }
    }

    /// The ledger that was asked for, or the nearest `.loadline` upward, or one here.
    ///
    /// A ledger is a program: its runs hold the commands that `rerun` starts. One that belongs to
    /// another user or that every user may write to is refused, unless it was asked for by name.
    /// Those of its group are trusted: a umask of 002 and a group for each user are the rule on
    /// many systems.
    pub(crate) fn find(ledger: Option<&Path>) -> Result<Self, Failure> {
        if let Some(ledger) = ledger {
            return Ok(Self::named(ledger));
        }
        let here = std::env::current_dir().context("the current folder can't be read")?;
        let folder = here.ancestors().map(|folder| folder.join(FOLDER)).find(|f| f.is_dir());
        let folder = folder.unwrap_or_else(|| here.join(FOLDER));
        let ledger = folder.join(LEDGER);
        for path in [&folder, &ledger] {
            if let Some(why) = strangers(path) {
                return Err(Failure::Usage(format!(
                    "{} {why}, and a ledger holds commands that are started as you: trust it by \
                     its name, --ledger {}, or make a folder {FOLDER} nearer than that one",
                    path.display(),
                    ledger.display(),
                )));
            }
        }
        Ok(Self::named(&ledger))
    }
}

/// Why what is there may be the work of a stranger, who is neither this user, root, nor of its
/// group, if so. A link is as good as who made it and what it leads to.
fn strangers(path: &Path) -> Option<String> {
    const WRITTEN_BY_ALL: u32 = 0o002;
    let found = [path.symlink_metadata(), path.metadata()];
    found.into_iter().flatten().find_map(|found| {
        if ![0, geteuid().as_raw()].contains(&found.uid()) {
            return Some(format!("belongs to another user (uid {})", found.uid()));
        }
        let is_open = !found.is_symlink() && found.mode() & WRITTEN_BY_ALL != 0;
        let is_refused = is_open && !has_no_modes(path);
        is_refused.then(|| "may be written by every user".to_owned())
    })
}

/// Whether this lies on a drive of Windows' in WSL, where every file has mode 0777, and whoever
/// can start a program is the one user whose drive it is.
fn has_no_modes(path: &Path) -> bool {
    /// Of 9p, by which WSL mounts the drives: V9FS_MAGIC of linux/magic.h.
    const DRIVES: u64 = 0x0102_1997;
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let system = rustix::fs::statfs(path).map(|about| about.f_type as u64);
    is_wsl(&kernel) && system == Ok(DRIVES)
}

/// Whether a kernel's release is that of WSL: `5.15.90.1-microsoft-standard-WSL2`.
fn is_wsl(release: &str) -> bool {
    release.to_ascii_lowercase().contains("microsoft")
}

impl Storage {
    /// Opens the ledger for reading only.
    pub(crate) fn read(&self) -> Result<Ledger, Failure> {
        Ledger::open_read_only(&self.ledger).map_err(|error| self.failure(error))
    }

    /// What goes wrong with this ledger, by its name. One that isn't there, or is none, is a
    /// mistake in what was typed, whether it was named or looked for.
    pub(crate) fn failure(&self, error: LedgerError) -> Failure {
        match error {
            error if error.is_no_ledger() => Failure::usage(error),
            LedgerError::Sql(_) => {
                Failure::Other(anyhow::Error::new(error).context(self.ledger.display().to_string()))
            }
            error => error.into(),
        }
    }

    /// Where commits are built, a folder for each, beside the ledger that will be there.
    pub(crate) fn builds(&self) -> Result<PathBuf, Failure> {
        let builds = self.logs.with_file_name("builds");
        ledger::make_directory(&builds)?;
        Ok(builds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_count_on_every_other_system_than_wsl() {
        assert!(is_wsl("5.15.90.1-microsoft-standard-WSL2\n"));
        assert!(is_wsl("4.4.0-19041-Microsoft\n"));
        assert!(!is_wsl("6.18.44\n"));
        assert!(!has_no_modes(&std::env::temp_dir()));
    }

    #[test]
    fn ledgers_in_one_folder_keep_their_logs_apart() {
        let logs = |ledger: &str| Storage::named(Path::new(ledger)).logs;
        assert_eq!(logs("x/a.sqlite"), Path::new("x/a.sqlite.runs"));
        assert_eq!(logs("b.db"), Path::new("b.db.runs"));
        assert_eq!(logs(".loadline/ledger.sqlite"), Path::new(".loadline/runs"));
    }
}
