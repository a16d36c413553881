//! Where a journal's files lie: the calls that it makes, as a trait, so that a faulty twin
//! ([`crate::faulty`]) can stand in for the system; and the directory that services use.

use std::any::Any;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The most that is read with one call, unless a group is larger.
pub(crate) const WINDOW_BYTES: usize = 1 << 20;

/// The most that is written with one call. A kernel that doesn't preempt itself (PREEMPT_NONE)
/// keeps the core for as long as a call copies: of a group of 16 MiB tens of milliseconds, in which
/// no thread that answers runs there.
const PIECE_BYTES: usize = 256 << 10;

/// A directory, of which a journal makes these calls and no others.
///
/// # Errors
/// Every call's are the system's.
pub trait Disk: Send + Sync {
    /// The names of all files.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens a file to be read; one that is no regular file is an error.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file to be read and written, likewise.
    fn edit(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Creates a file, to be read and written; one that is there is an error.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Renames a file, in place of one that has the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes durable which files there are, and their names.
    fn sync(&self) -> io::Result<()>;

    /// Keeps all others from opening the journal until what is returned is dropped. A directory of
    /// which no other knows needs no lock.
    fn lock(&self) -> io::Result<Box<dyn Any + Send + Sync>> {
        Ok(Box::new(()))
    }

    /// The path of a file, for messages; of the directory, when the name is empty.
    fn path(&self, name: &str) -> PathBuf;
}

/// An open file. Reads and writes may be short, as the system's are.
///
/// # Errors
/// Every call's are the system's.
pub trait DiskFile: Send {
    /// How many bytes it has.
    fn size(&self) -> io::Result<u64>;

    /// Reads some of the bytes at `offset`; none at the file's end.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes some of the bytes at `offset`.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Cuts the file.
    fn set_size(&mut self, bytes: u64) -> io::Result<()>;

    /// Makes all bytes durable, and the file's size. Where that fails, what was written since the
    /// last call may be lost, whatever a second call says: the system forgets what it failed to
    /// write.
    fn sync(&mut self) -> io::Result<()>;

    /// Whether the file has been removed: what is written to it is lost once it is closed.
    fn is_removed(&self) -> io::Result<bool> {
        Ok(false)
    }
}

/// A directory of the file system, which has to be there. A journal that is open holds its lock
/// (flock).
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
    /// The directory, once it was made durable: to do so again needs no further descriptor.
    opened: Arc<OnceLock<File>>,
}

/// The lock of a directory. A process that is just being started may have its descriptor too, so it
/// is released, and not only closed.
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing it is what remains.
        let _ = self.0.unlock();
    }
}

impl Directory {
    /// The directory at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), opened: Arc::default() }
    }

    fn open_by(&self, name: &str, options: &mut OpenOptions) -> io::Result<Box<dyn DiskFile>> {
        // A pipe of that name would be waited for.
        let file = options.custom_flags(base::no_wait()).open(self.path.join(name))?;
        let kind = file.metadata()?.file_type();
        if !kind.is_file() {
            let what = base::kind_name(kind);
            return Err(io::Error::other(format!("it is {what}, and has to be a regular file")));
        }
        Ok(Box::new(file))
    }
}

impl Disk for Directory {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            // A name that is no text is none of a journal's.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.open_by(name, OpenOptions::new().read(true))
    }

    fn edit(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.open_by(name, OpenOptions::new().read(true).write(true))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.open_by(name, OpenOptions::new().read(true).write(true).create_new(true))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        match self.opened.get() {
            Some(directory) => directory.sync_all(),
            None => {
                let directory = File::open(&self.path)?;
                directory.sync_all()?;
                // Whoever came first has opened the same directory.
                let _ = self.opened.set(directory);
                Ok(())
            }
        }
    }

    fn lock(&self) -> io::Result<Box<dyn Any + Send + Sync>> {
        let lock = Lock(File::open(&self.path)?);
        match lock.0.try_lock() {
            Ok(()) => Ok(Box::new(lock)),
            Err(TryLockError::WouldBlock) => Err(io::Error::other("it is in use")),
            Err(TryLockError::Error(why)) => Err(why),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.path.clone() } else { Path::join(&self.path, name) }
    }
}

impl DiskFile for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, bytes, offset)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
        std::os::unix::fs::FileExt::write_at(self, piece, offset)
    }

    fn set_size(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn is_removed(&self) -> io::Result<bool> {
        Ok(self.metadata()?.nlink() == 0)
    }
}

/// Writes all of the bytes, however many calls it takes.
///
/// # Errors
/// The system's.
pub fn write_all(file: &mut dyn DiskFile, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                bytes = &bytes[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads until `bytes` are full or the file ends, and returns how many there were.
///
/// # Errors
/// The system's.
pub fn read_full(file: &dyn DiskFile, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut count = 0;
    while count < bytes.len() {
        match file.read_at(&mut bytes[count..], offset + count as u64) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}
