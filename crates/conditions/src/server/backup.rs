//! A copy of a data directory whose server may go on: a process of its own makes it, which takes no
//! lock that a reader or writer waits for. Control plane.
//!
//! It holds the journal's files open and maps the segments that its snapshot names, so what a seal
//! removes meanwhile is there all the same. Segments and files never change: they are linked, or
//! copied where that can't be. FORMAT, without which a directory is none of data, comes last.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use bytes::Bytes;
use journal::{Directory, Held};

use super::check::{BadDirectory, Checked, check_format, check_in, snapshot};
use super::map::{Reads, map};
use super::store::folders;
use crate::model::{Loader, segment_name};

/// How often it is tried while a server exchanges the files.
const TRIES: usize = 100;

/// How far a copy is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Copied {
    /// Bytes of segments and files, linked ones too.
    pub bytes: u64,
    /// How many of them there are.
    pub of_bytes: u64,
}

/// What a copy holds.
#[derive(Debug)]
pub struct BackedUp {
    /// What a check says of it: nothing is damaged.
    pub checked: Checked,
    /// Its bytes.
    pub bytes: u64,
    /// Those of them that are links, and so took no room.
    pub linked_bytes: u64,
}

/// Copies a data directory, which a server may have open, to one that isn't there yet, and checks
/// the copy: it holds every change that was acknowledged when it began, and none without those
/// before it. Until it is whole it has no FORMAT, so it is neither served nor checked; where it
/// fails nothing of it is left.
///
/// # Errors
/// When a file can't be read or written, something is there already, or what was copied is damaged.
pub fn backup(
    data: &Path,
    out: &Path,
    progress: &mut dyn FnMut(Copied),
) -> anyhow::Result<BackedUp> {
    check_format(data)?;
    let beside = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    let beside = beside.unwrap_or(Path::new(".")).canonicalize();
    let data_itself = data.canonicalize();
    if beside.is_ok_and(|beside| data_itself.is_ok_and(|data| beside.starts_with(data))) {
        return Err(BadDirectory::new(out, "it is within the data: name one beside them").into());
    }
    fs::create_dir(out).map_err(|why| match why.kind() {
        io::ErrorKind::AlreadyExists if is_unfinished(out) => {
            BadDirectory::new(out, "it is a backup that did not come to its end: remove it")
        }
        io::ErrorKind::AlreadyExists => BadDirectory::new(out, "it is there: name a new one"),
        _ => BadDirectory::new(out, format!("it can't be made: {why}")),
    })?;
    copy_all(data, out, progress).or_else(|error| {
        fs::remove_dir_all(out).with_context(|| format!("{error:#}; {} stays", out.display()))?;
        Err(error)
    })
}

fn copy_all(data: &Path, out: &Path, progress: &mut dyn FnMut(Copied)) -> anyhow::Result<BackedUp> {
    let (held, segments) = hold(data)?;
    let [_, from] = folders(data);
    let [journal, to] = folders(out);
    for folder in [&journal, &to] {
        fs::create_dir(folder).with_context(|| format!("{} can't be made", folder.display()))?;
    }
    let of_bytes = segments.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    let mut copy = Copy { done: Copied { bytes: 0, of_bytes }, linked_bytes: 0, progress };
    for (name, bytes) in segments {
        copy.one(&from.join(&name), &to.join(&name), bytes.len() as u64, |file| {
            file.write_all(&bytes)
        })?;
    }
    let report = held.copy(&Directory::new(journal))?;
    // A file is there before the change that names it.
    let files = files(&data.join("files"))?;
    copy.done.of_bytes += files.iter().map(|(_, bytes)| bytes).sum::<u64>();
    for (path, bytes) in files {
        let (from, to) = (data.join("files").join(&path), out.join("files").join(&path));
        let folder = to.parent().unwrap_or(out);
        fs::create_dir_all(folder)
            .with_context(|| format!("{} can't be made", folder.display()))?;
        copy.one(&from, &to, bytes, |file| io::copy(&mut File::open(&from)?, file).map(drop))?;
    }
    let (bytes, linked_bytes) = (copy.done.bytes + report.bytes, copy.linked_bytes);
    sync_folders(out)?;
    let checked = check_in(out)?;
    if let Some(damage) = checked.damaged.first() {
        anyhow::bail!("{damage}: nothing is kept of it; `loadline conditions check` the data");
    }
    finish(data, out)?;
    Ok(BackedUp { checked, bytes, linked_bytes })
}

