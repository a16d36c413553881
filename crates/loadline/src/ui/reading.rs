//! The ledger as pages read it: opened anew for each, so that it may be replaced meanwhile. One of
//! an older schema is read through a copy, which is kept, as making one takes a while.

use std::fs::metadata;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use ledger::{Ledger, LedgerError};

/// The ledger of a site.
#[derive(Debug)]
pub(super) struct Reading {
    path: PathBuf,
    /// The copy of an older one, and what it is a copy of.
    copy: Mutex<Option<(Stamp, Ledger)>>,
}

/// When the file and its log were last written, and how long they were.
type Stamp = [Option<(SystemTime, u64)>; 2];

impl Reading {
    /// Reads the ledger at `path`.
    pub(super) fn of(path: PathBuf) -> Self {
        Self { path, copy: Mutex::new(None) }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Looks at it as it is now.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Ledger) -> T) -> Result<T, LedgerError> {
        match Ledger::open_read_only(&self.path) {
            Err(LedgerError::OlderSchema { found: 1.., .. }) => {}
            opened => return Ok(look(&opened?)),
        }
        // A panicked thread has only read it.
        let mut copy = self.copy.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.stamp();
        let kept = copy.take().filter(|(of, _)| *of == stamp);
        let kept = match kept {
            Some(kept) => kept,
            None => (stamp, Ledger::open_as_it_is(&self.path)?),
        };
        Ok(look(&copy.insert(kept).1))
    }

    fn stamp(&self) -> Stamp {
        let log = PathBuf::from(format!("{}-wal", self.path.display()));
        [&self.path, &log].map(|path| {
            let found = metadata(path).ok()?;
            Some((found.modified().ok()?, found.len()))
        })
    }
}
