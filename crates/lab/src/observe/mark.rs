//! The readings right before and right after a slice, by which disturbances are found.
//!
//! `/proc/stat` counts in ticks of 10 ms and samples, which is too coarse for a slice of half a
//! second. How long tasks ran on each core in nanoseconds is, best first:
//!
//! 1. `cpuacct.usage_percpu` of the root control group (version 1): the scheduler's own sums, of
//!    the same moments as the threads' CPU times that are held against them. Only the root's
//!    counts the whole host: its folder is the one with a `release_agent`.
//! 2. `/proc/schedstat`, 7th figure of a core's line (Documentation/scheduler/sched-stats.rst,
//!    `rq_cpu_time` in kernel/sched/stats.h). It grows only when a task leaves its core, so a task
//!    that never sleeps appears late and at once: what the core's idle time in `/proc/stat` rules
//!    out is not believed. It needs CONFIG_SCHEDSTATS, as distributions have it.
//! 3. Neither: what is not idle in `/proc/stat`, whose idle time is exact and only printed in
//!    ticks, less one tick a core. Interrupts count as busy here, so it judges with a wider limit.

use std::path::Path;

use wire::Ns;

use super::disk_work::{DiskWork, DiskWorkReader};
use super::group::process_cpu_ns;
use super::hiccup::{PauseReader, Pauses};
use super::sensors::{quota::QuotaReader, swap};
use super::source::{Scratch, Source, lines, nth_number, number, words};

/// A reading of everything that the rules judge.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// When, on the run's clock.
    pub at: Ns,
    /// Every core of the host.
    pub cores: Vec<CoreMark>,
    /// CPU time of this process so far: the lab, its load and its watch.
    pub lab_ns: u64,
    /// Pages swapped in and out, so far, by anybody; `None` is unseen.
    pub swapped_pages: Option<u64>,
    /// Pauses; the longest is since the mark before. `None` is unseen.
    pub pauses: Option<Pauses>,
    /// Periods of the control group's CPU quota so far, and those in which it was used up; `None`
    /// is unseen, or no quota.
    pub quota_periods: Option<[u64; 2]>,
    /// CPU time of the kernel's threads for disks so far; `None` is unseen.
    pub disk_work: Option<DiskWork>,
}

/// One core. Times are since the host's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreMark {
    /// Its number.
    pub cpu: usize,
    /// How long tasks ran on it, other than its `ksoftirqd`; `None` where the kernel only counts
    /// ticks.
    pub ran_ns: Option<u64>,
    /// How long it had nothing to do, in whole ticks.
    pub idle_ns: u64,
    /// How long the hypervisor kept it, in whole ticks.
    pub steal_ns: u64,
}

/// Reads marks.
#[derive(Debug)]
pub(super) struct Marker {
    clock_zero: Ns,
    tick_ns: u64,
    scratch: Scratch,
    stat: Source,
    swap: Source,
    quota: QuotaReader,
    ran: Ran,
    softirq_threads: Vec<(usize, Source)>,
    pauses: PauseReader,
    disk_work: DiskWorkReader,
}

#[derive(Debug)]
enum Ran {
    ControlGroup(Source),
    Schedstat(Source),
    Unseen,
}

/// Where the root control group for CPU accounting is mounted.
const CONTROL_GROUPS: &[&str] = &["/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/cpu,cpuacct"];

impl Marker {
    pub(super) fn open(clock_zero: Ns, pauses: PauseReader) -> Self {
        Self {
            clock_zero,
            tick_ns: 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1),
            scratch: Scratch::new(),
            stat: Source::open("/proc/stat"),
            swap: Source::open("/proc/vmstat"),
            quota: QuotaReader::open(),
            ran: Ran::open(),
            softirq_threads: softirq_threads(),
            pauses,
            disk_work: DiskWorkReader::open(),
        }
    }

    pub(super) fn read(&mut self) -> Mark {
        let scratch = &mut self.scratch;
        let text = self.stat.read(scratch).unwrap_or_default();
        let mut cores = cores(text, self.tick_ns);
        match &self.ran {
            Ran::ControlGroup(source) => {
                ran_in_control_group(source.read(scratch).unwrap_or_default(), &mut cores);
            }
            Ran::Schedstat(source) => {
                ran_in_schedstat(source.read(scratch).unwrap_or_default(), &mut cores);
            }
            Ran::Unseen => {}
        }
        for (cpu, source) in &self.softirq_threads {
            let ran_ns = source.read_line(scratch).and_then(|line| nth_number(line, 0));
            let core = cores.iter_mut().find(|core| core.cpu == *cpu);
            if let (Some(core), Some(kernel_ns)) = (core, ran_ns) {
                core.ran_ns = core.ran_ns.map(|ran_ns| ran_ns.saturating_sub(kernel_ns));
            }
        }
        let swapped_pages = self.swap.read(scratch).and_then(swap::pages);
        let quota_periods = self.quota.periods(scratch);
        Mark {
            at: wire::clock::now() - self.clock_zero,
            cores,
            lab_ns: process_cpu_ns(),
            swapped_pages,
            pauses: self.pauses.read(),
            quota_periods,
            disk_work: self.disk_work.read(),
        }
    }
}

