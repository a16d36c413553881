//! Files that a service appends to, such as logs, opened while it may still be root.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use anyhow::Context as _;
use base::FileError;

use crate::Failure;
use crate::privileges::Privileges;

/// Opens or makes the file that `option` names. A new one becomes that user's whom the service
/// shall become; of one that is there already the owner stays.
pub(crate) fn open(
    option: &str,
    path: &Path,
    privileges: Option<&Privileges>,
) -> Result<File, Failure> {
    let refused = || format!("{option} {} can't be written", path.display());
    let mut options = OpenOptions::new();
    // A pipe without a reader would be waited for.
    options.append(true).custom_flags(base::no_wait());
    let (file, is_new) = match options.clone().create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => (options.open(path), false),
        file => (file, true),
    };
    let file = file.with_context(refused)?;
    let kind = file.metadata().with_context(refused)?.file_type();
    if !kind.is_file() && !kind.is_char_device() {
        let what = base::kind_name(kind);
        let error = FileError::NotRegular { path: path.to_owned(), what };
        return Err(Failure::usage(anyhow::Error::new(error).context(option.to_owned())));
    }
    if let Some(privileges) = privileges.filter(|_| is_new) {
        privileges.give(&file).with_context(refused)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_file_is_made_or_appended_to_and_a_pipe_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let [log, pipe] = ["log", "pipe"].map(|name| folder.path().join(name));
        for line in ["one\n", "two\n"] {
            open("--log", &log, None).expect("open").write_all(line.as_bytes()).expect("written");
        }
        assert_eq!(std::fs::read_to_string(&log).expect("read"), "one\ntwo\n");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo runs").success());
        let said = open("--log", &pipe, None).expect_err("no reader").to_string();
        assert!(said.contains("pipe can't be written"), "{said}");
        let _reader = OpenOptions::new().read(true).custom_flags(base::no_wait()).open(&pipe);
        let said = open("--log", &pipe, None).expect_err("refused").to_string();
        assert!(said.contains("it is a pipe (FIFO)"), "{said}");
    }
}
