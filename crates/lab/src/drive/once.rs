//! A whole process, run to its end and measured.
//!
//! Each run is watched by a small process of its own (`loadline once`), because the kernel adds up
//! CPU time and peak memory per parent (getrusage(2), `RUSAGE_CHILDREN`). It also ends the run
//! when the lab goes away. What a run leaves behind, daemons among it, is ended with it, so that
//! each begins on the same host. Control plane.

use std::collections::BTreeMap;
use std::io::{BufRead, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike as _};
use nix::time::{clock_getcpuclockid, clock_gettime};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpgrp, kill_process_group, waitid};
use serde::{Deserialize, Serialize};
use wire::ProtocolError;

use crate::descendants::{self, KILLED_WITHIN};

/// The most of a run's output that is read.
const MAX_OUTPUT_BYTES: u64 = 16 << 20;

/// The interval at which a run is polled. The watcher's clock measures it, not this.
const LOOK_EVERY: Duration = Duration::from_micros(500);

/// How long what a run left behind may take to end by itself once it is asked to.
const LEFT_FOR: Duration = Duration::from_secs(1);

/// One copy of the watcher may have so much more memory than another: a few hundred kilobytes were
/// seen.
const MORE_BYTES: u64 = 1 << 20;

/// The watching process' report of one run.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Once {
    pub(super) wall_ns: u64,
    pub(super) user_ns: u64,
    pub(super) system_ns: u64,
    /// CPU time of the watcher and of its copies: the lab's own, no part of the above.
    pub(super) watcher_ns: u64,
    /// The most memory of it and the processes that it waited for, one at a time; none where that
    /// is no more than the watcher's own.
    pub(super) peak_bytes: Option<u64>,
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
}

impl Once {
    /// How it ended, unless it ended well.
    pub(super) fn failure(&self) -> Option<String> {
        match (self.code, self.signal) {
            (Some(0), _) => None,
            (Some(code), _) => Some(format!("it exited with status {code}")),
            (None, signal) => Some(format!("it was ended by signal {}", signal.unwrap_or(0))),
        }
    }
}

/// What is to be run.
pub(super) struct Run<'a> {
    /// This program.
    pub(super) exe: &'a Path,
    pub(super) command: &'a [String],
    pub(super) env: &'a BTreeMap<String, String>,
    /// Where its output goes.
    pub(super) output: &'a Path,
}

/// Runs a command to its end. It is ended when the run is stopped, or not over `within` a time.
pub(super) fn run(
    run: &Run<'_>,
    stop: &AtomicBool,
    within: Option<Duration>,
) -> Result<Once, ProtocolError> {
    let program = &run.command[0];
    let failed = |error: std::io::Error| ProtocolError::new(format!("{program}: {error}"));
    let started = Instant::now();
    let mut child = Command::new(run.exe)
        .arg("once")
        .arg(run.output)
        .args(run.command)
        .envs(run.env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    while !is_over(&child).map_err(failed)? {
        let stopped = stop.load(Ordering::Relaxed);
        if stopped || within.is_some_and(|within| started.elapsed() > within) {
            // Its watcher ends it when this pipe closes.
            drop(child.stdin.take());
            let _ = child.wait();
            let late = || format!("{program} was not over in time");
            return Err(if stopped {
                ProtocolError::new("interrupted")
            } else {
                ProtocolError::new(late())
            });
        }
        std::thread::sleep(LOOK_EVERY);
    }
    let watcher_ns = cpu_ns(&child);
    child.wait().map_err(failed)?;
    let mut said = String::new();
    if let Some(stdout) = &mut child.stdout {
        stdout.read_to_string(&mut said).map_err(failed)?;
    }
    let cant_start = |_| ProtocolError::new(format!("can't start {program}"));
    let once: Once = serde_json::from_str(&said).map_err(cant_start)?;
    Ok(Once { watcher_ns: once.watcher_ns.saturating_add(watcher_ns), ..once })
}

/// Whether a process has ended. It is not waited for, so that its clock can still be read.
fn is_over(child: &Child) -> std::io::Result<bool> {
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(Pid::from_child(child)), how) {
        Err(Errno::INTR) => Ok(false),
        ended => Ok(ended?.is_some()),
    }
}

