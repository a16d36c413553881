//! The files of segments. Control plane.
//!
//! A file is written under the name that it keeps, and made durable. It counts once a snapshot
//! names it; those that none names are removed. Where the directory only has copies of what is kept
//! elsewhere, whoever keeps it says which.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use journal::{Disk, write_all};
use tokio::sync::oneshot;

use super::map::{Reads, map};
use crate::model::{Loader, Source, State, segment_id, segment_name};

/// How the bytes of a file are had.
type Map = fn(&dyn Disk, &str) -> io::Result<Bytes>;

/// Payloads that were fetched, which stay here as long as they are held.
pub(super) type Pins = Vec<Arc<Bytes>>;

/// Where segments are kept, where the directory only has copies of them.
pub(super) trait Origin: Send + Sync {
    /// Keeps a segment, for ever under its number, and a copy of it.
    fn put(&self, id: u64, bytes: &[u8]) -> io::Result<()>;

    /// Refuses segments of which there may not even be copies of their indexes.
    fn check_room(&self) -> io::Result<()>;

    /// Brings at least the indexes of those that the directory lacks, each with its size and
    /// checksum. One that is damaged there is left out.
    #[cfg(feature = "tier")]
    fn bring(&self, wanted: &[(u64, u64, u32)]) -> io::Result<()>;

    /// A segment that was kept or brought.
    fn open(&self, id: u64) -> io::Result<Source>;

    /// Fetches the payload of a segment, and waits for it. `NotFound` where it was swept.
    fn fetch(&self, id: u64) -> io::Result<Pins>;

    /// The same, on a thread of its own.
    fn fetch_beside(self: Arc<Self>, id: u64) -> oneshot::Receiver<io::Result<Pins>>;

    /// Removes the copies of all segments that are not among these.
    fn sweep(&self, named: &BTreeSet<u64>) -> io::Result<()>;
}

/// The directory of segments.
#[derive(Clone)]
pub(super) struct Segments {
    disk: Arc<dyn Disk>,
    map: Map,
    origin: Option<Arc<dyn Origin>>,
}

/// A call of the system that failed.
#[derive(Debug, thiserror::Error)]
#[error("{}: {doing}: {why}", path.display())]
pub(super) struct SegmentError {
    path: std::path::PathBuf,
    doing: &'static str,
    why: io::Error,
}

impl Segments {
    /// Those of a directory of the file system.
    pub(super) fn of(folder: impl Into<std::path::PathBuf>) -> Self {
        let map: Map = |disk, name| map(&disk.path(name), Reads::Some);
        Self { disk: Arc::new(journal::Directory::new(folder)), map, origin: None }
    }

    /// The same, to read all of each.
    pub(super) fn to_be_checked(folder: impl Into<std::path::PathBuf>) -> Self {
        let map: Map = |disk, name| map(&disk.path(name), Reads::All);
        Self { map, ..Self::of(folder) }
    }

    /// Copies, in a directory of the file system, of what is kept elsewhere.
    #[cfg(feature = "tier")]
    pub(super) fn of_origin(folder: &std::path::Path, origin: Arc<dyn Origin>) -> Self {
        Self { origin: Some(origin), ..Self::of(folder) }
    }

    /// Those of a directory whose files are read whole.
    #[cfg(test)]
    pub(super) fn in_memory(disk: Arc<dyn Disk>) -> Self {
        let map = |disk: &dyn Disk, name: &str| {
            let file = disk.open(name)?;
            let mut bytes = vec![0; file.size()? as usize];
            let read = journal::read_full(&*file, &mut bytes, 0)?;
            bytes.truncate(read);
            Ok(Bytes::from(bytes))
        };
        Self { disk, map, origin: None }
    }

    fn failed(
        &self,
        id: Option<u64>,
        doing: &'static str,
    ) -> impl FnOnce(io::Error) -> SegmentError {
        let path = self.disk.path(&id.map(segment_name).unwrap_or_default());
        move |why| SegmentError { path, doing, why }
    }

    /// Brings the segments of a snapshot that are not here yet.
    #[cfg(feature = "tier")]
    pub(super) fn bring(&self, loader: &Loader) -> io::Result<()> {
        let Some(origin) = &self.origin else { return Ok(()) };
        origin.bring(&loader.segments().collect::<Vec<_>>())
    }

    /// The state of a snapshot.
    pub(super) fn load(&self, loader: Loader) -> Result<State, crate::model::BadSnapshot> {
        loader.finish(&mut |id, _| {
            self.open(id).map_err(|why| match why.kind() {
                io::ErrorKind::NotFound => "it is missing; restore all files from a backup".into(),
                _ => format!("it can't be opened: {why}; start again once it can be"),
            })
        })
    }

    fn open(&self, id: u64) -> io::Result<Source> {
        match &self.origin {
            Some(origin) => origin.open(id),
            None => (self.map)(&*self.disk, &segment_name(id)).map(Source::Whole),
        }
    }

    /// Fetches the payload of a segment that is elsewhere, and waits for it.
    pub(super) fn fetch(&self, id: u64) -> Result<Pins, SegmentError> {
        let fetched = self.origin.as_ref().map_or(Ok(Pins::new()), |origin| origin.fetch(id));
        fetched.map_err(self.failed(Some(id), "it is fetched"))
    }

    /// The same, on a thread of its own; `None` where no segment is elsewhere.
    pub(super) fn fetch_beside(&self, id: u64) -> Option<oneshot::Receiver<io::Result<Pins>>> {
        self.origin.clone().map(|origin| origin.fetch_beside(id))
    }

    /// Writes a segment, makes it durable but for its name, and returns its bytes as they are on
    /// the disk.
    pub(super) fn store(&self, id: u64, bytes: &[u8]) -> Result<Source, SegmentError> {
        let name = segment_name(id);
        if let Some(origin) = &self.origin {
            origin.put(id, bytes).map_err(self.failed(Some(id), "it is kept"))?;
            return self.open(id).map_err(self.failed(Some(id), "it is opened"));
        }
        let mut file = self.disk.create(&name).map_err(self.failed(Some(id), "it is made"))?;
        write_all(&mut *file, bytes, 0).map_err(self.failed(Some(id), "it is written"))?;
        file.sync().map_err(self.failed(Some(id), "it is made durable"))?;
        self.open(id).map_err(self.failed(Some(id), "it is opened"))
    }

    /// Refuses more segments than there may be here.
    pub(super) fn check_room(&self) -> Result<(), SegmentError> {
        let checked = self.origin.as_ref().map_or(Ok(()), |origin| origin.check_room());
        checked.map_err(self.failed(None, "its size is checked"))
    }

    /// Makes the names of all files durable.
    pub(super) fn sync(&self) -> Result<(), SegmentError> {
        self.disk.sync().map_err(self.failed(None, "its names are made durable"))
    }

    /// Removes the segments that are not among these, and no other file.
    pub(super) fn sweep(&self, named: &BTreeSet<u64>) -> Result<(), SegmentError> {
        if let Some(origin) = &self.origin {
            return origin.sweep(named).map_err(self.failed(None, "copies are removed"));
        }
        for name in self.disk.list().map_err(self.failed(None, "it is listed"))? {
            if let Some(id) = segment_id(&name).filter(|id| !named.contains(id)) {
                self.disk.remove(&name).map_err(self.failed(Some(id), "it is removed"))?;
            }
        }
        Ok(())
    }
}
