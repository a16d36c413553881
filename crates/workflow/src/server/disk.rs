//! The files of this machine, as scripts are made of them. Control plane: only the pool's threads
//! read.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::script::{Files, MAX_JOB_BYTES};

/// The files of this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disk;

fn read_limited(from: impl io::Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_JOB_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_JOB_BYTES {
        let what = format!("more than {MAX_JOB_BYTES} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

impl Files for Disk {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let file = File::open(path)?;
        // A pipe or a device might have no end.
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file"));
        }
        read_limited(file)
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
