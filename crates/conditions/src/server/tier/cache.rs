//! The segments of an object store, with copies of them in a directory. Control plane.
//!
//! Of every segment the index is there, as a file of its own, which answers what has no payload and
//! says which payload is needed. Whole segments are there as far as there is room: those that were
//! read least recently are evicted while nothing reads them, and fetched again where they are
//! needed. A copy is written under another name, checked to its last byte, and only then has its
//! own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::bucket::{Bucket, Part};
use crate::model::{
    Lent, Segment, Source, index_end, index_id, index_name, segment_id, segment_name,
};
use crate::server::map::{Reads, map};
use crate::server::segments::{Origin, Pins};

/// Where the objects are.
const FOLDER: &str = "segments";

/// The most segments that are fetched for one that misses one: those that others miss, too.
const TOGETHER: usize = 64;

/// A segment by its number, with its size and checksum.
type Wanted = (u64, u64, u32);

/// Segments that are kept in an object store.
pub(super) struct Kept {
    pub(super) bucket: Arc<Bucket>,
    /// Where the copies are.
    folder: PathBuf,
    /// The most bytes of them.
    most_bytes: u64,
    /// Counts payloads that came so far, by two.
    now: Arc<AtomicU64>,
    copies: Mutex<Copies>,
    /// Told when some were fetched, or could not be.
    fetched: Condvar,
}

#[derive(Default)]
struct Copies {
    by_id: BTreeMap<u64, Copy>,
    /// Bytes of all files, with those that are being fetched.
    bytes: u64,
    fetching: BTreeSet<u64>,
}

