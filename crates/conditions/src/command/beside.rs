//! A file that is written beside the place where it belongs, and gets its name once it is whole.

use std::fs::{File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use tempfile::{Builder, NamedTempFile};

use super::context::BadInput;

/// Writes a file that isn't there yet: what `write` does to the file that it is handed is on the
/// disk before the file gets its name. A process that a signal ends leaves a file `.NAME.….part`.
/// Returns what `write` does.
pub(super) fn write_beside<T>(
    path: &Path,
    write: impl FnOnce(&mut NamedTempFile) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let shown = path.display();
    if path.symlink_metadata().is_ok() {
        let why = format!("{shown} is there already: name another file, or remove it");
        return Err(BadInput(why).into());
    }
    let named = path.file_name().with_context(|| format!("{shown} names no file"))?;
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let beside = format!(".{}.", named.to_string_lossy());
    let mut file = Builder::new()
        .prefix(&beside)
        .suffix(".part")
        // As of any file that is made: what the umask leaves of it.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .with_context(|| format!("{shown} can't be made"))?;
    (|| {
        let done = write(&mut file)?;
        file.flush()?;
        file.as_file().sync_all()?;
        file.persist_noclobber(path)?;
        File::open(folder)?.sync_all()?;
        Ok::<_, anyhow::Error>(done)
    })()
    .with_context(|| format!("{shown} is not written"))
}
