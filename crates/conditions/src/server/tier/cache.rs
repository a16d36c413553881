//! The segments of an object store, with copies of them in a directory. Control plane.
//!
//! A copy is written under another name, checked to its last byte, and only then has its own.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::bucket::Bucket;
use crate::model::{Segment, segment_id, segment_name};
use crate::server::map::{Reads, map};
use crate::server::segments::Origin;

/// Where the objects are.
const FOLDER: &str = "segments";

/// Segments that are kept in an object store.
pub(super) struct Kept {
    pub(super) bucket: Arc<Bucket>,
    /// Where the copies are.
    folder: PathBuf,
    /// The most bytes of them.
    most_bytes: u64,
}

/// The name of a segment's object.
pub(super) fn object(id: u64) -> String {
    format!("{FOLDER}/{}", segment_name(id))
}

impl Kept {
    /// Makes the directory, and removes what a crash has left of copies.
    pub(super) fn open(bucket: Arc<Bucket>, folder: &Path, most_bytes: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        for file in fs::read_dir(folder)? {
            let file = file?;
            if file.file_name().to_string_lossy().ends_with(base::NEW) {
                fs::remove_file(file.path())?;
            }
        }
        Ok(Self { bucket, folder: folder.to_owned(), most_bytes })
    }

    /// The numbers of all segments that are kept.
    pub(super) fn list(&self) -> io::Result<Vec<u64>> {
        let names = self.bucket.list(FOLDER)?;
        Ok(names.iter().filter_map(|name| segment_id(name)).collect())
    }

    /// Removes segments.
    pub(super) fn remove(&self, ids: impl IntoIterator<Item = u64>) -> io::Result<()> {
        self.bucket.remove(&ids.into_iter().map(object).collect::<Vec<_>>())
    }

    fn has(&self, (id, size, checksum): (u64, u64, u32)) -> bool {
        let bytes = map(&self.folder.join(segment_name(id)), Reads::Some);
        let bytes = bytes.ok().filter(|bytes| bytes.len() as u64 == size);
        let segment = bytes.and_then(|bytes| Segment::open(id, bytes).ok());
        segment.is_some_and(|segment| segment.checksum() == checksum)
    }

    fn copy(&self, (id, size, checksum): (u64, u64, u32), bytes: Option<Bytes>) -> io::Result<()> {
        let segment = bytes.clone().filter(|bytes| bytes.len() as u64 == size);
        let segment = segment.and_then(|bytes| Segment::open(id, bytes).ok());
        let is_right =
            |segment: &Segment| segment.checksum() == checksum && segment.check().is_empty();
        let name = segment_name(id);
        let (Some(bytes), true) = (bytes, segment.is_some_and(|segment| is_right(&segment))) else {
            tracing::error!("{name} is missing or damaged in the object store");
            return Ok(());
        };
        base::replace_file(&self.folder.join(name), |file| file.write_all(&bytes))
    }
}

impl Origin for Kept {
    fn put(&self, id: u64, bytes: &[u8]) -> io::Result<()> {
        self.bucket.put(&object(id), Bytes::copy_from_slice(bytes))
    }

    fn check_room(&self, bytes: u64) -> io::Result<()> {
        let most = self.most_bytes;
        if bytes <= most {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "there are {bytes} bytes of segments, and --cache-size lets {most} be copied here: \
             start this server with more"
        )))
    }

    fn bring(&self, wanted: &[(u64, u64, u32)]) -> io::Result<()> {
        // A part may be named twice.
        let wanted: BTreeMap<u64, _> = wanted.iter().map(|one| (one.0, *one)).collect();
        self.check_room(wanted.values().map(|(_, bytes, _)| bytes).sum())?;
        let lacking: Vec<_> = wanted.into_values().filter(|one| !self.has(*one)).collect();
        if !lacking.is_empty() {
            tracing::info!(segments = lacking.len(), "fetching from the object store");
        }
        let lacking = lacking.into_iter().map(|one| (one, object(one.0), one.1));
        self.bucket.get_each(lacking, |one, bytes| self.copy(one, bytes))
    }
}