impl Copies {
    fn give_back(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// A segment of which the index is here.
struct Copy {
    size: u64,
    checksum: u32,
    index_bytes: u64,
    payload: Arc<Lent>,
}

/// The name of a segment's object.
pub(super) fn object(id: u64) -> String {
    format!("{FOLDER}/{}", segment_name(id))
}

fn missing(id: u64) -> io::Error {
    let why = format!("{} is missing or damaged in the object store", segment_name(id));
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Whether these are the bytes of a segment, or of its index.
fn is_right((id, size, checksum): Wanted, source: impl Into<Source>) -> bool {
    let segment = Segment::open(id, source).ok();
    segment.is_some_and(|segment| (segment.checksum(), segment.size()) == (checksum, size))
}

/// An index whose payload is not read.
fn alone(index: Bytes) -> Source {
    Source::Index(index, Arc::new(Lent::new(Arc::default())))
}

/// Where the index of a segment ends.
fn end_of(bytes: &[u8]) -> usize {
    let end = index_end(bytes).and_then(|end| usize::try_from(end).ok());
    end.unwrap_or(0).min(bytes.len())
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
        let (folder, now, copies) = (folder.to_owned(), Arc::default(), Mutex::default());
        Ok(Self { bucket, folder, most_bytes, now, copies, fetched: Condvar::new() })
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

    fn lock(&self) -> MutexGuard<'_, Copies> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, id: u64) -> PathBuf {
        self.folder.join(segment_name(id))
    }

    fn index_file(&self, id: u64) -> PathBuf {
        self.folder.join(index_name(id))
    }

    /// Takes note of a segment of which the index, checked, is here from now on.
    fn note(&self, (id, size, checksum): Wanted, index: &[u8]) -> io::Result<()> {
        base::replace_file(&self.index_file(id), |file| file.write_all(index))?;
        self.known((id, size, checksum), index.len() as u64);
        Ok(())
    }

    fn known(&self, (id, size, checksum): Wanted, index_bytes: u64) {
        let mut copies = self.lock();
        let payload = Arc::new(Lent::new(Arc::clone(&self.now)));
        copies.by_id.insert(id, Copy { size, checksum, index_bytes, payload });
        copies.bytes += index_bytes;
    }

    /// Looks for what is here of a segment since an earlier start.
    fn find(&self, wanted: Wanted) -> io::Result<bool> {
        let (id, size, _) = wanted;
        let here = |file: PathBuf| map(&file, Reads::Some).ok();
        let whole = here(self.file(id)).filter(|bytes| is_right(wanted, bytes.clone()));
        let index =
            here(self.index_file(id)).filter(|bytes| is_right(wanted, alone(bytes.clone())));
        match (index, &whole) {
            (Some(index), _) => self.known(wanted, index.len() as u64),
            (None, Some(whole)) => self.note(wanted, &whole[..end_of(whole)])?,
            (None, None) => return Ok(false),
        }
        let Some(whole) = whole else { return Ok(true) };
        let reserved = self.reserve(&mut self.lock(), size);
        match reserved {
            Ok(()) => self.lend(id, whole),
            Err(_) => fs::remove_file(self.file(id))?,
        }
        Ok(true)
    }

    /// Lends the payload of a segment whose file is here.
    fn lend(&self, id: u64, mut whole: Bytes) {
        let payload = whole.split_off(end_of(&whole));
        if let Some(copy) = self.lock().by_id.get(&id) {
            copy.payload.bring(payload);
        }
    }

    /// Writes a copy whose room is reserved.
    fn write(&self, id: u64, bytes: &[u8]) -> io::Result<()> {
        base::replace_file(&self.file(id), |file| file.write_all(bytes))?;
        self.lend(id, map(&self.file(id), Reads::Some)?);
        Ok(())
    }

    /// Reserves room for a copy: evicts what was read least recently, and is neither being read nor
    /// just fetched.
    fn reserve(&self, copies: &mut Copies, bytes: u64) -> io::Result<()> {
        let most = self.most_bytes;
        if copies.bytes + bytes > most {
            let here = copies.by_id.iter().filter(|(id, copy)| {
                copy.payload.here().is_some() && !copies.fetching.contains(id)
            });
            let mut here: Vec<_> =
                here.map(|(id, copy)| (copy.payload.last_read(), *id, copy.size)).collect();
            here.sort_unstable();
            for (_, id, size) in here {
                if copies.bytes + bytes <= most {
                    break;
                }
                if copies.by_id[&id].payload.take() {
                    match fs::remove_file(self.file(id)) {
                        // Another hand may have removed it.
                        Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
                        _ => copies.give_back(size),
                    }
                }
            }
        }
        if copies.bytes + bytes > most {
            let why = format!(
                "{bytes} bytes have no room beside what is being read: --cache-size lets {most} be \
                 copied here"
            );
            return Err(io::Error::other(why));
        }
        copies.bytes += bytes;
        Ok(())
    }

    /// What the object store has, if that is right to the last byte.
    fn checked(wanted: Wanted, bytes: Option<Bytes>) -> io::Result<Bytes> {
        let is_whole = |bytes: &Bytes| {
            let segment = Segment::open(wanted.0, bytes.clone());
            segment.is_ok_and(|segment| segment.check().is_empty())
        };
        let bytes = bytes.filter(|bytes| is_right(wanted, bytes.clone()) && is_whole(bytes));
        bytes.ok_or_else(|| missing(wanted.0))
    }

    /// Keeps a segment with its payload where that has room, which is fetched later where it has
    /// none.
    fn keep(&self, wanted: Wanted, bytes: &[u8]) -> io::Result<()> {
        self.note(wanted, &bytes[..end_of(bytes)])?;
        let reserved = self.reserve(&mut self.lock(), wanted.1);
        if reserved.is_err() {
            return Ok(());
        }
        let written = self.write(wanted.0, bytes);
        if written.is_err() {
            self.lock().give_back(wanted.1);
        }
        written
    }

    /// Begins to fetch a segment, with others that are missed.
    fn begin(&self, id: u64) -> io::Result<Begun<'_>> {
        let mut copies = self.lock();
        loop {
            let Some(copy) = copies.by_id.get(&id) else {
                let why = "no snapshot that is served names it any more";
                return Err(io::Error::new(io::ErrorKind::NotFound, why));
            };
            if let Some(payload) = copy.payload.get() {
                return Ok(Begun::Here(payload));
            }
            if !copies.fetching.contains(&id) {
                break;
            }
            copies = self.fetched.wait(copies).unwrap_or_else(PoisonError::into_inner);
        }
        let others = copies.by_id.iter().filter(|(other, copy)| {
            **other != id && copy.payload.is_wanted() && copy.payload.here().is_none()
        });
        let others = others.map(|(other, _)| *other).filter(|one| !copies.fetching.contains(one));
        let others: Vec<_> = others.take(TOGETHER - 1).collect();
        let mut wanted = Vec::new();
        for one in std::iter::once(id).chain(others) {
            let Copy { size, checksum, .. } = copies.by_id[&one];
            match self.reserve(&mut copies, size) {
                Ok(()) => wanted.push((one, size, checksum)),
                Err(why) if one == id => return Err(why),
                Err(_) => break,
            }
        }
        copies.fetching.extend(wanted.iter().map(|(one, ..)| *one));
        Ok(Begun::Fetching(Fetching { kept: self, wanted }))
    }
}

/// What is done where the payload of a segment is missed.
enum Begun<'a> {
    /// It is here by now.
    Here(Arc<Bytes>),
    Fetching(Fetching<'a>),
}

/// Segments that are being fetched, with room for each. Whoever waits for one of them goes on when
/// this is dropped, and finds out whether it came.
struct Fetching<'a> {
    kept: &'a Kept,
    wanted: Vec<Wanted>,
}

