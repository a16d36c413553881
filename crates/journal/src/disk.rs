//! Where a journal's files lie: the calls that it makes, as a trait, so that a faulty twin
//! ([`crate::faulty`]) can stand in for the system; and the directory that services use.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A directory, of which a journal makes these calls and no others.
pub trait Disk: Send + Sync {
    /// The names of all files.
    ///
    /// # Errors
    /// The system's.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens a file to be read.
    ///
    /// # Errors
    /// The system's, and when it is no regular file.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file to be read and written.
    ///
    /// # Errors
    /// As [`Disk::open`].
    fn edit(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Makes a file, which must not be there yet.
    ///
    /// # Errors
    /// The system's.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Renames a file, in place of one that has the new name.
    ///
    /// # Errors
    /// The system's.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// The system's.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes durable which files there are, and their names.
    ///
    /// # Errors
    /// The system's.
    fn sync(&self) -> io::Result<()>;

    /// The path of a file, for messages; of the directory, when the name is empty.
    fn path(&self, name: &str) -> PathBuf;
}

/// An open file. Reads and writes may be short, as the system's are.
pub trait DiskFile: Send {
    /// How many bytes it has.
    ///
    /// # Errors
    /// The system's.
    fn size(&self) -> io::Result<u64>;

    /// Reads some of the bytes at `offset`; none at the file's end.
    ///
    /// # Errors
    /// The system's.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes some of the bytes at `offset`.
    ///
    /// # Errors
    /// The system's.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Cuts the file.
    ///
    /// # Errors
    /// The system's.
    fn set_size(&mut self, bytes: u64) -> io::Result<()>;

    /// Makes all bytes durable, and the file's size.
    ///
    /// # Errors
    /// The system's. What was written since the last call may then be lost, whatever a second
    /// call says: the system forgets what it failed to write.
    fn sync(&mut self) -> io::Result<()>;
}

/// A directory of the file system. It has to be there, and its user has to hold it alone.
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// The directory at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
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
        File::open(&self.path)?.sync_all()
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
        std::os::unix::fs::FileExt::write_at(self, bytes, offset)
    }

    fn set_size(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Writes all of the bytes, however many calls it takes.
pub(crate) fn write_all(
    file: &mut dyn DiskFile,
    mut bytes: &[u8],
    mut offset: u64,
) -> io::Result<()> {
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
pub(crate) fn read_full(file: &dyn DiskFile, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
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
