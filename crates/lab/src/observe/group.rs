//! CPU time and memory of a process group and, of a target's, of what descends from it; the lab's
//! own threads included.
//!
//! Total CPU time is the scheduler's, in nanoseconds (see `members.rs`). The kernel divides it
//! into user and system only by clock ticks (`/proc/PID/stat`, fields 14 and 15; proc_pid_stat(5)),
//! so the parts are the total in the ticks' proportion and carry their sampling error.

use super::members::{Members, Stat, parse_switches};
use super::roots::Roots;
use super::source::{Scratch, Source, nth_number};

/// CPU time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// User and system together.
    pub total_ns: u64,
    /// Clock ticks in user mode.
    pub user_ticks: u64,
    /// Clock ticks in the kernel.
    pub system_ticks: u64,
    /// How long threads were ready to run and had no core; no part of the total.
    pub waited_ns: u64,
    /// Voluntary and involuntary context switches.
    pub switches: [u64; 2],
}

impl Cpu {
    /// A time whose parts are known exactly: they take the place of the ticks.
    pub fn exact(user_ns: u64, system_ns: u64) -> Self {
        let total_ns = user_ns + system_ns;
        Self {
            total_ns,
            user_ticks: user_ns,
            system_ticks: system_ns,
            waited_ns: 0,
            switches: [0; 2],
        }
    }

    /// What was used since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            total_ns: self.total_ns.saturating_sub(earlier.total_ns),
            user_ticks: self.user_ticks.saturating_sub(earlier.user_ticks),
            system_ticks: self.system_ticks.saturating_sub(earlier.system_ticks),
            waited_ns: self.waited_ns.saturating_sub(earlier.waited_ns),
            switches: std::array::from_fn(|kind| {
                self.switches[kind].saturating_sub(earlier.switches[kind])
            }),
        }
    }

    /// The same with no longer a wait than this number of threads can have had in this time: the
    /// kernel books a wait as a whole when it ends.
    pub fn waiting_within(self, length_ns: u64, threads: Option<usize>) -> Self {
        let most_ns = length_ns.saturating_mul(threads.unwrap_or(1).max(1) as u64);
        Self { waited_ns: self.waited_ns.min(most_ns), ..self }
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            total_ns: self.total_ns + other.total_ns,
            user_ticks: self.user_ticks + other.user_ticks,
            system_ticks: self.system_ticks + other.system_ticks,
            waited_ns: self.waited_ns + other.waited_ns,
            switches: std::array::from_fn(|kind| self.switches[kind] + other.switches[kind]),
        }
    }

    /// The total divided into user and system nanoseconds; `None` before the first tick.
    pub fn split_ns(self) -> Option<(u64, u64)> {
        let ticks = self.user_ticks + self.system_ticks;
        let user = u128::from(self.total_ns) * u128::from(self.user_ticks);
        let user = user.checked_div(u128::from(ticks))? as u64;
        Some((user, self.total_ns - user))
    }
}

/// The least share of the time for which a runnable thread runs or waits for a core.
const RUNNABLE_SHARE: f64 = 0.05;

/// Reads a process group; a member that has ended keeps counting.
#[derive(Debug)]
pub struct GroupMeter {
    members: Members,
    scratch: Scratch,
    read_at: wire::Ns,
    runnable: usize,
    busiest_ns: u64,
    most_waited_ns: u64,
    knows_peak: bool,
}

impl GroupMeter {
    /// A meter of a process group, or of processes that ran already.
    pub fn new(roots: impl Into<Roots>) -> Self {
        let (members, scratch) = (Members::of(roots), Scratch::for_lines());
        Self {
            members,
            scratch,
            read_at: 0,
            runnable: 0,
            busiest_ns: 0,
            most_waited_ns: 0,
            knows_peak: false,
        }
    }

    /// CPU time that the group has used so far, and its resident bytes; `None` when no member can
    /// be read.
    pub fn read(&mut self) -> Option<(Cpu, u64)> {
        self.members.look(&mut self.scratch);
        let usage = self.members.read(&mut self.scratch)?;
        let now = wire::clock::now();
        let elapsed_ns = now - std::mem::replace(&mut self.read_at, now);
        let least_ns = (elapsed_ns as f64 * RUNNABLE_SHARE) as u64;
        (self.runnable, self.busiest_ns, self.most_waited_ns) = self.members.busy_threads(least_ns);
        let cpu = Cpu {
            total_ns: usage.cpu_ns,
            user_ticks: usage.user_ticks,
            system_ticks: usage.system_ticks,
            waited_ns: usage.waited_ns,
            switches: self.members.switches(&mut self.scratch).unwrap_or_default(),
        };
        Some((cpu, usage.resident_bytes))
    }

    /// The processes at the last look.
    pub fn processes(&self) -> Vec<u32> {
        self.members.numbers()
    }

    /// CPU time of the busiest thread between the last two readings.
    pub fn busiest_thread_ns(&self) -> u64 {
        self.busiest_ns
    }