impl Fetching<'_> {
    /// Those that came: they stay here as long as they are held.
    fn pins(&self) -> Pins {
        let copies = self.kept.lock();
        let here = |(id, ..): &Wanted| copies.by_id.get(id)?.payload.get();
        self.wanted.iter().filter_map(here).collect()
    }

    fn has(&self, id: u64) -> bool {
        self.kept.lock().by_id.get(&id).is_some_and(|copy| copy.payload.here().is_some())
    }
}

impl Drop for Fetching<'_> {
    fn drop(&mut self) {
        let mut copies = self.kept.lock();
        for (id, size, _) in &self.wanted {
            copies.fetching.remove(id);
            let payload = copies.by_id.get(id).map(|copy| Arc::clone(&copy.payload));
            if payload.as_ref().is_none_or(|payload| payload.here().is_none()) {
                copies.give_back(*size);
            }
            // Whoever misses it still finds out why.
            payload.inspect(|payload| payload.give_up());
        }
        self.kept.fetched.notify_all();
    }
}

impl Origin for Kept {
    fn put(&self, id: u64, bytes: &[u8]) -> io::Result<()> {
        let all = Bytes::copy_from_slice(bytes);
        let segment = Segment::open(id, all.clone()).map_err(io::Error::other)?;
        self.bucket.put(&object(id), all)?;
        self.keep((id, segment.size(), segment.checksum()), bytes)
    }

