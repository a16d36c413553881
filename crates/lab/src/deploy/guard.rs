//! Nothing the lab started outlives it, not even when the lab itself is killed.
//!
//! The guard, a small process beside the lab, reads from a pipe which process groups start and end.
//! When the lab's end of the pipe closes, for whatever reason, it kills the groups that are left.
//! It can kill only groups that it knows; so a target waits at a gate ([`enter_main`]) until the
//! guard knows it, and exits by itself if the lab dies before that.

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
    /// Shared with events, which register their commands while targets are measured.
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

    /// The command, behind a gate: it starts once it is released.
    pub(crate) fn behind_gate(&self, command: &[String]) -> Vec<String> {
        [&[self.exe.display().to_string(), "enter".to_owned()], command].concat()
    }

    /// Registers a process that waits at its gate and leads a group of its own, and releases it.
    /// One that has died already is found by the check for readiness.
    pub(crate) fn release(&self, child: &mut Child) {
        self.write('+', child.id());
        if let Some(mut gate) = child.stdin.take() {
            let _ = gate.write_all(b"!");
        }
    }

    /// Forgets a group that has ended.
    pub(crate) fn forget(&self, group: u32) {
        self.write('-', group);
    }

    /// Registers a group (`+`) or removes it (`-`).
    fn write(&self, sign: char, group: u32) {
        if let Some(pipe) = &mut *self.pipe.lock().unwrap_or_else(PoisonError::into_inner) {
            // A missing guard doesn't stop the measurement.
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
    let words = guard.behind_gate(command);
    let mut command = Command::new(&words[0]);
    set(command.args(&words[1..])).stdin(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    guard.release(&mut child);
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

/// `loadline guard`: reads which groups run until the pipe closes, and kills those left.
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
