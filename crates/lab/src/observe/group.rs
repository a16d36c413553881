//! CPU time and memory of a process group, the lab's own threads included.
//!
//! Total CPU time is the scheduler's, in nanoseconds (`/proc/PID/task/*/schedstat`, first figure;
//! Linux Documentation/scheduler/sched-stats.rst). The kernel divides it into user and system only
//! by clock ticks (`/proc/PID/stat`, fields 14 and 15; proc_pid_stat(5)), so the parts are the
//! total in the ticks' proportion and carry their sampling error.

use std::collections::HashMap;
use std::fs;

use rustix::process::Pid;

/// CPU time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// User and system together.
    pub total_ns: u64,
    /// Clock ticks in user mode.
    pub user_ticks: u64,
    /// Clock ticks in the kernel.
    pub system_ticks: u64,
}

impl Cpu {
    /// A time whose parts are known exactly: they take the place of the ticks.
    pub fn exact(user_ns: u64, system_ns: u64) -> Self {
        Self { total_ns: user_ns + system_ns, user_ticks: user_ns, system_ticks: system_ns }
    }

    /// What was used since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            total_ns: self.total_ns.saturating_sub(earlier.total_ns),
            user_ticks: self.user_ticks.saturating_sub(earlier.user_ticks),
            system_ticks: self.system_ticks.saturating_sub(earlier.system_ticks),
        }
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            total_ns: self.total_ns + other.total_ns,
            user_ticks: self.user_ticks + other.user_ticks,
            system_ticks: self.system_ticks + other.system_ticks,
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

/// Reads a process group; a member that has ended keeps counting with its last reading.
#[derive(Debug)]
pub struct GroupMeter {
    group: Pid,
    members: HashMap<u32, Cpu>,
    page_bytes: u64,
}

impl GroupMeter {
    /// A meter of the processes in `group`.
    pub fn new(group: Pid) -> Self {
        let page_bytes = rustix::param::page_size() as u64;
        Self { group, members: HashMap::new(), page_bytes }
    }

    /// CPU time that the group has used so far, and its resident bytes; `None` when no member can
    /// be read.
    pub fn read(&mut self) -> Option<(Cpu, u64)> {
        let mut resident_bytes = 0;
        let mut seen = false;
        for pid in processes() {
            let Some(stat) = Stat::read(&format!("/proc/{pid}/stat")) else { continue };
            if stat.group != self.group.as_raw_nonzero().get() {
                continue;
            }
            let Some(total_ns) = schedstat_of_tasks(pid) else { continue };
            seen = true;
            resident_bytes += resident_pages(pid).unwrap_or(0) * self.page_bytes;
            let (user_ticks, system_ticks) = (stat.user_ticks, stat.system_ticks);
            let cpu = Cpu { total_ns, user_ticks, system_ticks };
            // Threads that have ended no longer count in the sum over tasks: it may not go back.
            let last = self.members.entry(pid).or_default();
            *last = Cpu { total_ns: cpu.total_ns.max(last.total_ns), ..cpu };
        }
        let sum = self.members.values().fold(Cpu::default(), |sum, cpu| sum.plus(*cpu));
        seen.then_some((sum, resident_bytes))
    }
}

/// CPU time of the calling thread.
pub fn thread_cpu() -> Cpu {
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let stat = Stat::read("/proc/thread-self/stat");
    Cpu {
        total_ns: clock.tv_sec as u64 * 1_000_000_000 + clock.tv_nsec as u64,
        user_ticks: stat.as_ref().map_or(0, |stat| stat.user_ticks),
        system_ticks: stat.as_ref().map_or(0, |stat| stat.system_ticks),
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

struct Stat {
    group: i32,
    user_ticks: u64,
    system_ticks: u64,
}

impl Stat {
    fn read(path: &str) -> Option<Self> {
        Self::parse(&fs::read_to_string(path).ok()?)
    }

    /// The name in parentheses may itself hold spaces and parentheses: count from the last one.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        let group = fields.nth(2)?.parse().ok()?;
        let user_ticks = fields.nth(8)?.parse().ok()?;
        let system_ticks = fields.next()?.parse().ok()?;
        Some(Self { group, user_ticks, system_ticks })
    }
}

fn schedstat_of_tasks(pid: u32) -> Option<u64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let of_task = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path().join("schedstat")).ok()?;
        text.split_ascii_whitespace().next()?.parse::<u64>().ok()
    };
    tasks.flatten().map(of_task).sum()
}

fn resident_pages(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_spaces_and_parentheses_is_no_field() {
        let text = "7 (a b) c) S 1 42 42 0 -1 4194560 1 0 0 0 11 22 0 0 20 0 1 0 100 1 1";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.group, stat.user_ticks, stat.system_ticks), (42, 11, 22));
    }

    #[test]
    fn the_total_is_divided_in_the_ticks_proportion() {
        let cpu = Cpu { total_ns: 1000, user_ticks: 1, system_ticks: 3 };
        assert_eq!(cpu.split_ns(), Some((250, 750)));
        assert_eq!(Cpu::default().split_ns(), None);
    }

    #[test]
    fn the_own_group_is_seen_and_its_time_grows() {
        let mut meter = GroupMeter::new(rustix::process::getpgrp());
        let (before, resident_bytes) = meter.read().expect("the own group can be read");
        assert!(resident_bytes > 0);
        let mut sum = 0_u64;
        while thread_cpu().total_ns < 5_000_000 {
            sum = sum.wrapping_add(1);
        }
        let (after, _) = meter.read().expect("the own group can be read");
        assert!(after.since(before).total_ns > 0 || sum == 0);
    }
}
