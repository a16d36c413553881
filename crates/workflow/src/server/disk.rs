//! The files of this machine, as scripts are made of them. Control plane: only the pool's threads
//! read.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::script::{Files, MAX_JOB_BYTES};

/// The files of this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disk;

fn read_limited(from: impl io::Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_JOB_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_JOB_BYTES {
        let what = format!("more than {MAX_JOB_BYTES} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

/// Opens a regular file: a pipe or a device might have no end, and opening one might wait.
fn open(path: &str) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(base::no_wait()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file"));
    }
    Ok(file)
}

impl Disk {
    /// The end of a file, at most what a job may have.
    pub(super) fn read_end(path: &str) -> io::Result<Vec<u8>> {
        let mut file = open(path)?;
        let from = file.metadata()?.len().saturating_sub(MAX_JOB_BYTES as u64);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(MAX_JOB_BYTES as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Files for Disk {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        read_limited(open(path)?)
    }

    fn exists(&self, path: &str) -> bool {
        !path.is_empty() && Path::new(path).exists()
    }

    fn is_directory(&self, path: &str) -> bool {
        !path.is_empty() && Path::new(path).is_dir()
    }

    fn output(&self, command: &str) -> io::Result<Vec<u8>> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", command])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let read = child.stdout.take().map_or_else(|| Ok(Vec::new()), read_limited);
        if read.is_err() {
            // It may go on printing for ever.
            let _ = child.kill();
        }
        let status = child.wait()?;
        let bytes = read?;
        if status.success() {
            Ok(bytes)
        } else {
            Err(io::Error::other(format!("the command ended with {status}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Disk, Files as _, MAX_JOB_BYTES};

    #[test]
    fn of_a_flood_of_output_the_end_is_read_and_a_pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let mut flood = vec![b'x'; MAX_JOB_BYTES];
        flood.extend_from_slice(b"\nend\n");
        std::fs::write(path("out"), flood).expect("written");
        let end = Disk::read_end(&path("out")).expect("read");
        assert!(end.len() == MAX_JOB_BYTES && end.ends_with(b"\nend\n"));
        Disk.read(&path("out")).expect_err("too large for a script");
        let made = std::process::Command::new("mkfifo").arg(path("pipe")).status();
        assert!(made.expect("mkfifo").success());
        Disk.read(&path("pipe")).expect_err("no regular file");
        Disk::read_end(&path("pipe")).expect_err("no regular file");
    }
}
