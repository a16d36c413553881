//! The processes that descend from this one. One that adopts orphans (`PR_SET_CHILD_SUBREAPER`,
//! prctl(2)) finds here also what became a daemon or leads a session of its own, as the parent of
//! an orphan is then this process. Control plane.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Result;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, pidfd_open, pidfd_send_signal,
    set_child_subreaper, wait, waitpid,
};

/// The period at which processes that are to end are looked for.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(2);

/// How long a killed process may take to end: one that waits for a disk can't end before that.
pub(crate) const KILLED_WITHIN: Duration = Duration::from_secs(5);

/// Makes this process the parent of every descendant whose own parent ends.
///
/// # Errors
/// The system's.
pub(crate) fn adopt() -> Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Sends a signal to every process that descends from this one.
pub(crate) fn signal_all(signal: Signal) {
    signal_all_but(&BTreeSet::new(), signal);
}

/// The same without these children of it and what descends from them.
fn signal_all_but(spared: &BTreeSet<i32>, signal: Signal) {
    let parents = parents();
    let own = getpid().as_raw_nonzero().get();
    let above = |pid: &i32| parents.get(pid).copied();
    // Numbers that are given anew while they are read could make a circle.
    let descends = |pid: i32| {
        let line = std::iter::successors(Some(pid), above).take(parents.len());
        line.take_while(|one| !spared.contains(one)).any(|one| above(&one) == Some(own))
    };
    for (pid, parent) in parents.iter().filter(|(pid, _)| descends(**pid)) {
        send(*pid, *parent, signal);
    }
}

/// Sends a signal to the children of this process, adopted ones among them.
pub(crate) fn signal_children(signal: Signal) {
    let own = getpid().as_raw_nonzero().get();
    children().for_each(|pid| send(pid, own, signal));
}

/// The children of this process, adopted ones among them.
pub(crate) fn children() -> impl Iterator<Item = i32> {
    let own = getpid().as_raw_nonzero().get();
    parents().into_iter().filter(move |(_, parent)| *parent == own).map(|(pid, _)| pid)
}

/// Kills the descendants that are left, but for these children and what descends from them, and
/// waits for the others. Nothing else in this process may wait for a child meanwhile.
pub(crate) fn kill_all_but(spared: &BTreeSet<i32>) {
    let has_ended = |pid: i32| {
        let number = Pid::from_raw(pid);
        !matches!(number.map(|pid| waitpid(Some(pid), WaitOptions::NOHANG)), Some(Ok(None)))
    };
    let started = Instant::now();
    // What descends from a child that is left becomes a child when that one ends.
    while children().filter(|pid| !spared.contains(pid)).filter(|pid| !has_ended(*pid)).count() > 0
        && started.elapsed() < KILLED_WITHIN
    {
        signal_all_but(spared, Signal::KILL);
        sleep(LOOK_EVERY);
    }
}

/// Ends the descendants that are left, with SIGTERM and after `grace` with SIGKILL, and waits for
/// them. Nothing else in this process may wait for a child.
pub(crate) fn end_all(grace: Duration) {
    let (started, mut is_asked) = (Instant::now(), false);
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => continue,
            Err(_) => return,
            Ok(None) if started.elapsed() > grace + KILLED_WITHIN => return,
            Ok(None) if started.elapsed() > grace => signal_all(Signal::KILL),
            Ok(None) if !is_asked => {
                is_asked = true;
                signal_all(Signal::TERM);
            }
            Ok(None) => {}
        }
        sleep(LOOK_EVERY);
    }
}

/// Sends a signal to a process, unless its number was given to another one meanwhile.
fn send(pid: i32, parent: i32, signal: Signal) {
    let Some(number) = Pid::from_raw(pid) else { return };
    // What has ended needs no signal.
    let _ = match pidfd_open(number, PidfdFlags::empty()) {
        Ok(process) if parent_of(pid) == Some(parent) => pidfd_send_signal(process, signal),
        Ok(_) | Err(Errno::SRCH) => Ok(()),
        Err(_) => kill_process(number, signal),
    };
}

/// The parent of every process on this host.
fn parents() -> BTreeMap<i32, i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(|pid| Some((pid, parent_of(pid)?))).collect()
}

/// The parent of a process: the second field behind its name, which may hold parentheses itself
/// (`/proc/PID/stat`, proc_pid_stat(5)).
fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = str::from_utf8(&stat[end + 1..]).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}
