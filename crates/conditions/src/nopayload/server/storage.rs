//! Where the bytes of files lie: in a data directory, each by the SHA-256 of its bytes, so that no
//! word of a client is part of a path. Which key leads to which bytes is the model's to say.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::Context as _;
use axum::body::Bytes;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

/// How many files may be on their way in.
const UPLOADS: usize = 64;

/// How many files may be on their way to where they are kept.
const SENT: usize = 8;

/// How many bytes are read at a time.
const CHUNK_BYTES: u64 = 128 << 10;

/// Where files are kept, where the directory only has copies of them.
pub(crate) trait Origin: Send + Sync {
    /// Keeps a file.
    fn put(&self, name: &str, file: &mut File) -> io::Result<()>;

    /// Writes a file's bytes.
    fn get(&self, name: &str, into: &mut dyn io::Write) -> io::Result<()>;
}

/// The files of a data directory.
pub(crate) struct Storage {
    folder: PathBuf,
    origin: Option<Arc<dyn Origin>>,
    /// Taken while a file is fetched: it is fetched once.
    pub(super) fetches: Arc<Semaphore>,
    /// Taken while one is sent to where it is kept.
    pub(super) sends: Arc<Semaphore>,
    /// Names of files that are on their way in.
    next: AtomicU64,
    pub(super) uploads: Semaphore,
}

impl Storage {
    /// Opens or makes the folder, and removes what had not come in whole.
    ///
    /// # Errors
    /// When it can't be.
    pub(crate) fn open(data: &Path) -> anyhow::Result<Self> {
        let folder = data.join("files");
        let incoming = folder.join("incoming");
        let open = || {
            fs::create_dir_all(&incoming)?;
            fs::read_dir(&incoming)?.try_for_each(|entry| fs::remove_file(entry?.path()))
        };
        open().with_context(|| format!("{} can't be prepared", incoming.display()))?;
        Ok(Self::of(folder))
    }

    fn of(folder: PathBuf) -> Self {
        let (next, uploads) = (AtomicU64::new(0), Semaphore::new(UPLOADS));
        let [fetches, sends] = [1, SENT].map(|most| Arc::new(Semaphore::new(most)));
        Self { folder, origin: None, fetches, sends, next, uploads }
    }

    /// Opens a folder that has copies of files that are kept elsewhere.
    ///
    /// # Errors
    /// As [`Storage::open`].
    #[cfg(any(test, feature = "tier"))]
    pub(crate) fn open_copies(data: &Path, origin: Arc<dyn Origin>) -> anyhow::Result<Self> {
        Ok(Self { origin: Some(origin), ..Self::open(data)? })
    }

    /// Whether files are kept elsewhere: then it may take minutes to keep one, or to fetch it.
    pub(super) fn has_origin(&self) -> bool {
        self.origin.is_some()
    }

    /// Whether a file has to be fetched before it can be read.
    pub(super) fn lacks(&self, sha256: [u8; 32], size: u64) -> bool {
        let (folder, name) = self.place(&sha256);
        self.has_origin() && !is_there(&folder.join(name), size)
    }

    /// Begins a file that comes in.
    pub(super) fn begin(&self) -> io::Result<Incoming> {
        let name = self.next.fetch_add(1, Relaxed).to_string();
        let path = self.folder.join("incoming").join(name);
        let file = File::create_new(&path)?;
        Ok(Incoming { path, file, hash: Sha256::new(), size: 0, is_kept: false })
    }

    /// Opens the file of these bytes.
    pub(super) fn read(&self, sha256: [u8; 32], size: u64) -> io::Result<Outgoing> {
        let (folder, name) = self.place(&sha256);
        let path = folder.join(name);
        if let Some(origin) = self.origin.as_ref().filter(|_| !is_there(&path, size)) {
            self.fetch(&**origin, &sha256)?;
        }
        let file = File::open(path)
            .map_err(|why| io::Error::new(why.kind(), format!("file {}: {why}", hex(&sha256))))?;
        match file.metadata()?.len() == size {
            true => Ok(Outgoing { file, hash: Sha256::new(), left: size, sha256 }),
            false => Err(damaged(&sha256)),
        }
    }

    /// Makes a copy of a file.
    fn fetch(&self, origin: &dyn Origin, sha256: &[u8; 32]) -> io::Result<()> {
        let mut incoming = self.begin()?;
        origin.get(&hex(sha256), &mut incoming).map_err(unreached)?;
        match incoming.sum().0 == *sha256 {
            true => incoming.place(self, sha256),
            false => Err(damaged(sha256)),
        }
    }

    fn place(&self, sha256: &[u8; 32]) -> (PathBuf, String) {
        let digits = hex(sha256);
        let (first, rest) = digits.split_at(2);
        (self.folder.join(first), rest.to_owned())
    }
}

fn is_there(path: &Path, size: u64) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.len() == size)
}

/// Reads a file of a data directory, which a server may have open.
///
/// # Errors
/// When it isn't there, or has other bytes.
pub(crate) fn check(data: &Path, sha256: [u8; 32], size: u64) -> io::Result<()> {
    let mut file = Storage::of(data.join("files")).read(sha256, size)?;
    while file.next()?.is_some() {}
    Ok(())
}

/// Bytes as digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Where files are kept may be there again later; one that isn't there may not.
fn unreached(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => error,
        _ => io::Error::new(io::ErrorKind::NotConnected, error),
    }
}