    /// How long the thread that waited most had no core between the last two readings.
    pub fn most_waited_ns(&self) -> u64 {
        self.most_waited_ns
    }

    /// Open files and sockets of the group; `None` is unseen.
    pub fn descriptors(&mut self) -> Option<u64> {
        self.members.descriptors()
    }

    /// Bytes that the group's living members have written to disks; `None` is unseen.
    pub fn written_bytes(&mut self) -> Option<u64> {
        self.members.written_bytes(&mut self.scratch)
    }

    /// Starts a new period for [`GroupMeter::peak_bytes`].
    pub fn forget_peak(&mut self) {
        self.knows_peak = self.members.forget_peaks();
    }

    /// The sum of the members' peaks of resident bytes in that period, each at its own time;
    /// `None` is unseen.
    pub fn peak_bytes(&mut self) -> Option<u64> {
        self.members.peak_bytes(&mut self.scratch).filter(|_| self.knows_peak)
    }

    /// The number of threads that ran or waited for a core for more than a twentieth of the time
    /// between the last two readings.
    pub fn runnable_threads(&self) -> usize {
        self.runnable
    }
}

/// The processes of a group now, and of a target's what descends from it.
pub fn group_members(roots: impl Into<Roots>) -> Vec<u32> {
    let mut members = Members::of(roots);
    members.look(&mut Scratch::for_lines());
    members.numbers()
}

/// The threads of this process that are load.
pub fn load_threads() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let load = |entry: std::fs::DirEntry| {
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        (name.trim_end() == "load").then(|| entry.file_name().to_str()?.parse().ok())?
    };
    entries.filter_map(load).collect()
}

/// CPU time of this whole process so far, threads that have ended included.
pub fn process_cpu_ns() -> u64 {
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    clock.tv_sec.unsigned_abs() * 1_000_000_000 + clock.tv_nsec.unsigned_abs()
}

/// Resident bytes of this process.
pub fn own_resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// CPU time of the calling thread.
pub fn thread_cpu() -> Cpu {
    let mut scratch = Scratch::for_lines();
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let stat = Source::open("/proc/thread-self/stat");
    let stat = stat.read_line(&mut scratch).and_then(Stat::parse);
    let schedstat = Source::open("/proc/thread-self/schedstat");
    let waited_ns = schedstat.read_line(&mut scratch).and_then(|line| nth_number(line, 1));
    let status = Source::open("/proc/thread-self/status");
    let switches = status.read(&mut scratch).and_then(parse_switches);
    Cpu {
        total_ns: clock.tv_sec as u64 * 1_000_000_000 + clock.tv_nsec as u64,
        user_ticks: stat.as_ref().map_or(0, |stat| stat.user_ticks),
        system_ticks: stat.as_ref().map_or(0, |stat| stat.system_ticks),
        waited_ns: waited_ns.unwrap_or(0),
        switches: switches.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_divided_in_the_ticks_proportion() {
        let cpu =
            Cpu { total_ns: 1000, user_ticks: 1, system_ticks: 3, waited_ns: 7, ..Cpu::default() };
        assert_eq!(cpu.split_ns(), Some((250, 750)));
        assert_eq!(Cpu::default().split_ns(), None);
    }

    #[test]
    fn threads_wait_no_longer_than_a_slice_lasts() {
        let cpu = Cpu { waited_ns: 1_500, ..Cpu::default() };
        assert_eq!(cpu.waiting_within(500, Some(2)).waited_ns, 1_000);
        assert_eq!(cpu.waiting_within(500, Some(4)).waited_ns, 1_500);
        assert_eq!(cpu.waiting_within(500, Some(0)).waited_ns, 500);
    }

    #[test]
    fn memory_that_was_held_only_for_a_moment_is_seen() {
        const HELD_BYTES: usize = 64 << 20;
        let mut meter = GroupMeter::new(rustix::process::getpgrp());
        assert_eq!(meter.peak_bytes(), None, "no peak was asked for");
        let (_, before_bytes) = meter.read().expect("the own group can be read");
        meter.forget_peak();
        drop(std::hint::black_box(vec![1_u8; HELD_BYTES]));
        let Some(peak_bytes) = meter.peak_bytes() else {
            testing::skip("this kernel forgets no peak of memory (clear_refs)");
            return;
        };
        assert!(peak_bytes >= before_bytes.max(HELD_BYTES as u64), "{peak_bytes}");
    }

    #[test]
    fn the_own_group_is_seen_and_its_time_grows() {
        let mut meter = GroupMeter::new(rustix::process::getpgrp());
        let (before, resident_bytes) = meter.read().expect("the own group can be read");
        assert!(resident_bytes > 0);
        // The kernel counts a running thread's time at ticks and switches, so it may take a few.
        let grown = (0..10_000_000).any(|_| {
            let (now, _) = meter.read().expect("the own group can be read");
            now.since(before).total_ns > 0
        });
        assert!(grown, "time stands still");
    }
}
