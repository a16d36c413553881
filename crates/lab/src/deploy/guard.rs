//! Nothing the lab started outlives it, not even when the lab itself is killed.
//!
//! One small process beside the lab is told of every process group that starts and stops. When the
//! lab's end of the pipe closes, for whatever reason, it kills the groups that are left. It kills
//! only what it was told of; so a target waits at its door ([`enter_main`]) until the guard knows
//! of it, and goes away by itself if the lab dies before that.

use std::collections::BTreeSet;
use std::io::{BufRead, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};

/// The lab's end.
#[derive(Debug)]
pub(crate) struct Guard {
    exe: PathBuf,
    child: Child,
    /// Events tell it of their commands while targets are measured.
    pipe: Mutex<Option<ChildStdin>>,
}

impl Guard {
    /// Starts `exe guard`, in a process group of its own so that Ctrl-C does not reach it.
    pub(crate) fn start(exe: &Path) -> std::io::Result<Self> {
        let mut child = Command::new(exe)
            .arg("guard")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let pipe = Mutex::new(child.stdin.take());
        Ok(Self { exe: exe.to_owned(), child, pipe })
    }

    /// A command that waits until it is let in.
    pub(crate) fn at_the_door(&self, command: &[String]) -> Vec<String> {
        [&[self.exe.display().to_string(), "enter".to_owned()], command].concat()
    }

    /// Notes a process that waits at its door and leads a group of its own, and lets it become its
    /// program. One that has gone already is found by whoever looks whether it is ready.
    pub(crate) fn let_in(&self, child: &mut Child) {
        self.tell('+', child.id());
        if let Some(mut door) = child.stdin.take() {
            let _ = door.write_all(b"!");
        }
    }

    /// Forgets a group that has ended.
    pub(crate) fn forget(&self, group: u32) {
        self.tell('-', group);
    }

    /// Says that a group runs (`+`) or has ended (`-`).
    fn tell(&self, sign: char, group: u32) {
        if let Some(pipe) = &mut *self.pipe.lock().unwrap_or_else(PoisonError::into_inner) {
            // A guard that has gone is no reason to stop measuring.
            let _ = writeln!(pipe, "{sign}{group}");
        }
    }
}

/// Runs a command to its end, by `exe`, this program, and with what `set` adds: its folder, its
/// output. It leads a group, which ends when this process does.
///
/// # Errors
/// When neither it nor its guard can be started. One that isn't there exits with 127.
pub fn run_guarded(
    exe: &Path,
    command: &[String],
    set: impl FnOnce(&mut Command) -> &mut Command,
) -> std::io::Result<ExitStatus> {
    let guard = Guard::start(exe)?;
    let words = guard.at_the_door(command);
    let mut command = Command::new(&words[0]);
    set(command.args(&words[1..])).stdin(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    guard.let_in(&mut child);
    let ended = child.wait();
    guard.forget(child.id());
    ended
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.pipe.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        let _ = self.child.wait();
    }
}

/// The guard's own `main`: reads what runs and what has ended until the pipe closes.
pub fn guard_main() -> ExitCode {
    let mut groups = BTreeSet::new();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if let Some(group) = line.strip_prefix('+').and_then(|text| text.parse::<i32>().ok()) {
            groups.insert(group);
        } else if let Some(group) = line.strip_prefix('-').and_then(|text| text.parse().ok()) {
            groups.remove(&group);
        }
    }
    for group in groups.into_iter().filter(|group| *group > 1).filter_map(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    ExitCode::SUCCESS
}

/// `loadline enter PROGRAM …`: waits for one byte on standard input, then becomes the program.
pub fn enter_main(command: &[String]) -> ExitCode {
    let [program, arguments @ ..] = command else { return ExitCode::from(2) };
    if std::io::stdin().lock().read_exact(&mut [0]).is_err() {
        return ExitCode::FAILURE;
    }
    let error = Command::new(program).args(arguments).stdin(Stdio::null()).exec();
    eprintln!("can't start {program}: {error}");
    ExitCode::from(127)
}