/// Whether a directory is what a process has left that was ended while it copied.
fn is_unfinished(out: &Path) -> bool {
    !out.join("FORMAT").exists() && folders(out)[0].is_dir()
}

/// Segments by name.
type Mapped = Vec<(String, Bytes)>;

/// The journal's files, open, and the segments that its snapshot names.
fn hold(data: &Path) -> anyhow::Result<(Held, Mapped)> {
    let [journal, segments] = folders(data);
    let mut tries = 0;
    loop {
        let held = Held::open(Arc::new(Directory::new(&journal)))?;
        let mut loader = Loader::default();
        journal::read(&held, |entry| match entry {
            journal::Entry::Snapshot(bytes) => Ok(loader.apply(bytes)?),
            journal::Entry::Record(..) => Ok(()),
        })?;
        let names = loader.segments().map(|(id, ..)| segment_name(id));
        let mapped = names.map(|name| {
            let path = segments.join(&name);
            let bytes = map(&path, Reads::All);
            Ok((name, bytes.with_context(|| format!("{} can't be read", path.display()))?))
        });
        tries += 1;
        match mapped.collect::<anyhow::Result<_>>() {
            Ok(mapped) => return Ok((held, mapped)),
            // Another snapshot may have replaced it, with its segments.
            Err(why) if tries == TRIES || snapshot(data) == snapshot_of(&held) => return Err(why),
            Err(_) => {}
        }
    }
}

fn snapshot_of(held: &Held) -> Option<u64> {
    journal::check(held).ok()?.snapshot
}

/// The files that clients have stored, below their folder, with their sizes. None is ever removed.
fn files(folder: &Path) -> anyhow::Result<Vec<(PathBuf, u64)>> {
    let list = |path: &Path| -> io::Result<Vec<fs::DirEntry>> {
        match fs::read_dir(path) {
            Ok(entries) => entries.collect(),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(why) => Err(why),
        }
    };
    let mut found = Vec::new();
    for part in list(folder).with_context(|| folder.display().to_string())? {
        let (path, name) = (part.path(), part.file_name());
        // What is still coming in belongs to no change.
        if name == "incoming" || !part.file_type()?.is_dir() {
            continue;
        }
        for file in list(&path).with_context(|| path.display().to_string())? {
            found.push((Path::new(&name).join(file.file_name()), file.metadata()?.len()));
        }
    }
    Ok(found)
}

struct Copy<'a> {
    done: Copied,
    linked_bytes: u64,
    progress: &'a mut dyn FnMut(Copied),
}

impl Copy<'_> {
    /// Links a file that never changes, or writes it where that can't be: on another file system,
    /// or when it was removed.
    fn one(
        &mut self,
        from: &Path,
        to: &Path,
        bytes: u64,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        match fs::hard_link(from, to) {
            Ok(()) => self.linked_bytes += bytes,
            Err(_) => {
                let written = File::create_new(to).and_then(|mut file| {
                    write(&mut file)?;
                    file.sync_all()
                });
                written.with_context(|| format!("{} can't be written", to.display()))?;
            }
        }
        self.done.bytes += bytes;
        (self.progress)(self.done);
        Ok(())
    }
}

/// Makes the names of all files durable.
fn sync_folders(folder: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.with_context(|| format!("{} can't be made durable", folder.display()))
}

/// Makes it a data directory.
fn finish(data: &Path, out: &Path) -> anyhow::Result<()> {
    sync_folders(out)?;
    let format = out.join("FORMAT");
    let written = fs::read(data.join("FORMAT"))
        .and_then(|bytes| base::replace_file(&format, |file| file.write_all(&bytes)));
    written.with_context(|| format!("{} can't be written", format.display()))?;
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let synced = File::open(parent).and_then(|folder| folder.sync_all());
    synced.with_context(|| format!("{} can't be made durable", parent.display()))
}
