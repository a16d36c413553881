//! The faulty twin of a directory, in memory, for tests: power is lost before any call, writes are
//! short, the disk is full, fsync fails. After a loss of power it holds what was made durable and,
//! by a seed, some of what was not.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, DiskFile};

/// A directory in memory. Clones are the same directory.
#[derive(Clone, Debug, Default)]
pub struct FaultyDisk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    files: Vec<Content>,
    names: BTreeMap<String, usize>,
    /// The names as they are on the disk, and what has become of them since, in order.
    durable_names: BTreeMap<String, usize>,
    renamed: Vec<Change>,
    calls: u64,
    power_until: Option<u64>,
    failing_sync: Option<u64>,
    syncs: u64,
    room_bytes: Option<u64>,
    short_writes: Option<Random>,
    refused: Option<&'static str>,
}

#[derive(Clone, Debug)]
enum Change {
    Set(String, usize),
    Remove(String),
}

/// A file as it is read, and as it is on the disk with what was written since.
#[derive(Clone, Debug, Default)]
struct Content {
    seen: Vec<u8>,
    durable: Vec<u8>,
    written: Vec<Write>,
}

#[derive(Clone, Debug)]
enum Write {
    Bytes(usize, Vec<u8>),
    Size(usize),
}

/// SplitMix64.
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ x >> 31) % (limit.max(1) as u64)) as usize
    }
}

impl FaultyDisk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many calls were made.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Loses power after this many more calls: all after them fail.
    pub fn lose_power_after(&self, calls: u64) {
        let mut state = self.state();
        state.power_until = Some(state.calls + calls);
    }

    /// Lets one call of fsync fail, after this many more that don't. Bytes that were written before
    /// it are read, but never get to the disk, as under Linux; names get there with a later call.
    pub fn fail_sync_after(&self, syncs: u64) {
        let mut state = self.state();
        state.failing_sync = Some(state.syncs + syncs);
    }

    /// Leaves room for this many bytes, or no limit.
    pub fn set_room(&self, bytes: Option<u64>) {
        self.state().room_bytes = bytes;
    }

    /// From now on every `create` or `remove` fails, as this says, or none.
    pub fn refuse(&self, call: Option<&'static str>) {
        self.state().refused = call;
    }

    /// From now on, writes take only some of the bytes.
    pub fn shorten_writes(&self, seed: u64) {
        self.state().short_writes = Some(Random(seed));
    }

    /// The directory after a loss of power: each file has what was made durable, and any of the
    /// later writes, whole, torn or not at all; any of the later changes of names were made.
    pub fn after_power_loss(&self, seed: u64) -> Self {
        let mut random = Random(seed);
        let state = self.state();
        let mut names = state.durable_names.clone();
        for change in state.renamed.iter().filter(|_| random.below(2) == 0) {
            change.apply(&mut names);
        }
        let files = state.files.iter().map(|file| file.after_power_loss(&mut random)).collect();
        let durable_names = names.clone();
        Self(Arc::new(Mutex::new(State { files, names, durable_names, ..State::default() })))
    }

    /// The directory as another process would see it after this one was killed.
    pub fn after_kill(&self) -> Self {
        let State { files, names, durable_names, renamed, .. } = &*self.state();
        let (files, names, durable_names) = (files.clone(), names.clone(), durable_names.clone());
        let renamed = renamed.clone();
        let state = State { files, names, durable_names, renamed, ..State::default() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// A file's bytes.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        Some(state.files[*state.names.get(name)?].seen.clone())
    }

    /// Makes a file of these bytes, durable, in place of any that has the name.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let mut state = self.state();
        let (seen, durable) = (bytes.to_vec(), bytes.to_vec());
        state.files.push(Content { seen, durable, written: Vec::new() });
        let index = state.files.len() - 1;
        state.names.insert(name.to_owned(), index);
        state.durable_names.insert(name.to_owned(), index);
    }
}

impl Content {
    fn write(bytes: &mut Vec<u8>, write: &Write) {
        match write {
            Write::Bytes(at, written) => {
                let size = bytes.len().max(at + written.len());
                bytes.resize(size, 0);
                bytes[*at..at + written.len()].copy_from_slice(written);
            }
            Write::Size(size) => bytes.resize(*size, 0),
        }
    }