/// CPU time of a process that has ended, from its start to its end, without its children's: of a
/// short command the watcher takes several times as much as the command.
fn cpu_ns(child: &Child) -> u64 {
    let pid = nix::unistd::Pid::from_raw(Pid::from_child(child).as_raw_nonzero().get());
    let time = clock_getcpuclockid(pid).and_then(clock_gettime);
    time.map_or(0, |time| time.num_nanoseconds().unsigned_abs())
}

/// Where a run's errors go, beside its output.
fn errors_beside(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push("-errors");
    name.into()
}

/// What a run printed, as far as it is read.
pub(super) fn printed(output: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = std::fs::File::open(output) {
        let _ = file.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What a run printed, and then what it complained of.
pub(super) fn output(output: &Path) -> String {
    printed(output) + &printed(&errors_beside(output))
}

/// `loadline once OUTPUT PROGRAM …`: runs the program to its end and reports its cost. Ends it
/// when standard input closes.
pub fn once_main(arguments: &[String]) -> ExitCode {
    let [output, program, rest @ ..] = arguments else { return ExitCode::from(2) };
    std::thread::spawn(|| {
        for line in std::io::stdin().lock().lines() {
            if line.is_err() {
                break;
            }
        }
        let started = Instant::now();
        // This process ends with the last of them.
        while started.elapsed() < KILLED_WITHIN {
            descendants::signal_all(Signal::KILL);
            std::thread::sleep(LOOK_EVERY);
        }
        let _ = kill_process_group(getpgrp(), Signal::KILL);
    });
    match measure(Path::new(output), program, rest) {
        Ok(once) => {
            // A lab that has ended reads nothing.
            let said = serde_json::to_string(&once).unwrap_or_default();
            let _ = writeln!(std::io::stdout(), "{said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{program}: {error}");
            ExitCode::from(1)
        }
    }
}

fn measure(output: &Path, program: &str, rest: &[String]) -> std::io::Result<Once> {
    descendants::adopt()?;
    let file = std::fs::File::create(output)?;
    let mut command = Command::new(program);
    let errors = std::fs::File::create(errors_beside(output))?;
    command.args(rest).stdin(Stdio::null()).stdout(file).stderr(errors);
    // The kernel keeps the most memory of a process over its execve(2): a child begins with the
    // watcher's, which is more than many a command ever has. A copy of the watcher, by fork(2), has
    // only the pages that the watcher has written; the standard library makes one, rather than
    // share the memory, where a group is to be set, though it be the same one. How much a copy has
    // is seen of one that can't become a program.
    let group = rustix::process::getgid().as_raw();
    let copy = Command::new("").gid(group).status();
    let is_copy = copy.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    if is_copy {
        command.gid(group);
    }
    let before = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let started = Instant::now();
    let status = command.status()?;
    let wall_ns = started.elapsed().as_nanos() as u64;
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    descendants::end_all(LEFT_FOR);
    let all = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let ns = |time: TimeVal| time.num_microseconds().unsigned_abs() * 1000;
    let peak_bytes = usage.max_rss().unsigned_abs() * 1024;
    let own_bytes = before.max_rss().unsigned_abs() * 1024 + MORE_BYTES;
    Ok(Once {
        wall_ns,
        // The CPU time of what it left behind is the command's, too.
        user_ns: ns(all.user_time()).saturating_sub(ns(before.user_time())),
        system_ns: ns(all.system_time()).saturating_sub(ns(before.system_time())),
        // The watcher's own clock is read when it has ended, and added.
        watcher_ns: ns(before.user_time()) + ns(before.system_time()),
        peak_bytes: (is_copy && peak_bytes > own_bytes).then_some(peak_bytes),
        code: status.code(),
        signal: status.signal(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_of_a_process_is_known_when_it_has_ended() {
        let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let mut shell = Command::new("sh").args(["-c", script]).spawn().unwrap();
        while !is_over(&shell).unwrap() {
            std::thread::yield_now();
        }
        let used_ns = cpu_ns(&shell);
        assert!(used_ns > 100_000, "{used_ns} ns for 20,000 turns");
        assert_eq!(cpu_ns(&shell), used_ns, "it has ended");
        assert!(shell.wait().unwrap().success(), "it was not waited for before");
    }
}
