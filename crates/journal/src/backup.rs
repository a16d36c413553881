//! A journal's files as they are now, held open, and a copy of them: all that was acknowledged by
//! then. The journal may be open elsewhere, and goes on.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::disk::{Disk, DiskFile};
use crate::error::Error;
use crate::names::{Names, PART, log_name, snapshot_name};
use crate::read::copy;
use crate::recover::{Report, check, end};

/// The files of a journal, open: what a later snapshot removes can be read here all the same.
pub struct Held {
    disk: Arc<dyn Disk>,
    files: BTreeMap<String, Open>,
}

/// A file that several readers share.
#[derive(Clone)]
struct Open(Arc<Mutex<Box<dyn DiskFile>>>);

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").field("files", &self.files.keys()).finish_non_exhaustive()
    }
}

impl Held {
    /// Opens the snapshot that counts and the logs behind it.
    ///
    /// # Errors
    /// When a file can't be opened.
    pub fn open(disk: Arc<dyn Disk>) -> Result<Self, Error> {
        loop {
            let names = Names::list(&*disk)?;
            let logs = names.logs().iter().map(|first| log_name(*first));
            let wanted = logs.chain(names.snapshot().map(snapshot_name)).chain(names.part.clone());
            let open = |name: String| match disk.open(&name) {
                Ok(file) => Ok((name, Open(Arc::new(Mutex::new(file))))),
                Err(why) => Err(Error::io(&*disk, &name, "open", why)),
            };
            match wanted.map(open).collect() {
                Ok(files) => return Ok(Self { disk, files }),
                // A snapshot may have replaced it in the meantime.
                Err(error) if Error::is_missing(&error) => {
                    if Names::list(&*disk)?.snapshot() <= names.snapshot() {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Copies all groups that are whole into an empty directory, and checks the copy: it is good if
    /// the report names no damage. A copy that did not come to its end is refused when it is
    /// opened.
    ///
    /// # Errors
    /// When the journal is damaged, there is one in the directory already, or a file can't be read
    /// or written.
    pub fn copy(&self, to: &dyn Disk) -> Result<Report, Error> {
        if !Names::list(to)?.is_empty() {
            return Err(Error::NotEmpty { path: to.path("") });
        }
        // What is written from here on is no part of the copy.
        let end = end(self)?;
        let names = Names::list(self)?;
        let mut files: Vec<(String, u64)> = Vec::new();
        if let Some((last, bytes)) = end {
            for first in names.logs().iter().filter(|first| **first <= last) {
                files.push((log_name(*first), if *first == last { bytes } else { u64::MAX }));
            }
        }
        files.extend(names.snapshot().map(|through| (snapshot_name(through), u64::MAX)));
        for (name, bytes) in &files {
            let part = format!("{name}{PART}");
            let file = to.create(&part);
            let mut file = file.map_err(|why| Error::io(to, &part, "create", why))?;
            copy((self, name), 0..*bytes, (to, &part), &mut *file)?;
            file.sync().map_err(|why| Error::io(to, &part, "sync", why))?;
        }
        let sync = || to.sync().map_err(|why| Error::io(to, "", "sync", why));
        sync()?;
        // As long as one of them has its first name, the copy is refused.
        for (name, _) in &files {
            let part = format!("{name}{PART}");
            to.rename(&part, name).map_err(|why| Error::io(to, &part, "rename", why))?;
        }
        sync()?;
        check(to)
    }
}

fn read_only<T>() -> io::Result<T> {
    Err(io::Error::other("it is held to be read"))
}

impl Disk for Held {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.files.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        match self.files.get(name) {
            Some(file) => Ok(Box::new(file.clone())),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn edit(&self, _: &str) -> io::Result<Box<dyn DiskFile>> {
        read_only()
    }

    fn create(&self, _: &str) -> io::Result<Box<dyn DiskFile>> {
        read_only()
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        read_only()
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        read_only()
    }

    fn sync(&self) -> io::Result<()> {
        read_only()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.disk.path(name)
    }
}

impl Open {
    fn with<T>(&self, ask: impl FnOnce(&dyn DiskFile) -> T) -> T {
        ask(&**self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl DiskFile for Open {
    fn size(&self) -> io::Result<u64> {
        self.with(|file| file.size())
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with(|file| file.read_at(bytes, offset))
    }

    fn write_at(&mut self, _: &[u8], _: u64) -> io::Result<usize> {
        read_only()
    }

    fn set_size(&mut self, _: u64) -> io::Result<()> {
        read_only()
    }

    fn sync(&mut self) -> io::Result<()> {
        read_only()
    }
}
