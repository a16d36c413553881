//! Reads all that servers share, and changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::bucket::{Bucket, Part, file};
use super::cache::object;
use super::metadata::{self, MetadataError, Shared, Stored};
use super::{STORE, bucket_of, metadata_of};
use crate::model::{Entry, Loader, Named, Revision, State, segment_id};
use crate::server::tier_args::TierSettings;

/// How often it is begun anew because a seal replaces what is read.
const TRIES: usize = 5;

/// What servers share.
#[derive(Debug, Default)]
pub struct CheckedShared {
    /// The last revision.
    pub revision: Revision,
    /// Through which one segments stand for all changes.
    pub sealed: Revision,
    /// How many groups of changes there are.
    pub groups: usize,
    /// How many segments are named, with their bytes.
    pub segments: usize,
    /// Their bytes together.
    pub bytes: u64,
    /// How many stored files there are.
    pub files: usize,
    /// How many segments are there that nothing names: the next seal removes them.
    pub unnamed: usize,
    /// What is damaged.
    pub damaged: Vec<String>,
}

/// Reads every group, segment and stored file. `progress` gets the bytes of segments, those that
/// were read and all.
///
/// # Errors
/// When PostgreSQL or the object store can't be read, or are not of each other. Damage is no error.
pub fn check_shared(
    settings: &TierSettings,
    progress: &mut dyn FnMut(u64, u64),
) -> anyhow::Result<CheckedShared> {
    let (metadata, bucket) = (metadata_of(settings)?, bucket_of(settings)?);
    for _ in 1..TRIES {
        let mut client = metadata.connect()?;
        let checked = check_once(&mut client, &bucket, progress)?;
        // Segments are removed once another snapshot counts.
        if checked.damaged.is_empty() || metadata::head(&mut client)?.base == checked.sealed {
            return Ok(checked);
        }
    }
    check_once(&mut metadata.connect()?, &bucket, progress)
}

fn check_once(
    client: &mut postgres::Client,
    bucket: &Bucket,
    progress: &mut dyn FnMut(u64, u64),
) -> anyhow::Result<CheckedShared> {
    let mut found = Found::default();
    let Shared { store, head } = metadata::read_all(client, &mut |part| found.take(part))?;
    let Found { loader, entries, groups, known, mut damaged } = found;
    let mut name = Vec::new();
    match bucket.get(STORE, &mut name) {
        Ok(()) if name == store.as_bytes() => {}
        Ok(()) => anyhow::bail!("--segments holds the segments of another store than --metadata"),
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            damaged.push(format!("{STORE} is missing in the object store"));
        }
        Err(why) => return Err(why.into()),
    }
    let (last, sealed) = (head.last, head.base);
    if known.is_some_and(|known| known != last) || known.is_none() && sealed < last {
        damaged.push(format!("groups before revision {last}, the last one, are missing"));
    }
    let named = loader.named().unwrap_or_else(|why| {
        damaged.push(format!("the snapshot: {why}"));
        Vec::new()
    });
    let named: BTreeMap<u64, Named> = named.into_iter().map(|one| (one.id, one)).collect();
    let bytes = named.values().map(|one| one.bytes).sum();
    let mut checked = CheckedShared { revision: last, sealed, groups, bytes, ..Default::default() };
    checked.segments = named.len();
    let mut read = 0;
    let wanted = named.values().map(|one| (one, object(one.id), one.bytes));
    bucket.get_each(wanted, Part::Whole, |one, content| {
        read += one.bytes;
        progress(read, bytes);
        match content {
            Some(content) => damaged.extend(one.damages(content).iter().map(ToString::to_string)),
            None => damaged.push(format!("{} is missing, or of another size", object(one.id))),
        }
        Ok(())
    })?;
    let there: BTreeSet<u64> =
        bucket.list("segments")?.iter().filter_map(|name| segment_id(name)).collect();
    checked.unnamed = there.iter().filter(|id| !named.contains_key(id)).count();
    match state(loader, sealed, entries) {
        Ok(state) => checked.files = check_files(&state, bucket, &mut damaged)?,
        Err(why) => damaged.push(why),
    }
    checked.damaged = damaged;
    Ok(checked)
}

/// What was read of PostgreSQL.
#[derive(Default)]
struct Found {
    loader: Loader,
    /// Changes behind the snapshot.
    entries: Vec<Entry>,
    groups: usize,
    /// The last revision of the last group.
    known: Option<Revision>,
    damaged: Vec<String>,
}

impl Found {
    fn take(&mut self, part: Stored<'_>) {
        let taken = match part {
            Stored::Record(bytes) => self.loader.apply(bytes).map_err(MetadataError::from),
            Stored::Group { first, last, base, body } => {
                self.groups += 1;
                if self.known.replace(last).is_some_and(|known| known + 1 != first) {
                    self.damaged.push(format!("groups before revision {first} are missing"));
                }
                metadata::entries(first, body).map(|entries| {
                    if last > base {
                        self.entries.extend(entries);
                    }
                })
            }
        };
        self.damaged.extend(taken.err().map(|why| why.to_string()));
    }
}

/// The state, without what is in segments.
fn state(loader: Loader, sealed: Revision, entries: Vec<Entry>) -> Result<State, String> {
    let mut state = match sealed {
        0 => State::default(),
        _ => {
            let loaded =
                loader.finish(&mut |_, _| Err::<Bytes, _>("it is not needed here".to_owned()));
            loaded.map_err(|why| format!("the snapshot: {why}"))?
        }
    };
    let applied = entries.into_iter().try_for_each(|entry| state.replay(entry));
    applied.map_err(|why| format!("the groups of changes: {why}"))?;
    Ok(state)
}

/// Reads all stored files, and returns how many there are.
fn check_files(state: &State, bucket: &Bucket, damaged: &mut Vec<String>) -> anyhow::Result<usize> {
    // Several keys may lead to the same bytes.
    let files: BTreeMap<_, _> =
        state.nopayload().files().map(|(key, file)| (file.sha256, (key, file.size))).collect();
    for (sha256, (key, size)) in &files {
        let mut content = Digested::default();
        match bucket.get(&file(sha256), &mut content) {
            Ok(()) if content.bytes == *size && content.hash.finalize()[..] == sha256[..] => {}
            Ok(()) => damaged.push(format!("the file of key {key:?} has other bytes")),
            Err(why) if why.kind() == io::ErrorKind::NotFound => {
                damaged.push(format!("the file of key {key:?} is missing"));
            }
            Err(why) => return Err(why.into()),
        }
    }
    Ok(files.len())
}

/// The digest of what is written.
#[derive(Default)]
struct Digested {
    hash: Sha256,
    bytes: u64,
}

impl Write for Digested {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
