//! The journal of a server, and the snapshots that replace it.
//!
//! A snapshot is a head of lines `name value`, an empty line, and the tree in ecFlow's MIGRATE
//! text, in pieces of 8 MiB.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use journal::{Directory, Entry, Journal, Options, Progress, Snapshot, SyncPolicy};

use super::record::{Joiner, Record, decode};

/// The size of a snapshot's pieces.
const PIECE_BYTES: usize = 8 << 20;

/// Records of this many bytes are replaced by a snapshot.
pub(super) const SNAPSHOT_AFTER_BYTES: u64 = 64 << 20;

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
    /// Bytes of the records behind the snapshot.
    pub(super) logged: u64,
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
    let (mut snapshot, mut joiner, mut logged) = (Some(Vec::new()), Joiner::default(), 0);
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
                    snapshot.get_or_insert_default().extend_from_slice(piece);
                }
                Entry::Record(_, bytes) => {
                    begin(&mut snapshot, restore)?;
                    logged += bytes.len() as u64;
                    let whole = joiner.join(bytes, |bytes| restore.record(&decode(bytes)?));
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

/// Writes a snapshot. Values have no line ends.
///
/// # Errors
/// When it can't be written; the journal is as it was then.
pub(super) fn write(
    mut snapshot: Snapshot,
    head: &[(String, String)],
    text: &str,
) -> Result<(), journal::Error> {
    let mut first = format!("{FIRST_LINE}\n");
    for (name, value) in head {
        first.push_str(name);
        first.push(' ');
        first.push_str(value);
        first.push('\n');
    }
    first.push('\n');
    snapshot.append(first.as_bytes())?;
    for piece in text.as_bytes().chunks(PIECE_BYTES) {
        snapshot.append(piece)?;
    }
    snapshot.finish()
}