    fn after_power_loss(&self, random: &mut Random) -> Self {
        let mut bytes = self.durable.clone();
        for write in &self.written {
            match (random.below(3), write) {
                (0, _) => {}
                (1, Write::Bytes(at, written)) => {
                    let (start, end) = (random.below(written.len()), written.len());
                    let torn = match random.below(2) {
                        0 => (*at, written[..start].to_vec()),
                        _ => (at + start, written[start..end].to_vec()),
                    };
                    Self::write(&mut bytes, &Write::Bytes(torn.0, torn.1));
                }
                _ => Self::write(&mut bytes, write),
            }
        }
        Self { seen: bytes.clone(), durable: bytes, written: Vec::new() }
    }
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Set(name, file) => {
                names.retain(|_, other| other != file);
                names.insert(name.clone(), *file);
            }
            Self::Remove(name) => {
                names.remove(name);
            }
        }
    }
}

impl State {
    fn call(&mut self) -> io::Result<()> {
        self.calls += 1;
        match self.power_until {
            Some(until) if self.calls > until => Err(io::Error::other("power was lost")),
            _ => Ok(()),
        }
    }

    fn refusable(&mut self, call: &str) -> io::Result<()> {
        self.call()?;
        match self.refused {
            Some(refused) if refused == call => Err(io::Error::other("too many open files")),
            _ => Ok(()),
        }
    }

    fn sync(&mut self) -> io::Result<bool> {
        self.call()?;
        self.syncs += 1;
        Ok(self.failing_sync.is_some_and(|at| self.syncs == at + 1))
    }

    fn find(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.names);
        self.renamed.push(change);
    }

    fn used_bytes(&self) -> u64 {
        self.names.values().map(|file| self.files[*file].seen.len() as u64).sum()
    }
}

fn failed_sync() -> io::Error {
    io::Error::other("input/output error")
}

impl Disk for FaultyDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut state = self.state();
        state.call()?;
        Ok(state.names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        state.call()?;
        let file = state.find(name)?;
        Ok(Box::new(FaultyFile { disk: self.clone(), file }))
    }

    fn edit(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.open(name)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        state.refusable("create")?;
        if state.find(name).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.files.push(Content::default());
        let file = state.files.len() - 1;
        state.change(Change::Set(name.to_owned(), file));
        Ok(Box::new(FaultyFile { disk: self.clone(), file }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.call()?;
        let file = state.find(from)?;
        state.change(Change::Set(to.to_owned(), file));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.refusable("remove")?;
        state.find(name)?;
        state.change(Change::Remove(name.to_owned()));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state();
        if state.sync()? {
            state.renamed.clear();
            return Err(failed_sync());
        }
        state.durable_names = state.names.clone();
        state.renamed.clear();
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("memory").join(name)
    }
}

struct FaultyFile {
    disk: FaultyDisk,
    file: usize,
}

impl DiskFile for FaultyFile {
    fn size(&self) -> io::Result<u64> {
        let mut state = self.disk.state();
        state.call()?;
        Ok(state.files[self.file].seen.len() as u64)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.state();
        state.call()?;
        let seen = &state.files[self.file].seen;
        let rest = seen.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or_default();
        let count = rest.len().min(bytes.len());
        bytes[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.state();
        state.call()?;
        let mut count = bytes.len();
        if let Some(random) = &mut state.short_writes {
            count = 1 + random.below(count);
        }
        let (at, used) = (offset as usize, state.used_bytes());
        if let Some(room) = state.room_bytes {
            let old = state.files[self.file].seen.len();
            let most = (room.saturating_sub(used) as usize + old).saturating_sub(at);
            count = count.min(most);
            if count == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        let write = Write::Bytes(at, bytes[..count].to_vec());
        let file = &mut state.files[self.file];
        Content::write(&mut file.seen, &write);
        file.written.push(write);
        Ok(count)
    }

    fn set_size(&mut self, bytes: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.call()?;
        let file = &mut state.files[self.file];
        file.seen.resize(bytes as usize, 0);
        file.written.push(Write::Size(bytes as usize));
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.disk.state();
        let is_failing = state.sync()?;
        let file = &mut state.files[self.file];
        if is_failing {
            file.written.clear();
            return Err(failed_sync());
        }
        for write in std::mem::take(&mut file.written) {
            Content::write(&mut file.durable, &write);
        }
        Ok(())
    }
}
