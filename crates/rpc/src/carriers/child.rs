//! The standard input and output of a child.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};

use super::polling::wait_for;
use super::{Carrier, Peer, Sender};
use crate::waiting::spin;

/// How long a child may take to end once its input has.
const END_TIME: Duration = Duration::from_secs(2);

/// How often it is asked whether it has ended.
const END_STEP: Duration = Duration::from_millis(2);

/// A child, which ends with this value.
#[derive(Debug)]
pub(super) struct ChildPipe {
    child: Child,
    /// `None` once it is closed.
    input: Option<ChildStdin>,
    output: ChildStdout,
    /// How long a wait stays on the CPU; where it does at all, reading doesn't wait.
    budget: Duration,
    waits: u64,
}

impl ChildPipe {
    /// Starts a command of the shell, which is replaced by it where it is a single one.
    pub(super) fn start(command: &str, budget: Duration) -> io::Result<Self> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", command])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let missing = || io::Error::from(io::ErrorKind::BrokenPipe);
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        // Sending doesn't wait; the child's own end isn't changed by it.
        fcntl_setfl(&input, fcntl_getfl(&input)? | OFlags::NONBLOCK)?;
        if !budget.is_zero() {
            fcntl_setfl(&output, fcntl_getfl(&output)? | OFlags::NONBLOCK)?;
        }
        Ok(Self { child, input: Some(input), output, budget, waits: 0 })
    }
}

impl Carrier for ChildPipe {
    fn send(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(input) = &mut self.input else { return Err(io::ErrorKind::BrokenPipe.into()) };
        loop {
            match input.write_vectored(pieces) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => return written,
            }
        }
    }

    fn receive(&mut self, space: &mut [u8], until: Option<Instant>) -> io::Result<usize> {
        let output = &mut self.output;
        let spun = spin(self.budget, until, &mut self.waits, || output.read(space));
        if let Some(count) = spun? {
            return Ok(count);
        }
        if until.is_some() || !self.budget.is_zero() {
            self.waits += 1;
            if !wait_for(&self.output, None::<&ChildStdin>, until)? {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        loop {
            match self.output.read(space) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    fn wait_for_room(&mut self, until: Option<Instant>) -> io::Result<bool> {
        self.waits += 1;
        wait_for(&self.output, self.input.as_ref(), until)
    }

    fn waits(&self) -> u64 {
        self.waits
    }

    fn sender(&mut self) -> io::Result<Sender> {
        let input = self.input.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Sender::pipe(input.into()))
    }

    fn peer(&self) -> Peer {
        Peer::Within(self.child.id())
    }
}

impl Drop for ChildPipe {
    fn drop(&mut self) {
        // The end of its input is the end of the connection.
        self.input = None;
        let until = Instant::now() + END_TIME;
        while Instant::now() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(END_STEP);
        }
        // The shell's own children, too. They may end right now.
        if let Ok(group) = i32::try_from(self.child.id()).map(Pid::from_raw) {
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        }
        let _ = self.child.wait();
    }
}
