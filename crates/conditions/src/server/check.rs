//! Reads a data directory, and changes nothing. Control plane.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use journal::Directory;

use super::segments::Segments;
use super::store::{Reading, folders};
use super::{DATA_VERSION, NAME};
use crate::model::{Change, Entry};
use crate::nopayload::model as nopayload;
use crate::nopayload::server::storage;

/// How often it is tried while a server exchanges the files.
const TRIES: usize = 5;

/// The most that is read of FORMAT.
const MAX_FORMAT_BYTES: u64 = 256;

/// What a data directory holds.
#[derive(Debug)]
pub struct Checked {
    /// The journal.
    pub journal: journal::Report,
    /// How many segments there are.
    pub segments: usize,
    /// How many files of NoPayloadDB's interface there are, each with other bytes.
    pub stored_files: usize,
    /// What is damaged: in the journal, in which segment, or which stored file.
    pub damaged: Vec<String>,
}

/// A directory that is none of this service's data, can't be read, or can't be made.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct BadDirectory {
    path: PathBuf,
    why: String,
}

impl BadDirectory {
    pub(super) fn new(path: &Path, why: impl Into<String>) -> Self {
        Self { path: path.to_owned(), why: why.into() }
    }
}

/// Reads all of a data directory, which a server may have open.
///
/// # Errors
/// When it is none, or a file can't be read. Damage is no error; what is found names it.
pub fn check(data: &Path) -> Result<Checked, BadDirectory> {
    check_format(data)?;
    check_in(data).map_err(|why| BadDirectory::new(data, format!("it can't be read: {why:#}")))
}

/// Refuses what is no data directory of this service and version.
///
/// # Errors
/// Then.
pub(super) fn check_format(data: &Path) -> Result<(), BadDirectory> {
    let refused = |why: String| BadDirectory::new(data, why);
    let text = base::read_text(&data.join("FORMAT"), MAX_FORMAT_BYTES).map_err(|why| {
        refused(format!(
            "it is no data directory, or a backup that did not come to its end ({why:#})"
        ))
    })?;
    let meant = format!("{NAME} {DATA_VERSION}");
    let found = text.trim();
    let has_journal = folders(data)[0].is_dir();
    match found == meant {
        true if has_journal => Ok(()),
        true => Err(refused(
            "it has copies of what several servers share: `loadline conditions check --metadata … \
             --segments …` reads that"
                .to_owned(),
        )),
        false => Err(refused(format!("it holds {found:?}, and this program reads {meant:?}"))),
    }
}

/// As [`check`], whatever FORMAT says.
pub(super) fn check_in(data: &Path) -> anyhow::Result<Checked> {
    for _ in 1..TRIES {
        let before = snapshot(data);
        let checked = check_once(data);
        let is_whole = checked.as_ref().is_ok_and(|checked| checked.damaged.is_empty());
        // A server may have put another snapshot in its place, and removed what that replaces.
        if is_whole || before == snapshot(data) {
            return checked;
        }
    }
    check_once(data)
}

/// The number of the snapshot that counts now.
pub(super) fn snapshot(data: &Path) -> Option<u64> {
    let [journal, _] = folders(data);
    journal::check(&Directory::new(journal)).ok()?.snapshot
}

fn check_once(data: &Path) -> anyhow::Result<Checked> {
    let [journal, segments] = folders(data);
    let segments = Segments::to_be_checked(segments);
    let mut reading = Reading::new(&segments);
    let (mut damaged, mut stored) = (Vec::new(), BTreeMap::new());
    let report = journal::read(&Directory::new(journal), |entry| {
        match entry {
            journal::Entry::Snapshot(_) => reading.apply(entry)?,
            // Whether records behind a snapshot can be applied is for a start to say.
            journal::Entry::Record(_, bytes) => {
                if let Change::Nopayload(nopayload::Change::PutFile { key, sha256, size }) =
                    Entry::decode(bytes)?.change
                {
                    stored.insert(sha256, (key, size));
                }
            }
        }
        Ok(())
    })?;
    damaged.extend(report.damaged.iter().map(ToString::to_string));
    let mut count = 0;
    match reading.finish() {
        Ok(state) => {
            count = state.segments().len();
            let known = state.nopayload().files();
            stored.extend(known.map(|(key, file)| (file.sha256, (key.to_owned(), file.size))));
            damaged.extend(state.damages(true).iter().map(ToString::to_string));
        }
        Err(why) if damaged.is_empty() => damaged.push(format!("the snapshot: {why}")),
        // Which follows from what is damaged in the journal.
        Err(_) => {}
    }
    damaged.extend(stored.iter().filter_map(|(sha256, (key, size))| {
        let why = storage::check(data, *sha256, *size).err()?;
        Some(format!("key {key:?} of NoPayloadDB's files: {why}"))
    }));
    Ok(Checked { journal: report, segments: count, stored_files: stored.len(), damaged })
}
