//! Files that are there whole or not at all, even after a crash.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// How the name of a file ends that isn't whole yet: what a crash leaves.
pub const NEW: &str = ".new";

/// Writes a file beside `path`, makes it durable, and gives it that name. Where any of it fails
/// nothing of it is left: on a full disk a part would take the room that others need.
///
/// # Errors
/// `write`'s, and the system's. The file that was there is there then.
pub fn replace_file(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(NEW);
    let mut file = File::create(&new)?;
    let written = write(&mut file).and_then(|()| file.sync_all());
    let kept = written.and_then(|()| fs::rename(&new, path));
    if kept.is_err() {
        // The reason for which it isn't kept is what counts.
        let _ = fs::remove_file(&new);
    }
    kept?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        replace_file(&path, |file| file.write_all(b"first")).unwrap();
        let broken = replace_file(&path, |file| {
            file.write_all(b"second")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(broken.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        // A directory can't be replaced.
        let taken = folder.path().join("taken");
        fs::create_dir(&taken).unwrap();
        replace_file(&taken, |file| file.write_all(b"third")).unwrap_err();
        let left = fs::read_dir(folder.path()).unwrap().map(|one| one.unwrap().file_name());
        let mut left: Vec<_> = left.collect();
        left.sort();
        assert_eq!(left, ["file", "taken"]);
    }
}
