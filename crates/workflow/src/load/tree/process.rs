//! The server's process as the kernel counts it: CPU time, memory, and whether it works.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// A process is idle when it used less CPU time than this in [`LOOK`], a quarter of it: the pings
/// of others take less.
const IDLE_NS: u64 = 5_000_000;

/// The interval at which its CPU time is read.
const LOOK: Duration = Duration::from_millis(20);

/// How long it may work on behind its answer.
const SETTLED_WITHIN: Duration = Duration::from_secs(5);

/// A process of this host.
#[derive(Clone, Copy, Debug)]
pub(in crate::load) struct Process {
    pid: i32,
    clock: ClockId,
}

impl Process {
    /// The process of this number, where its clock can be read.
    pub(in crate::load) fn of(pid: i32) -> Option<Self> {
        let clock = clock_getcpuclockid(Pid::from_raw(pid)).ok()?;
        Some(Self { pid, clock })
    }

    /// The CPU time of all its threads so far, ended ones included.
    pub(in crate::load) fn cpu_ns(&self) -> u64 {
        let Ok(time) = clock_gettime(self.clock) else { return 0 };
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
    }

    /// Its resident memory.
    pub(in crate::load) fn resident_bytes(&self) -> Option<u64> {
        self.memory("VmRSS:")
    }

    /// The most of it so far.
    pub(in crate::load) fn peak_bytes(&self) -> Option<u64> {
        self.memory("VmHWM:")
    }

    fn memory(&self, of: &str) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(of))?;
        let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes * 1024)
    }

    /// Waits until it is idle: what it does behind an answer is the answer's cost.
    pub(super) fn settle(&self) {
        let begun = Instant::now();
        let mut before = self.cpu_ns();
        while begun.elapsed() < SETTLED_WITHIN {
            std::thread::sleep(LOOK);
            let now = self.cpu_ns();
            if now.saturating_sub(before) < IDLE_NS {
                return;
            }
            before = now;
        }
    }
}
