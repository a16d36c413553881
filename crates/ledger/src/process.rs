//! Whether the process that wrote a run is still there.
//!
//! A process that is killed leaves its run `running`. To recognise that, a run keeps its writer:
//! the process id alone is reused, so the start time of the process is stored beside it, and the
//! boot id, because both restart after a reboot. Process ids of another namespace (a run in a
//! container, seen from outside) mean nothing here, so then the run is believed.

use std::fs;
use std::io::{self, ErrorKind};

/// The identity of one process on one host, for as long as the host is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessMark {
    /// The process id, in the namespace below.
    pub pid: u32,
    /// The pid namespace, as `/proc/self/ns/pid` names it: `pid:[4026531836]`.
    pub pid_namespace: String,
    /// The kernel's id of this boot, from `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// When the process started, in clock ticks since boot (field 22 of `/proc/PID/stat`).
    pub started_ticks: u64,
}

impl ProcessMark {
    /// The mark of the calling process.
    ///
    /// Fails when `/proc` isn't mounted or has an unexpected form.
    pub fn current() -> io::Result<ProcessMark> {
        let pid = std::process::id();
        let stat = stat_of(pid)?.ok_or_else(|| {
            io::Error::new(ErrorKind::NotFound, "/proc doesn't show this process")
        })?;
        Ok(ProcessMark {
            pid,
            pid_namespace: pid_namespace()?,
            boot_id: boot_id()?,
            started_ticks: stat.started_ticks,
        })
    }

    /// Whether the process is known to be gone. Anything that can't be read counts as still
    /// there: calling a live run interrupted would be the worse mistake.
    pub fn is_gone(&self) -> bool {
        if boot_id().is_ok_and(|now| now != self.boot_id) {
            return true;
        }
        if !pid_namespace().is_ok_and(|here| here == self.pid_namespace) {
            return false;
        }
        match stat_of(self.pid) {
            Ok(None) => true,
            Ok(Some(stat)) => stat.ended || stat.started_ticks != self.started_ticks,
            Err(_) => false,
        }
    }
}

fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

fn pid_namespace() -> io::Result<String> {
    Ok(fs::read_link("/proc/self/ns/pid")?.to_string_lossy().into_owned())
}

/// The fields of `/proc/PID/stat` that matter here.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    /// A zombie has ended; only its parent hasn't noticed.
    ended: bool,
    started_ticks: u64,
}

fn stat_of(pid: u32) -> io::Result<Option<Stat>> {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(text) => parse_stat(&text)
            .map(Some)
            .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "/proc/PID/stat not understood")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The command name may hold anything, brackets too; the fields start after its last one.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    // State is field 3, the start time field 22: eighteen lie between.
    let started_ticks = fields.nth(18)?.parse().ok()?;
    Some(Stat { ended: matches!(state, "Z" | "X" | "x"), started_ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_found_behind_an_awkward_command_name() {
        let text = "42 (a) R b) S 1 42 42 0 -1 4194560 100 0 0 0 5 6 0 0 20 0 1 0 777 1000 10";
        assert_eq!(parse_stat(text), Some(Stat { ended: false, started_ticks: 777 }));
        assert_eq!(parse_stat("42 (a"), None);
    }

    #[test]
    fn this_process_is_there_and_its_predecessors_are_not() {
        let mark = ProcessMark::current().unwrap();
        assert!(!mark.is_gone());
        assert!(ProcessMark { started_ticks: mark.started_ticks + 1, ..mark.clone() }.is_gone());
        assert!(ProcessMark { boot_id: "another".into(), ..mark.clone() }.is_gone());
        let elsewhere = "pid:[1]".to_owned();
        assert!(!ProcessMark { pid: u32::MAX, pid_namespace: elsewhere, ..mark }.is_gone());
    }

    #[test]
    fn a_killed_child_is_gone_even_before_it_is_reaped() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let here = ProcessMark::current().unwrap();
        let started_ticks = stat_of(child.id()).unwrap().unwrap().started_ticks;
        let mark = ProcessMark { pid: child.id(), started_ticks, ..here };
        assert!(!mark.is_gone());
        child.kill().unwrap();
        let patience = std::time::Instant::now();
        while !mark.is_gone() && patience.elapsed().as_secs() < 60 {
            std::thread::yield_now();
        }
        assert!(mark.is_gone());
        child.wait().unwrap();
    }
}