    fn check_room(&self) -> io::Result<()> {
        let bytes: u64 = self.lock().by_id.values().map(|copy| copy.index_bytes).sum();
        let most = self.most_bytes;
        if bytes <= most {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "there are {bytes} bytes of indexes of segments, and --cache-size lets {most} be \
             copied here: start this server with more"
        )))
    }

    fn bring(&self, wanted: &[Wanted]) -> io::Result<()> {
        // A part may be named twice.
        let wanted: BTreeMap<u64, _> = wanted.iter().map(|one| (one.0, *one)).collect();
        let mut lacking = Vec::new();
        for one in wanted.into_values() {
            let is_known = self.lock().by_id.contains_key(&one.0);
            if !is_known && !self.find(one)? {
                lacking.push(one);
            }
        }
        if !lacking.is_empty() {
            tracing::info!(segments = lacking.len(), "fetching from the object store");
        }
        // Whole, as long as there is room for all of them beside their indexes.
        let mut bytes = self.lock().bytes;
        let whole = lacking.iter().take_while(|(_, size, _)| {
            bytes = bytes.saturating_add(size.saturating_mul(2));
            bytes <= self.most_bytes
        });
        let indexes = lacking.split_off(whole.count());
        let named = |one: Wanted| (one, object(one.0), one.1);
        let whole = lacking.into_iter().map(named);
        self.bucket.get_each(whole, Part::Whole, |one, bytes| {
            left_out(Self::checked(one, bytes).and_then(|bytes| self.keep(one, &bytes)))
        })?;
        self.bucket.get_each(indexes.into_iter().map(named), Part::Index, |one, bytes| {
            let index = bytes.filter(|bytes| is_right(one, alone(bytes.clone())));
            left_out(index.ok_or_else(|| missing(one.0)).and_then(|bytes| self.note(one, &bytes)))
        })?;
        // Indexes came beside what was here.
        let has_room = self.reserve(&mut self.lock(), 0).is_ok();
        if has_room { Ok(()) } else { self.check_room() }
    }

    fn open(&self, id: u64) -> io::Result<Source> {
        let payload = self.lock().by_id.get(&id).map(|copy| Arc::clone(&copy.payload));
        let payload = payload.ok_or(io::ErrorKind::NotFound)?;
        Ok(Source::Index(map(&self.index_file(id), Reads::Some)?, payload))
    }

    fn fetch(&self, id: u64) -> io::Result<Pins> {
        let fetching = match self.begin(id)? {
            Begun::Here(payload) => return Ok(vec![payload]),
            Begun::Fetching(fetching) => fetching,
        };
        let mut failed = None;
        let wanted = fetching.wanted.iter().map(|one| (*one, object(one.0), one.1));
        let fetched = self.bucket.get_each(wanted, Part::Whole, |one, bytes| {
            let bytes = Self::checked(one, bytes);
            let copied = bytes.and_then(|bytes| self.write(one.0, &bytes));
            if let Err(why) = copied {
                tracing::error!("{}: {why}", segment_name(one.0));
                failed = failed.take().or((one.0 == id).then_some(why));
            }
            Ok(())
        });
        match failed.map_or(fetched, Err) {
            // The object store may have failed at another one.
            Err(why) if !fetching.has(id) => Err(why),
            _ => Ok(fetching.pins()),
        }
    }

    fn fetch_beside(self: Arc<Self>, id: u64) -> oneshot::Receiver<io::Result<Pins>> {
        let (sender, receiver) = oneshot::channel();
        let bucket = Arc::clone(&self.bucket);
        bucket.beside(move || {
            // Where whoever asked has gone away it is here for others.
            drop(sender.send(self.fetch(id)));
        });
        receiver
    }

    fn sweep(&self, named: &BTreeSet<u64>) -> io::Result<()> {
        let mut copies = self.lock();
        let gone: Vec<_> = copies.by_id.keys().copied().filter(|id| !named.contains(id)).collect();
        for id in gone {
            let Some(copy) = copies.by_id.remove(&id) else { continue };
            // Whoever fetches it gives that back.
            let is_here = copy.payload.here().is_some() && !copies.fetching.contains(&id);
            copies.give_back(copy.index_bytes + if is_here { copy.size } else { 0 });
        }
        for file in fs::read_dir(&self.folder)? {
            let name = file?.file_name().to_string_lossy().into_owned();
            let id = segment_id(&name).or_else(|| index_id(&name));
            if id.is_some_and(|id| !named.contains(&id)) {
                fs::remove_file(self.folder.join(name))?;
            }
        }
        Ok(())
    }
}

/// What the object store lacks is left out: what needs it is refused.
fn left_out(copied: io::Result<()>) -> io::Result<()> {
    match copied {
        Err(why) if why.kind() == io::ErrorKind::InvalidData => {
            tracing::error!("{why}");
            Ok(())
        }
        copied => copied,
    }
}

#[cfg(test)]
mod tests;