impl Ran {
    fn open() -> Self {
        let root = |folder: &&&str| Path::new(folder).join("release_agent").exists();
        if let Some(folder) = CONTROL_GROUPS.iter().find(root) {
            return Self::ControlGroup(Source::open(&format!("{folder}/cpuacct.usage_percpu")));
        }
        match Path::new("/proc/schedstat").exists() {
            true => Self::Schedstat(Source::open("/proc/schedstat")),
            false => Self::Unseen,
        }
    }
}

/// The kernel's `ksoftirqd` threads, which process received packets under load. On loopback that
/// is work of the target and of the load, so it isn't foreign.
fn softirq_threads() -> Vec<(usize, Source)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let thread = |entry: std::fs::DirEntry| {
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        let cpu = name.trim_end().strip_prefix("ksoftirqd/")?.parse().ok()?;
        Some((cpu, Source::open(entry.path().join("schedstat").to_str()?)))
    };
    entries.filter_map(thread).collect()
}

fn cores(text: &[u8], tick_ns: u64) -> Vec<CoreMark> {
    let mut cores = Vec::new();
    for line in lines(text).take_while(|line| line.starts_with(b"cpu")) {
        let Some(cpu) = words(line).next().and_then(|name| number(&name[3..])) else { continue };
        let ticks = |index| nth_number(line, index).unwrap_or(0) * tick_ns;
        let (idle, iowait, steal) = (ticks(4), ticks(5), ticks(8));
        let idle_ns = idle + iowait;
        cores.push(CoreMark { cpu: cpu as usize, ran_ns: None, idle_ns, steal_ns: steal });
    }
    cores
}

/// One figure for each core that there may be, in their order.
fn ran_in_control_group(text: &[u8], cores: &mut [CoreMark]) {
    for core in cores {
        core.ran_ns = nth_number(text, core.cpu);
    }
}

fn ran_in_schedstat(text: &[u8], cores: &mut [CoreMark]) {
    for line in lines(text).filter(|line| line.starts_with(b"cpu")) {
        let cpu = words(line).next().and_then(|name| number(&name[3..]));
        if let Some(core) = cores.iter_mut().find(|core| Some(core.cpu as u64) == cpu) {
            core.ran_ns = nth_number(line, 7);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &[u8] = b"cpu  139380 7858 23132 453643 1109 0 8104 158 0 0\n\
        cpu0 66978 3674 11242 230302 233 0 4194 82 0 0\n\
        cpu2 72402 4183 11890 223341 875 0 3910 76 0 0\nintr 5197424 0\n";

    #[test]
    fn idle_and_stolen_time_are_read_as_they_were_recorded() {
        let cores = cores(STAT, 10_000_000);
        let tick = |ns| ns / 10_000_000;
        let read: Vec<_> =
            cores.iter().map(|core| (core.cpu, tick(core.idle_ns), tick(core.steal_ns))).collect();
        assert_eq!(read, [(0, 230_535, 82), (2, 224_216, 76)]);
    }

    #[test]
    fn what_ran_is_found_by_the_cores_number_in_both_sources() {
        let mut cores = cores(STAT, 10_000_000);
        ran_in_control_group(b"1129626234512 5 1239366452199 \n", &mut cores);
        assert_eq!(cores[0].ran_ns, Some(1_129_626_234_512));
        assert_eq!(cores[1].ran_ns, Some(1_239_366_452_199));
        let text = b"version 15\ntimestamp 4295892\n\
            cpu0 0 0 0 0 0 0 75223565 10131122 407\ndomain0 03 0 0 0 0 0 0 0 0\n\
            cpu1 0 0 0 0 0 0 8 9 10\ncpu2 0 0 0 0 0 0 75223566 0 1\n";
        ran_in_schedstat(text, &mut cores);
        assert_eq!([cores[0].ran_ns, cores[1].ran_ns], [Some(75_223_565), Some(75_223_566)]);
    }
}
