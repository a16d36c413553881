//! The journal of a server, and the snapshots that replace it.
//!
//! A snapshot is a head of lines `name value`, an empty line, and the tree in ecFlow's MIGRATE
//! text; both in pieces of 8 MiB.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use journal::{Directory, Entry, Journal, Options, Progress, Snapshot, SyncPolicy};

use super::record::{Joiner, Record, decode};

/// The size of a snapshot's pieces.
const PIECE_BYTES: usize = 8 << 20;

/// Records of fewer bytes are not replaced by a snapshot.
const SNAPSHOT_AFTER_BYTES: u64 = 64 << 20;

/// How much is in the journal behind the snapshot.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Logged {
    /// Bytes of the records.
    records: u64,
    /// Bytes of the last snapshot, or of the largest record since: a definition is as long there.
    large: u64,
}

impl Logged {
    /// Adds a record of this many bytes.
    pub(super) fn add(&mut self, bytes: u64) {
        self.records += bytes;
        self.large = self.large.max(bytes);
    }

    /// Whether the records are to be replaced: when they are twice as large as what replaces them.
    /// A recorded byte is thus written and read less than twice more, however large the tree.
    pub(super) fn is_due(&self) -> bool {
        self.records >= SNAPSHOT_AFTER_BYTES.max(2 * self.large)
    }

    /// A snapshot of all so far is tried.
    pub(super) fn begin(&mut self) {
        *self = Self::default();
    }

    /// The snapshot is written.
    pub(super) fn replaced(&mut self, bytes: u64) {
        self.large = self.large.max(bytes);
    }
}

/// The most bytes that wait for the disk: the largest request, and others beside it.
const WAITING_BYTES: usize = 3 << 30;

/// The first line of a snapshot.
const FIRST_LINE: &str = "loadline workflow 1";

/// What is read of a snapshot.
#[derive(Debug, Default)]
pub(super) struct Stored {
    /// The head's values by name.
    pub(super) head: BTreeMap<String, String>,
    /// The tree's text.
    pub(super) text: String,
}

/// What takes what is read, in order.
pub(super) trait Restore {
    /// Takes a snapshot, before all records.
    fn snapshot(&mut self, stored: Stored) -> anyhow::Result<()>;

