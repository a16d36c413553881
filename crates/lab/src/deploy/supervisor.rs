//! Nothing the lab started outlives it, not even when the lab itself is killed.
//!
//! Each command has a supervisor (`loadline supervise`) as its parent, a process that adopts all
//! orphans among the command's descendants: what became a daemon, or leads a group or a session of
//! its own, is found and ended like the rest. The supervisor's standard input is a socket to the
//! lab. There it writes the command's process number, and how the command ended; it reads one byte
//! there when all is to end in good order, the number of the signal that does so, and kills all
//! that is left when the lab's end of the socket closes, for whatever reason.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal as Caught};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process_group, test_kill_process_group, wait,
};

use crate::descendants::{self, KILLED_WITHIN, LOOK_EVERY, Spared};

/// The time between the signal that asks for an end, and SIGKILL.
const STOP_WITHIN: Duration = Duration::from_secs(6);

/// The exit status of a supervisor whose program can't be started, as of a shell.
pub(crate) const NO_PROGRAM: u8 = 127;

/// A command under its supervisor: the lab's end. All that descends from it is killed on drop.
#[derive(Debug)]
pub(crate) struct Supervised {
    supervisor: Child,
    socket: UnixStream,
    /// The command's process, which leads a group; `None` where it could not be started.
    process: Option<Pid>,
    /// The signal that ends the command in good order.
    stop_signal: Signal,
    status: Option<ExitStatus>,
}

impl Supervised {
    /// The command line that runs `command` under a supervisor; `exe` is this program.
    pub(crate) fn words(exe: &Path, command: &[String]) -> Vec<String> {
        [&[exe.display().to_string(), "supervise".to_owned()], command].concat()
    }

    /// Starts a command line of [`Supervised::words`]. A program that isn't there ends with
    /// [`NO_PROGRAM`].
    ///
    /// # Errors
    /// When the supervisor can't be started.
    pub(crate) fn start(command: Command) -> std::io::Result<Self> {
        Self::stopped_by(Signal::TERM, command)
    }

    /// The same of a command that another signal than SIGTERM ends.
    pub(crate) fn stopped_by(stop_signal: Signal, mut command: Command) -> std::io::Result<Self> {
        let (mut socket, theirs) = UnixStream::pair()?;
        // In a group of its own, so that Ctrl-C doesn't reach it.
        let supervisor = command.stdin(OwnedFd::from(theirs)).process_group(0).spawn()?;
        // It holds the other end of the socket.
        drop(command);
        let mut number = [0; 4];
        let has_started = socket.read_exact(&mut number).is_ok();
        let process = Pid::from_raw(i32::from_le_bytes(number)).filter(|_| has_started);
        socket.set_nonblocking(true)?;
        Ok(Self { supervisor, socket, process, stop_signal, status: None })
    }

    /// The process of the command, which leads a group of the same number.
    pub(crate) fn process(&self) -> Option<Pid> {
        self.process
    }

    /// Readable once the command has ended.
    pub(crate) fn end_event(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// How the command ended, if it has.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn try_status(&mut self) -> std::io::Result<Option<ExitStatus>> {
        let mut raw = [0; 4];
        if self.status.is_some() {
            return Ok(self.status);
        }
        self.status = match self.socket.read(&mut raw) {
            Ok(4) => Some(ExitStatus::from_raw(i32::from_le_bytes(raw))),
            Err(error) if is_nothing_yet(&error) => None,
            // The supervisor itself has ended: it could not start the command, or was killed.
            Ok(_) | Err(_) => {
                self.kill_group();
                Some(self.supervisor.wait()?)
            }
        };
        Ok(self.status)
    }

    /// Whether the supervisor has been killed, so that nothing but the lab ends the command.
    pub(crate) fn is_unsupervised(&mut self) -> bool {
        matches!(self.supervisor.try_wait(), Ok(Some(status)) if status.signal().is_some())
    }

    /// Ends what still runs of the command and of its descendants: its signal to its group, then
    /// SIGTERM to what is left, and SIGKILL to what doesn't end in time.
    pub(crate) fn stop(&mut self) {
        // A supervisor with nothing left to end has ended.
        let number = u8::try_from(self.stop_signal.as_raw()).unwrap_or_default();
        let _ = self.socket.write_all(&[number]);
        self.await_end();
    }

    /// Kills what still runs of the command and of its descendants.
    pub(crate) fn kill(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        self.await_end();
    }

    /// Waits for the supervisor, which ends with the last that it has to end. Where it was killed,
    /// the command is still there.
    fn await_end(&mut self) {
        if self.supervisor.wait().is_ok_and(|status| status.signal().is_some()) {
            self.kill_group();
        }
    }

