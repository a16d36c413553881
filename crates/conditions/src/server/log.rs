//! What makes changes durable, in their order: the journal of a data directory, or groups that
//! several servers share. Control plane.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use journal::{Journal, Snapshot, Watch};

use super::full;
use super::shared::Shared;
use crate::model::Revision;

/// Why a group of changes is not made.
#[derive(Debug)]
#[cfg_attr(not(feature = "tier"), allow(dead_code, reason = "only servers that share groups"))]
pub(super) enum NotWritten {
    /// Changes of another server come first; of this group nothing was written.
    Behind,
    /// Nothing of it was written, nor will be; others may be.
    Refused(String),
    /// It may be durable, or become so; others can be written.
    Unknown(String),
    /// It may be durable, or become so, and nothing more can be written.
    Failed(String),
}

/// What came of looking for the changes of other servers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Followed {
    /// Whether the state was replaced by one over other segments.
    pub(super) is_replaced: bool,
    /// Whether changes can't be followed until it is.
    pub(super) is_behind: bool,
}

/// Changes that are durable, in their order.
pub(super) trait Log: Send {
    /// Makes the records that follow revision `after` durable, however long that takes, or until
    /// `is_ending`.
    fn write(
        &mut self,
        after: Revision,
        records: &[Vec<u8>],
        is_ending: &AtomicBool,
    ) -> Result<(), NotWritten>;

    /// How many bytes of records there are behind what replaces the earlier ones.
    fn unsealed_bytes(&self) -> u64;

    /// What is to replace all changes through a revision, the last one.
    ///
    /// # Errors
    /// When one is being made already.
    fn begin_base(&mut self, revision: Revision) -> anyhow::Result<Box<dyn NewBase>>;

    /// Whether what replaces all changes through a revision is there for good: where nothing came
    /// since, nothing can be put in its place.
    fn has_base(&self, _: Revision) -> bool {
        false
    }

    /// Whether a seal may begin now.
    fn may_seal(&self) -> bool {
        true
    }

    /// Takes note that what replaces all changes through a revision is durable.
    fn sealed(&mut self, revision: Revision);

    /// How long changes of others may go unseen; `None` where there are none.
    fn pause(&self) -> Option<Duration> {
        None
    }

    /// Why what other servers have changed can't be taken in, where that is so.
    fn stuck(&self) -> Option<&str> {
        None
    }

    /// Applies what other servers have changed, now where it `is_asked`, and otherwise once it is
    /// time. While it `is_sealing` the state is not replaced.
    ///
    /// # Errors
    /// When it isn't known what they have changed.
    fn follow(
        &mut self,
        _: &Shared,
        _is_asked: bool,
        _is_sealing: bool,
    ) -> anyhow::Result<Followed> {
        Ok(Followed::default())
    }
}

/// What replaces all changes through a revision: a copy of the state that names its segments.
pub(super) trait NewBase: Send {
    /// Begins it, before the first segment is stored; returns the least number of new segments.
    fn begin(&mut self) -> Result<u64, BaseError> {
        Ok(0)
    }

    /// A segment is stored, which may have taken long, and more come.
    fn goes_on(&mut self) -> Result<(), BaseError> {
        Ok(())
    }

    /// Adds a record.
    fn append(&mut self, record: &[u8]) -> Result<(), BaseError>;

    /// Does what can be done, and can fail, before it may count.
    fn prepare(&mut self) -> Result<(), BaseError> {
        Ok(())
    }

    /// Makes it durable. `used` are the segments that it names, or the one before does.
    fn finish(self: Box<Self>, used: &BTreeSet<u64>) -> Result<(), BaseError>;
}

/// Why nothing replaces the changes.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "tier"), allow(dead_code, reason = "as above"))]
pub(super) enum BaseError {
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// Another server makes it; there is no harm.
    #[error("another server seals")]
    Elsewhere,
    #[error("{0}")]
    Other(String),
}

/// The journal of a data directory.
pub(super) struct OwnJournal {
    journal: Journal,
    watch: Watch,
    /// Bytes of the records behind the snapshot, and how many of them a seal under way is of.
    logged: u64,
    logged_before: u64,
}

impl OwnJournal {
    /// A journal with `logged` bytes of records behind its snapshot.
    pub(super) fn new(journal: Journal, logged: u64) -> Self {
        let watch = journal.watch();
        Self { journal, watch, logged, logged_before: 0 }
    }
}

impl Log for OwnJournal {
    /// A record that is refused before it is appended ends the service's writes: those of its group
    /// that are appended may become durable, and their numbers can't be given again.
    fn write(
        &mut self,
        _: Revision,
        records: &[Vec<u8>],
        is_ending: &AtomicBool,
    ) -> Result<(), NotWritten> {
        let written = full::write(&mut self.journal, &self.watch, records, is_ending);
        written.map_err(|error| NotWritten::Failed(error.to_string()))?;
        self.logged += bytes_of(records);
        Ok(())
    }

    fn unsealed_bytes(&self) -> u64 {
        self.logged
    }

    fn begin_base(&mut self, revision: Revision) -> anyhow::Result<Box<dyn NewBase>> {
        let snapshot = self.journal.snapshot()?;
        let through = snapshot.through();
        anyhow::ensure!(revision == through, "revision {revision} is not record {through}");
        self.logged_before = self.logged;
        Ok(Box::new(snapshot))
    }

    fn sealed(&mut self, _: Revision) {
        self.logged -= self.logged_before;
    }
}

/// How many bytes records have.
fn bytes_of(records: &[Vec<u8>]) -> u64 {
    records.iter().map(|record| record.len() as u64).sum()
}

impl NewBase for Snapshot {
    fn append(&mut self, record: &[u8]) -> Result<(), BaseError> {
        Ok(Snapshot::append(self, record)?)
    }

    fn prepare(&mut self) -> Result<(), BaseError> {
        Ok(Snapshot::prepare(self)?)
    }

    fn finish(self: Box<Self>, _: &BTreeSet<u64>) -> Result<(), BaseError> {
        Ok(Snapshot::finish(*self)?)
    }
}
