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

/// Descendants that are not to be ended, with what descends from them.
#[derive(Debug, Default)]
pub(crate) struct Spared {
    /// When each started: once it has ended another process may be given its number.
    started: BTreeMap<i32, u64>,
    /// Their process groups and sessions, without those of this process.
    groups: BTreeSet<i32>,
}

impl Spared {
    /// All that descends from this process now.
    pub(crate) fn now() -> Self {
        let all = processes();
        let mut spared = Self::default();
        for pid in descendants(&all, &Self::default()) {
            spared.started.insert(pid, all[&pid].started);
            spared.groups.extend([all[&pid].group, all[&pid].session]);
        }
        if let Some(own) = all.get(&getpid().as_raw_nonzero().get()) {
            spared.groups.retain(|group| ![own.group, own.session].contains(group));
        }
        spared
    }

    fn has(&self, pid: i32, all: &BTreeMap<i32, Process>) -> bool {
        let knows = |pid, process: &Process| self.started.get(&pid) == Some(&process.started);
        // A group that another process leads was given the number anew.
        let is_of = |group| {
            self.groups.contains(&group)
                && all.get(&group).is_none_or(|leader| knows(group, leader))
        };
        let process = all.get(&pid);
        process.is_some_and(|one| knows(pid, one) || is_of(one.group) || is_of(one.session))
    }
}

/// Sends a signal to every process that descends from this one.
pub(crate) fn signal_all(signal: Signal) {
    signal_all_but(&Spared::default(), signal);
}

fn signal_all_but(spared: &Spared, signal: Signal) {
    let all = processes();
    descendants(&all, spared).for_each(|pid| send(pid, all[&pid].parent, signal));
}

/// Those of all processes that descend from this one, without the spared ones.
fn descendants(all: &BTreeMap<i32, Process>, spared: &Spared) -> impl Iterator<Item = i32> {
    let own = getpid().as_raw_nonzero().get();
    let above = |pid: &i32| all.get(pid).map(|process| process.parent);
    // Numbers that are given anew while they are read could make a circle.
    let descends = move |pid: &i32| {
        let line = std::iter::successors(Some(*pid), above).take(all.len());
        line.take_while(|one| !spared.has(*one, all)).any(|one| above(&one) == Some(own))
    };
    all.keys().copied().filter(descends)
}

/// Sends a signal to the children of this process, adopted ones among them.
pub(crate) fn signal_children(signal: Signal) {
    let own = getpid().as_raw_nonzero().get();
    children_but(&Spared::default()).into_iter().for_each(|pid| send(pid, own, signal));
}

/// The children of this process, adopted ones among them.
fn children_but(spared: &Spared) -> Vec<i32> {
    let own = getpid().as_raw_nonzero().get();
    let all = processes();
    let children = all.iter().filter(|(_, process)| process.parent == own).map(|(pid, _)| *pid);
    children.filter(|pid| !spared.has(*pid, &all)).collect()
}

/// Kills the descendants that are left, but for the spared ones, and waits for the others. Nothing
/// else in this process may wait for a child meanwhile.
pub(crate) fn kill_all_but(spared: &Spared) {
    let has_ended = |pid: &i32| {
        let number = Pid::from_raw(*pid);
        !matches!(number.map(|pid| waitpid(Some(pid), WaitOptions::NOHANG)), Some(Ok(None)))
    };
    let started = Instant::now();
    // What descends from a child that is left becomes a child when that one ends.
    while children_but(spared).iter().filter(|pid| !has_ended(pid)).count() > 0
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
        Ok(handle) if process(pid).is_some_and(|now| now.parent == parent) => {
            pidfd_send_signal(handle, signal)
        }
        Ok(_) | Err(Errno::SRCH) => Ok(()),
        Err(_) => kill_process(number, signal),
    };
}

#[derive(Debug)]
struct Process {
    parent: i32,
    group: i32,
    session: i32,
    /// In ticks of the clock since the host's start.
    started: u64,
}

/// Every process on this host.
fn processes() -> BTreeMap<i32, Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(|pid| Some((pid, process(pid)?))).collect()
}

/// A process by the fields behind its name, which may hold parentheses itself: the second to the
/// fourth, and the twentieth (`/proc/PID/stat`, proc_pid_stat(5)).
fn process(pid: i32) -> Option<Process> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = str::from_utf8(&stat[end + 1..]).ok()?.split_ascii_whitespace().skip(1);
    let mut number = || fields.next()?.parse().ok();
    let (parent, group, session) = (number()?, number()?, number()?);
    let started = fields.nth(15)?.parse().ok()?;
    Some(Process { parent, group, session, started })
}