fn damaged(sha256: &[u8; 32]) -> io::Error {
    io::Error::other(format!("file {} is damaged", hex(sha256)))
}

/// A file that comes in. It is removed unless it is kept.
pub(super) struct Incoming {
    path: PathBuf,
    file: File,
    hash: Sha256,
    size: u64,
    is_kept: bool,
}

impl Incoming {
    /// Adds bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    /// The SHA-256 of its bytes, and how many there are, once all have come.
    pub(super) fn sum(&mut self) -> ([u8; 32], u64) {
        (self.hash.finalize_reset().into(), self.size)
    }

    /// Makes it durable in the place of bytes with this sum, which is its own.
    pub(super) fn keep(self, storage: &Storage, sha256: &[u8; 32]) -> io::Result<()> {
        if let Some(origin) = &storage.origin {
            origin.put(&hex(sha256), &mut File::open(&self.path)?).map_err(unreached)?;
        }
        self.place(storage, sha256)
    }

    /// Makes it durable under the name of its bytes.
    fn place(mut self, storage: &Storage, sha256: &[u8; 32]) -> io::Result<()> {
        self.file.sync_all()?;
        let (folder, name) = storage.place(sha256);
        fs::create_dir_all(&folder)?;
        // Whatever lies there has the same bytes, or is damaged.
        fs::rename(&self.path, folder.join(name))?;
        self.is_kept = true;
        sync_folder(&folder)?;
        sync_folder(&storage.folder)
    }
}

impl io::Write for Incoming {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Incoming::write(self, bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if !self.is_kept {
            // The next start removes it otherwise.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Makes the names of a folder durable.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// A file that is sent. Its last bytes are given out only once all of them are known to be right.
pub(super) struct Outgoing {
    file: File,
    hash: Sha256,
    left: u64,
    sha256: [u8; 32],
}

impl Outgoing {
    /// The next bytes; `None` after the last ones.
    pub(super) fn next(&mut self) -> io::Result<Option<Bytes>> {
        if self.left == 0 {
            return Ok(None);
        }
        let mut bytes = vec![0; self.left.min(CHUNK_BYTES) as usize];
        self.file.read_exact(&mut bytes)?;
        self.hash.update(&bytes);
        self.left -= bytes.len() as u64;
        if self.left == 0 && self.hash.finalize_reset()[..] != self.sha256 {
            return Err(damaged(&self.sha256));
        }
        Ok(Some(bytes.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut outgoing: Outgoing) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while let Some(next) = outgoing.next()? {
            bytes.extend_from_slice(&next);
        }
        Ok(bytes)
    }

    #[test]
    fn a_file_is_given_back_as_it_came_and_not_with_a_flipped_bit() {
        let data = tempfile::tempdir().expect("a folder");
        let storage = Storage::open(data.path()).expect("a storage");
        let content: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut incoming = storage.begin().expect("a file");
        content.chunks(70_001).for_each(|chunk| incoming.write(chunk).expect("written"));
        let (sha256, size) = incoming.sum();
        incoming.keep(&storage, &sha256).expect("kept");
        assert_eq!(size, 1_200_000);
        assert_eq!(all(storage.read(sha256, size).expect("a file")).expect("bytes"), content);
        let (folder, name) = storage.place(&sha256);
        let mut damaged = content.clone();
        damaged[5] ^= 1;
        fs::write(folder.join(&name), &damaged).expect("written");
        assert!(all(storage.read(sha256, size).expect("a file")).is_err());
        assert!(check(data.path(), sha256, size).is_err());
        fs::write(folder.join(&name), &content[1..]).expect("written");
        assert!(storage.read(sha256, size).is_err());
    }

    /// A place that can't be reached.
    struct Away;

    impl Origin for Away {
        fn put(&self, _: &str, _: &mut File) -> io::Result<()> {
            Err(io::Error::other("no answer"))
        }

        fn get(&self, _: &str, _: &mut dyn io::Write) -> io::Result<()> {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    #[test]
    fn a_place_of_files_that_cant_be_reached_is_told_from_a_file_that_isnt_there() {
        let data = tempfile::tempdir().expect("a folder");
        let origin = Some(Arc::new(Away) as Arc<dyn Origin>);
        let storage = Storage { origin, ..Storage::open(data.path()).expect("a storage") };
        let mut incoming = storage.begin().expect("a file");
        incoming.write(b"content").expect("written");
        let (sha256, size) = incoming.sum();
        let away = incoming.keep(&storage, &sha256).expect_err("it can't be reached");
        assert_eq!(away.kind(), io::ErrorKind::NotConnected);
        let missing = storage.read(sha256, size).map(drop).expect_err("it isn't there");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn nothing_is_left_of_files_that_had_not_come_in_whole() {
        let data = tempfile::tempdir().expect("a folder");
        let storage = Storage::open(data.path()).expect("a storage");
        let count = || fs::read_dir(data.path().join("files/incoming")).expect("a folder").count();
        let incoming = storage.begin().expect("a file");
        assert_eq!(count(), 1);
        drop(incoming);
        assert_eq!(count(), 0);
        std::mem::forget(storage.begin().expect("a file"));
        drop(Storage::open(data.path()).expect("a storage"));
        assert_eq!(count(), 0);
    }
}