    /// Takes a record.
    fn record(&mut self, record: &Record<'_>) -> anyhow::Result<()>;
}

/// A journal whose contents have been taken.
pub(super) struct Opened {
    pub(super) journal: Journal,
    /// What is behind the snapshot.
    pub(super) logged: Logged,
    /// It has neither a snapshot nor a record.
    pub(super) is_empty: bool,
}

/// Opens the journal in `folder`, and has `restore` take what is in it.
///
/// # Errors
/// When it is in use, can't be read, or is damaged.
pub(super) fn open(
    folder: &Path,
    sync: SyncPolicy,
    restore: &mut impl Restore,
    notify: impl FnMut(Progress) + Send + 'static,
) -> anyhow::Result<Opened> {
    let disk = Directory::new(folder);
    let (mut snapshot, mut joiner) = (Some(Vec::new()), Joiner::default());
    let mut logged = Logged::default();
    let options = Options {
        sync,
        waiting_bytes: WAITING_BYTES,
        refuses_when_full: true,
        ..Options::default()
    };
    let begin = |snapshot: &mut Option<Vec<u8>>, restore: &mut _| -> anyhow::Result<()> {
        match snapshot.take() {
            Some(bytes) if !bytes.is_empty() => take(bytes, restore),
            _ => Ok(()),
        }
    };
    let opened = Journal::open(
        Arc::new(disk),
        options,
        |entry| {
            match entry {
                Entry::Snapshot(piece) => {
                    logged.large += piece.len() as u64;
                    snapshot.get_or_insert_default().extend_from_slice(piece);
                }
                Entry::Record(_, bytes) => {
                    begin(&mut snapshot, restore)?;
                    let whole = joiner.join(bytes, |bytes| {
                        logged.add(bytes.len() as u64);
                        restore.record(&decode(bytes)?)
                    });
                    whole.transpose()?;
                }
            }
            Ok(())
        },
        notify,
    );
    let (journal, report) = opened?;
    begin(&mut snapshot, restore)?;
    let is_empty = report.snapshot.is_none() && report.records == 0;
    Ok(Opened { journal, logged, is_empty })
}

fn take(bytes: Vec<u8>, restore: &mut impl Restore) -> anyhow::Result<()> {
    let text = String::from_utf8(bytes).context("the snapshot is not text")?;
    let Some((head, text)) = text.split_once("\n\n") else { bail!("the snapshot has no head") };
    let mut lines = head.lines();
    let first = lines.next().unwrap_or_default();
    anyhow::ensure!(first == FIRST_LINE, "{first:?} is no snapshot of this version");
    let pairs = lines.filter_map(|line| line.split_once(' '));
    let head = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    restore.snapshot(Stored { head, text: text.to_owned() })
}

/// Writes a snapshot, and returns how many bytes it has. Values have no line ends.
///
/// # Errors
/// What of it can't be written, and why; the journal is as it was then.
pub(super) fn write(
    mut snapshot: Snapshot,
    head: &[(String, String)],
    text: &str,
) -> Result<u64, String> {
    let mut first = format!("{FIRST_LINE}\n");
    for (name, value) in head {
        first.push_str(name);
        first.push(' ');
        first.push_str(value);
        first.push('\n');
    }
    first.push('\n');
    let parts =
        [("handles, zombies and jobs that wait to be started", &*first), ("the tree", text)];
    for (what, part) in parts {
        for piece in part.as_bytes().chunks(PIECE_BYTES) {
            let done = snapshot.append(piece);
            done.map_err(|error| format!("{what}, {} bytes: {error}", part.len()))?;
        }
    }
    snapshot.finish().map_err(|error| error.to_string())?;
    Ok((first.len() + text.len()) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Kept(Vec<Stored>);

    impl Restore for Kept {
        fn snapshot(&mut self, stored: Stored) -> anyhow::Result<()> {
            self.0.push(stored);
            Ok(())
        }

        fn record(&mut self, _: &Record<'_>) -> anyhow::Result<()> {
            bail!("there is none")
        }
    }

    #[test]
    fn a_head_longer_than_a_record_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut kept = Kept(Vec::new());
        let mut open = || open(folder.path(), SyncPolicy::Always, &mut kept, |_| {});
        let mut journal = open().expect("a journal").journal;
        let long = "é".repeat(journal::MAX_RECORD_BYTES);
        let head = ["a", "b"].map(|name| (name.to_owned(), long.clone()));
        let snapshot = journal.snapshot().expect("a snapshot");
        write(snapshot, &head, &long).expect("written");
        journal.close().expect("closed");
        assert!(!open().expect("a journal").is_empty);
        let [stored] = &kept.0[..] else { panic!("{} snapshots", kept.0.len()) };
        assert!(stored.head.iter().all(|(_, value)| *value == long) && stored.head.len() == 2);
        assert!(stored.text == long);
    }

    #[test]
    fn records_are_replaced_once_they_are_twice_as_large_as_what_replaces_them() {
        let mut logged = Logged::default();
        logged.add(SNAPSHOT_AFTER_BYTES);
        assert!(!logged.is_due(), "a snapshot is as large as the one definition");
        logged.add(SNAPSHOT_AFTER_BYTES);
        assert!(logged.is_due());
        logged.begin();
        assert!(!logged.is_due(), "one that can't be made isn't tried at each change");
        logged.replaced(10);
        for _ in 0..SNAPSHOT_AFTER_BYTES / 1024 - 1 {
            logged.add(1024);
            assert!(!logged.is_due());
        }
        logged.add(1024);
        assert!(logged.is_due());
    }
}
