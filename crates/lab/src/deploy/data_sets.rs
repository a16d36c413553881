//! Kept data sets: the data folder of a prepared target, kept under a hash of everything that it
//! depends on, and copied before each later start, or lent to it.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{Advice, fadvise};

/// The most nested folders of a data set.
const MAX_DEPTH: usize = 64;

/// Moves the folder `from` to `to`, whole or not at all: from another file system it is copied
/// beside and renamed.
pub(super) fn keep(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
        renamed => return renamed,
    }
    let beside = to.with_extension(format!("{}.new", std::process::id()));
    let kept = copy(from, &beside).and_then(|()| fs::rename(&beside, to));
    if kept.is_err() {
        let _ = fs::remove_dir_all(&beside);
    }
    kept.and_then(|()| fs::remove_dir_all(from))
}

/// Writes a folder's files to the disk and drops them from the page cache, so that the first
/// read goes to the disk. File systems in memory keep them.
pub(super) fn cool(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
        if kind.is_dir() {
            cool(&path)?;
        } else if kind.is_file() {
            let file = fs::File::open(&path)?;
            // What isn't written yet can't be dropped.
            file.sync_all()?;
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
    }
    Ok(())
}

/// Copies a folder with all that is in it. The system shares the bytes where it can.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    copy_within(from, to, 0)
}

fn copy_within(from: &Path, to: &Path, depth: usize) -> io::Result<()> {
    if depth > MAX_DEPTH {
        let message = format!("{}: more than {MAX_DEPTH} folders deep", from.display());
        return Err(io::Error::other(message));
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, target, kind) = (entry.path(), to.join(entry.file_name()), entry.file_type()?);
        if kind.is_dir() {
            copy_within(&path, &target, depth + 1)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&path)?, &target)?;
        } else if kind.is_file() {
            fs::copy(&path, &target)?;
        }
        // Sockets and pipes are skipped: they are no data.
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_set_is_kept_whole_and_copied_with_its_folders_and_links() {
        let folder = tempfile::tempdir().unwrap();
        let (data, kept, again) =
            (folder.path().join("data"), folder.path().join("kept"), folder.path().join("again"));
        fs::create_dir_all(data.join("inner")).unwrap();
        fs::write(data.join("inner/file"), b"bytes").unwrap();
        std::os::unix::fs::symlink("inner/file", data.join("link")).unwrap();
        keep(&data, &kept).unwrap();
        copy(&kept, &again).unwrap();
        cool(&again).unwrap();
        assert_eq!(fs::read(again.join("link")).unwrap(), b"bytes");
        fs::write(again.join("inner/file"), b"other").unwrap();
        assert_eq!(fs::read(kept.join("inner/file")).unwrap(), b"bytes", "a copy of its own");
        assert!(keep(&folder.path().join("gone"), &folder.path().join("none")).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing half-done is left");
    }
}
