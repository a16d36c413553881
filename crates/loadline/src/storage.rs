//! Where runs are kept: `.loadline/` with the ledger and the logs.

use std::path::{Path, PathBuf};

use crate::exit::Failure;
use crate::out::note;
use anyhow::Context;
use ledger::{Ledger, LedgerError};

/// The folder's name.
const FOLDER: &str = ".loadline";

/// Where this run's things go.
#[derive(Debug)]
pub(crate) struct Storage {
    /// The ledger's file.
    pub(crate) ledger: PathBuf,
    /// A folder per run is made in this one.
    pub(crate) logs: PathBuf,
    /// Whether the ledger was asked for by name.
    is_named: bool,
}

impl Storage {
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

impl Storage {
    /// Opens the ledger for reading only. One of an older schema is read through a copy, as an
    /// older loadline may still write to it; that takes a while, so a note goes to standard error.
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