    fn kill_group(&self) {
        if let Some(group) = self.process {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.kill();
    }
}

fn is_nothing_yet(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// What killed supervisors leave behind: from now on this process is their parent.
#[derive(Debug)]
pub struct Orphans {
    /// What was there before: a shell that has become this program leaves it its jobs, such as the
    /// server that is to be measured, and what these have started becomes its child when they end.
    ///
    /// What an inherited process starts later and leaves behind is known by its process group or
    /// session, unless that is this program's own too, as of the jobs of a script, or a new one:
    /// then it looks like what a killed supervisor leaves, and is killed.
    inherited: Spared,
}

impl Orphans {
    /// Adopts them. Where the system doesn't let that be, daemons of a supervisor that is killed go
    /// on running: rare enough to measure all the same.
    pub fn adopt() -> Self {
        let inherited = Spared::now();
        let _ = descendants::adopt();
        Self { inherited }
    }

    /// Kills them, and whatever else the lab has started: for a program that is about to end.
    pub fn end(self) {
        descendants::kill_all_but(&self.inherited);
    }
}

/// Runs a command to its end, by `exe`, this program, and with what `set` adds: its folder, its
/// output. What it leaves behind is killed, and all of it is when this process ends.
///
/// # Errors
/// When its supervisor can't be started. A program that isn't there exits with 127.
pub fn run_supervised(
    exe: &Path,
    command: &[String],
    set: impl FnOnce(&mut Command) -> &mut Command,
) -> std::io::Result<ExitStatus> {
    let words = Supervised::words(exe, command);
    let mut command = Command::new(&words[0]);
    set(command.args(&words[1..]));
    let mut supervised = Supervised::start(command)?;
    loop {
        if let Some(status) = supervised.try_status()? {
            return Ok(status);
        }
        // An interrupted wait is only shorter.
        let _ = poll(&mut [PollFd::new(&supervised.end_event(), PollFlags::IN)], None);
    }
}

/// `loadline supervise PROGRAM …`: runs the program, and ends all that descends from it when the
/// lab says so, or has ended itself.
pub fn supervise_main(command: &[String]) -> ExitCode {
    let [program, arguments @ ..] = command else { return ExitCode::from(2) };
    match supervise(Command::new(program).args(arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("can't start {program}: {error}");
            ExitCode::from(NO_PROGRAM)
        }
    }
}

/// Returns when no process is left.
#[expect(clippy::exit, reason = "a wait for a process that can't be ended never returns")]
fn supervise(command: &mut Command) -> std::io::Result<()> {
    let mut socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let orders = socket.try_clone()?;
    descendants::adopt()?;
    let process = Pid::from_child(&command.stdin(Stdio::null()).process_group(0).spawn()?);
    // What is sent to every process of the lab's, as by pkill(1) or systemd, ends the lab, and so
    // this one, in its turn. The program was started before: it has no signal blocked.
    // Where that fails, it is supervised all the same.
    let _ = SigSet::from_iter([Caught::SIGHUP, Caught::SIGINT, Caught::SIGTERM]).thread_block();
    // A lab that has ended meanwhile is found by the thread that reads its orders.
    let _ = socket.write_all(&process.as_raw_nonzero().get().to_le_bytes());
    std::thread::spawn(move || {
        obey(orders, process);
        std::process::exit(1);
    });
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended == process => {
                let _ = socket.write_all(&status.as_raw().to_le_bytes());
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return Ok(()),
        }
    }
}

/// Waits until all has to end, and ends it. This process ends with the last of them, or when this
/// returns, as some could not be ended.
fn obey(mut orders: UnixStream, process: Pid) {
    let mut number = [0];
    if matches!(orders.read(&mut number), Ok(1)) {
        let signal = Signal::from_named_raw(number[0].into()).unwrap_or(Signal::TERM);
        stop(&mut orders, process, signal);
    }
    let deadline = Instant::now() + KILLED_WITHIN;
    while Instant::now() < deadline {
        descendants::signal_all(Signal::KILL);
        sleep(LOOK_EVERY);
    }
}

/// Ends all in good order, until the time for it is over or the lab ends.
fn stop(orders: &mut UnixStream, group: Pid, signal: Signal) {
    let _ = orders.set_read_timeout(Some(LOOK_EVERY));
    let _ = kill_process_group(group, signal);
    // A stopped process ends only once it continues.
    let _ = kill_process_group(group, Signal::CONT);
    let (deadline, mut are_asked) = (Instant::now() + STOP_WITHIN, false);
    while Instant::now() < deadline {
        // The program's own group comes first: what it started elsewhere is its own to end.
        if !are_asked && test_kill_process_group(group).is_err() {
            descendants::signal_children(Signal::TERM);
            are_asked = true;
        }
        match orders.read(&mut [0]) {
            Err(error) if is_nothing_yet(&error) => {}
            _ => return,
        }
    }
}
