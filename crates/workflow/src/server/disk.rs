//! The files of this machine, as scripts are made of them. Control plane: only the pool's threads
//! read.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::script::{Files, MAX_JOB_BYTES};

/// The most that a command may take which prints a script.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);

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
        output_within(command, COMMAND_LIMIT)
    }
}

/// What a command prints. One that prints too much, or takes longer, is killed with all that it
/// has started in its process group.
fn output_within(command: &str, limit: Duration) -> io::Result<Vec<u8>> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        // Nothing bounds what it writes there: in the server's own it would fill the disk.
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let ended = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
    let until = Instant::now() + limit;
    let stdout = child.stdout.take().map(|stdout| Within { from: stdout, until });
    let read = stdout.map_or_else(|| Ok(Vec::new()), read_limited);
    let read = read.and_then(|bytes| wait_until(&ended, until).map(|()| bytes));
    if read.is_err() {
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    }
    let status = child.wait()?;
    let bytes = read.map_err(|why| match why.kind() {
        ErrorKind::TimedOut => {
            let seconds = limit.as_secs_f64();
            io::Error::new(ErrorKind::TimedOut, format!("the command took over {seconds} s"))
        }
        _ => why,
    })?;
    if status.success() {
        Ok(bytes)
    } else {
        Err(io::Error::other(format!("the command ended with {status}")))
    }
}

/// Reads for as long as the time isn't over.
struct Within<R> {
    from: R,
    until: Instant,
}

impl<R: io::Read + AsFd> io::Read for Within<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        wait_until(&self.from, self.until)?;
        self.from.read(into)
    }
}

/// Waits until there is something to read, or an end.
fn wait_until(descriptor: &impl AsFd, until: Instant) -> io::Result<()> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| ErrorKind::InvalidInput)?;
        let mut fds = [PollFd::new(descriptor, PollFlags::IN)];
        match poll(&mut fds, Some(&left)) {
            Ok(0) => return Err(ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(why) => return Err(why.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{COMMAND_LIMIT, Disk, Files as _, MAX_JOB_BYTES, output_within};
    use std::time::Duration;

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

    #[test]
    fn a_command_that_hangs_is_killed_with_what_it_has_started() {
        let limit = Duration::from_millis(200);
        assert_eq!(
            output_within("echo a; sleep 0; echo b", limit.max(COMMAND_LIMIT)).expect("read"),
            b"a\nb\n"
        );
        for hangs in ["sleep 600 & wait", "exec >&-; sleep 600", "yes | sleep 600"] {
            let why = output_within(hangs, limit).expect_err("it takes too long");
            assert_eq!(why.to_string(), "the command took over 0.2 s", "{hangs}");
        }
    }
}
