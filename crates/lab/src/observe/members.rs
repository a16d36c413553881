//! The processes of a side and their threads, with their files kept open: the one reader behind
//! [`super::GroupMeter`] and the sensors of process groups. What a target starts in a group or a
//! session of its own belongs to it as long as its parent does; of the lab's own group nothing
//! more does, because targets descend from the lab.
//!
//! CPU time and wait are the scheduler's, in nanoseconds (`/proc/PID/task/TID/schedstat`, first
//! and second figure; Linux Documentation/scheduler/sched-stats.rst). What has ended keeps
//! counting: a thread with its last reading, or with its process's clock ticks where those say
//! more; a process likewise, or with what its parent in the group has waited for. So a process
//! that came and went between two looks is counted to within a tick, if its parent waited for it.

use std::fs::File;

use super::listing::Listing;
use super::roots::Roots;
use super::source::{Scratch, Source, nth_number, number, value_of, words};

/// A group's resource usage: totals that never fall, and current levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) cpu_ns: u64,
    pub(super) user_ticks: u64,
    pub(super) system_ticks: u64,
    /// How long its threads were ready to run and had no core.
    pub(super) waited_ns: u64,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
    pub(super) resident_bytes: u64,
    pub(super) threads: u64,
}

impl Usage {
    /// Both together.
    fn plus(self, other: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns + other.cpu_ns,
            user_ticks: self.user_ticks + other.user_ticks,
            system_ticks: self.system_ticks + other.system_ticks,
            waited_ns: self.waited_ns + other.waited_ns,
            minor_faults: self.minor_faults + other.minor_faults,
            major_faults: self.major_faults + other.major_faults,
            resident_bytes: self.resident_bytes + other.resident_bytes,
            threads: self.threads + other.threads,
        }
    }

    /// The greater of each.
    fn max(self, other: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.max(other.cpu_ns),
            user_ticks: self.user_ticks.max(other.user_ticks),
            system_ticks: self.system_ticks.max(other.system_ticks),
            waited_ns: self.waited_ns.max(other.waited_ns),
            minor_faults: self.minor_faults.max(other.minor_faults),
            major_faults: self.major_faults.max(other.major_faults),
            resident_bytes: self.resident_bytes.max(other.resident_bytes),
            threads: self.threads.max(other.threads),
        }
    }

    /// What was counted since `earlier`; it holds nothing.
    fn since(self, earlier: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            user_ticks: self.user_ticks.saturating_sub(earlier.user_ticks),
            system_ticks: self.system_ticks.saturating_sub(earlier.system_ticks),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            ..Self::default()
        }
    }
}

/// The processes at which one side begins, and what descends from them.
#[derive(Debug)]
pub(super) struct Members {
    roots: Roots,
    /// Whether what descends from a member is one, in whatever group.
    with_descendants: bool,
    listing: Listing,
    /// Every process of the host at the last look, members or not.
    known: Vec<u32>,
    listed: Vec<u32>,
    processes: Vec<Process>,
    /// The last readings of members that have ended.
    ended: Usage,
    /// What members have waited for of their children, since the first look; it never falls.
    waited_for: Usage,
    looked: bool,
    units: Units,
}

#[derive(Clone, Copy, Debug)]
struct Units {
    tick_ns: u64,
    page_bytes: u64,
}

/// Threads of a process whose files stay open here; the others' are opened for each reading.
const OPEN_LIMIT: usize = 64;

impl Members {
    pub(super) fn of(roots: impl Into<Roots>) -> Self {
        let roots = roots.into();
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        let page_bytes = rustix::param::page_size() as u64;
        Self {
            with_descendants: !roots.are_the_labs(),
            roots,
            listing: Listing::open(),
            known: Vec::new(),
            listed: Vec::new(),
            processes: Vec::new(),
            ended: Usage::default(),
            waited_for: Usage::default(),
            looked: false,
            units: Units { tick_ns, page_bytes },
        }
    }

    /// Looks for new members. Only a process that was not there at the last look is opened.
    pub(super) fn look(&mut self, scratch: &mut Scratch) {
        if !self.listing.read(&mut self.listed) {
            return;
        }
        let is_new = |pid: &u32| self.known.binary_search(pid).is_err();
        let mut strangers: Vec<u32> = self.listed.iter().copied().filter(is_new).collect();
        // A child may be listed before its parent.
        loop {
            let members = self.processes.len();
            strangers.retain(|pid| !self.admit(*pid, scratch));
            if self.processes.len() == members || !self.with_descendants {
                break;
            }
        }
        std::mem::swap(&mut self.known, &mut self.listed);
        self.looked = true;
    }

    /// Opens a process if it is a member. Returns whether it is.
    fn admit(&mut self, pid: u32, scratch: &mut Scratch) -> bool {
        let is_child = |stat: &Stat| self.processes.iter().any(|one| one.pid == stat.parent);
        let is_root = |stat: &Stat| self.roots.has(pid, stat.group);
        let belongs = |stat: &Stat| is_root(stat) || (self.with_descendants && is_child(stat));
        let Some(mut process) = Process::open(pid, belongs, scratch) else { return false };
        if !process.update(&self.roots, self.with_descendants, self.units, scratch) {
            return false;
        }
        process.baseline = if self.looked { Usage::default() } else { process.waited_for };
        self.processes.push(process);
        true
    }

    /// The numbers of those that lived at the last look.
    pub(super) fn numbers(&self) -> Vec<u32> {
        self.processes.iter().map(|process| process.pid).collect()
    }

    /// What the group uses; `None` when no member can be read.
    pub(super) fn read(&mut self, scratch: &mut Scratch) -> Option<Usage> {
        let Self { roots, with_descendants, units, ended, .. } = self;
        self.processes.retain_mut(|process| {
            let lives = process.update(roots, *with_descendants, *units, scratch);
            if !lives {
                *ended = ended.plus(Usage { resident_bytes: 0, threads: 0, ..process.usage });
            }
            lives
        });
        let children = |process: &Process| process.waited_for.since(process.baseline);
        let waited_for = self.processes.iter().map(children).fold(Usage::default(), Usage::plus);
        self.waited_for = self.waited_for.max(waited_for);
        let gone = self.ended.max(self.waited_for);
        let living = self.processes.iter().map(|process| process.usage);
        let mut all = living.fold(gone, Usage::plus);
        let again_bytes = self.shared_again_bytes(scratch);
        all.resident_bytes = all.resident_bytes.saturating_sub(again_bytes);
        (!self.processes.is_empty()).then_some(all)
    }

    /// What adding up members' memory counts again of the memory that they share, such as the
    /// buffers of a database: all of it but that of the member that has touched most.
    fn shared_again_bytes(&self, scratch: &mut Scratch) -> u64 {
        if self.processes.len() < 2 {
            return 0;
        }
        let shared = self.processes.iter().filter_map(|process| {
            process.status.read(scratch).and_then(|text| value_of(text, b"RssShmem:"))
        });
        let (sum, most) = shared.fold((0, 0), |(sum, most), kib| (sum + kib, kib.max(most)));
        (sum - most) * 1024
    }

    /// Voluntary and involuntary context switches of the threads that live.
    pub(super) fn switches(&mut self, scratch: &mut Scratch) -> Option<[u64; 2]> {
        let tasks = self.processes.iter_mut().flat_map(|process| &mut process.tasks);
        let mut sum = None;
        for task in tasks {
            let status = task.open("status");
            if let Some(switches) = status.read(scratch).and_then(parse_switches) {
                task.switches = switches;
            }
            let [voluntary, involuntary] = sum.unwrap_or([0, 0]);
            sum = Some([voluntary + task.switches[0], involuntary + task.switches[1]]);
        }
        sum
    }

    /// Open files: the size of `/proc/PID/fd`, which is the number of its entries since Linux 6.2
    /// and 0 before.
    pub(super) fn descriptors(&mut self) -> Option<u64> {
        let sizes = self.processes.iter().map(|process| {
            let size = process.open_files.as_ref()?.metadata().ok()?.len();
            (size > 0).then_some(size)
        });
        let sum: Option<u64> = sizes.sum();
        sum.filter(|_| !self.processes.is_empty())
    }

    /// What living members have had written to disks; `None` where no member's can be read.
    pub(super) fn written_bytes(&self, scratch: &mut Scratch) -> Option<u64> {
        let written = self.processes.iter().filter_map(|process| {
            process.io.read_line(scratch).and_then(|text| value_of(text, b"write_bytes:"))
        });
        written.fold(None, |sum, bytes| Some(sum.unwrap_or(0) + bytes))
    }

    /// Has the kernel keep the most memory that each member holds from now on (`clear_refs`,
    /// proc_pid_clear_refs(5)); false where it may not be asked. What the lab has not started keeps
    /// its peaks, which others may watch.
    pub(super) fn forget_peaks(&self) -> bool {
        let forget =
            |one: &Process| std::fs::write(format!("/proc/{}/clear_refs", one.pid), "5").is_ok();
        let are_ours = matches!(self.roots, Roots::Group(_)) && !self.processes.is_empty();
        are_ours && self.processes.iter().all(forget)
    }

    /// The most memory that each living member has held, at whatever moment, together; what they
    /// share is counted once.
    pub(super) fn peak_bytes(&self, scratch: &mut Scratch) -> Option<u64> {
        let peaks = self.processes.iter().filter_map(|process| {
            process.status.read(scratch).and_then(|text| value_of(text, b"VmHWM:"))
        });
        let peak = peaks.fold(None, |sum, kib| Some(sum.unwrap_or(0) + kib * 1024));
        peak.map(|peak: u64| peak.saturating_sub(self.shared_again_bytes(scratch)))
    }

    /// How many threads ran or waited for at least `least_ns` since this was last asked, how long
    /// the one that ran most did, and the one that waited most.
    pub(super) fn busy_threads(&mut self, least_ns: u64) -> (usize, u64, u64) {
        let tasks = self.processes.iter_mut().flat_map(|process| &mut process.tasks);
        let since = |task: &mut Task| {
            let [ran_ns, waited_ns] =
                std::mem::replace(&mut task.asked, [task.cpu_ns, task.waited_ns]);
            [task.cpu_ns - ran_ns, task.waited_ns - waited_ns]
        };
        busy_of(tasks.map(since), least_ns)
    }
}

/// The same, of threads by how long each ran and how long it waited, in nanoseconds. The waits of
/// many add up to more than any of them lost, so they are not summed.
fn busy_of(threads: impl Iterator<Item = [u64; 2]>, least_ns: u64) -> (usize, u64, u64) {
    threads.fold((0, 0, 0), |(busy, most_ran_ns, most_waited_ns), [ran_ns, waited_ns]| {
        let busy = busy + usize::from(ran_ns + waited_ns >= least_ns);
        (busy, most_ran_ns.max(ran_ns), most_waited_ns.max(waited_ns))
    })
}

#[derive(Debug)]
struct Process {
    pid: u32,
    stat: Source,
    open_files: Option<File>,
    io: Source,
    status: Source,
    tasks: Vec<Task>,
    /// CPU time and wait of threads that have ended.
    ended: (u64, u64),
    usage: Usage,
    waited_for: Usage,
    baseline: Usage,
}

#[derive(Debug)]
struct Task {
    process: u32,
    id: u32,
    /// Kept open, but for threads beyond [`OPEN_LIMIT`].
    schedstat: Option<Source>,
    cpu_ns: u64,
    waited_ns: u64,
    switches: [u64; 2],
    /// CPU time and wait when it was last asked how busy it is.
    asked: [u64; 2],
    lives: bool,
}

impl Process {
    /// Opens a process if it belongs to them.
    fn open(pid: u32, belongs: impl Fn(&Stat) -> bool, scratch: &mut Scratch) -> Option<Self> {
        let stat = Source::open(&format!("/proc/{pid}/stat"));
        stat.read_line(scratch).and_then(Stat::parse).filter(belongs)?;
        Some(Self {
            pid,
            stat,
            open_files: File::open(format!("/proc/{pid}/fd")).ok(),
            io: Source::open(&format!("/proc/{pid}/io")),
            status: Source::open(&format!("/proc/{pid}/status")),
            tasks: Vec::new(),
            ended: (0, 0),
            usage: Usage::default(),
            waited_for: Usage::default(),
            baseline: Usage::default(),
        })
    }

    /// Reads it again; false when it is gone, or is no root any more and not `all` may be members.
    fn update(&mut self, roots: &Roots, all: bool, units: Units, scratch: &mut Scratch) -> bool {
        let stat = self.stat.read_line(scratch).and_then(Stat::parse);
        let stays = |stat: &Stat| all || roots.has(self.pid, stat.group);
        let Some(stat) = stat.filter(stays) else { return false };
        if stat.threads != self.tasks.len() as u64 {
            self.look();
        }
        let mut all_live = true;
        for task in &mut self.tasks {
            task.lives = task.update(scratch);
            all_live &= task.lives;
        }
        if !all_live {
            self.look();
            for task in self.tasks.iter_mut().filter(|task| task.cpu_ns == 0) {
                task.lives = task.update(scratch);
            }
        }
        let (mut cpu_ns, mut waited_ns) = self.ended;
        for task in &self.tasks {
            cpu_ns += task.cpu_ns;
            waited_ns += task.waited_ns;
        }
        let ticks_ns = (stat.user_ticks + stat.system_ticks) * units.tick_ns;
        self.usage = Usage {
            cpu_ns: cpu_ns.max(ticks_ns).max(self.usage.cpu_ns),
            user_ticks: stat.user_ticks,
            system_ticks: stat.system_ticks,
            waited_ns,
            minor_faults: stat.minor_faults,
            major_faults: stat.major_faults,
            resident_bytes: stat.resident_pages * units.page_bytes,
            threads: stat.threads,
        };
        let [minor_faults, major_faults, user_ticks, system_ticks] = stat.of_children;
        self.waited_for = Usage {
            cpu_ns: (user_ticks + system_ticks) * units.tick_ns,
            user_ticks,
            system_ticks,
            minor_faults,
            major_faults,
            ..Usage::default()
        };
        true
    }

    /// Lists its threads anew: what has ended keeps counting, what is new is opened.
    fn look(&mut self) {
        let (cpu_ns, waited_ns) = &mut self.ended;
        self.tasks.retain(|task| {
            if !task.lives {
                *cpu_ns += task.cpu_ns;
                *waited_ns += task.waited_ns;
            }
            task.lives
        });
        let entries = std::fs::read_dir(format!("/proc/{}/task", self.pid));
        for entry in entries.into_iter().flatten().flatten() {
            let id = entry.file_name().to_str().and_then(|name| name.parse().ok());
            let Some(id) = id.filter(|id| self.tasks.iter().all(|task| task.id != *id)) else {
                continue;
            };
            let process = self.pid;
            let (schedstat, switches, lives) = (None, [0; 2], true);
            let (cpu_ns, waited_ns, asked) = (0, 0, [0; 2]);
            let mut task =
                Task { process, id, schedstat, cpu_ns, waited_ns, switches, asked, lives };
            if self.tasks.len() < OPEN_LIMIT {
                task.schedstat = Some(task.open("schedstat"));
            }
            self.tasks.push(task);
        }
    }
}

impl Task {
    fn open(&self, file: &str) -> Source {
        Source::open(&format!("/proc/{}/task/{}/{file}", self.process, self.id))
    }

    /// Reads it again; false when it is gone.
    fn update(&mut self, scratch: &mut Scratch) -> bool {
        let opened;
        let schedstat = match &self.schedstat {
            Some(schedstat) => schedstat,
            None => {
                opened = self.open("schedstat");
                &opened
            }
        };
        let Some(line) = schedstat.read_line(scratch) else { return false };
        let (Some(cpu_ns), Some(waited_ns)) = (nth_number(line, 0), nth_number(line, 1)) else {
            return false;
        };
        (self.cpu_ns, self.waited_ns) = (cpu_ns, waited_ns);
        true
    }
}

/// What is needed of `/proc/PID/stat`; proc_pid_stat(5).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stat {
    parent: u32,
    pub(super) group: u32,
    minor_faults: u64,
    major_faults: u64,
    pub(super) user_ticks: u64,
    pub(super) system_ticks: u64,
    /// Minor and major faults, user and system ticks of children that were waited for.
    of_children: [u64; 4],
    threads: u64,
    resident_pages: u64,
}

impl Stat {
    /// The name in parentheses may itself hold spaces and parentheses: count from the last one.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let end = text.iter().rposition(|byte| *byte == b')')?;
        let mut fields = [0; 22];
        let mut seen = 0;
        for (field, word) in fields.iter_mut().zip(words(&text[end + 1..])) {
            // The state is a letter, and some fields may be negative; none of those is used.
            *field = number(word).unwrap_or(0);
            seen += 1;
        }
        (seen == fields.len()).then(|| Self {
            parent: u32::try_from(fields[1]).unwrap_or(0),
            group: u32::try_from(fields[2]).unwrap_or(0),
            minor_faults: fields[7],
            major_faults: fields[9],
            user_ticks: fields[11],
            system_ticks: fields[12],
            of_children: [fields[8], fields[10], fields[13], fields[14]],
            threads: fields[17],
            resident_pages: fields[21],
        })
    }
}

pub(super) fn parse_switches(text: &[u8]) -> Option<[u64; 2]> {
    let voluntary = value_of(text, b"voluntary_ctxt_switches:")?;
    Some([voluntary, value_of(text, b"nonvoluntary_ctxt_switches:")?])
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    use rustix::process::{Pid, getpgrp};

    use super::*;

    #[test]
    fn a_process_name_with_spaces_and_parentheses_is_no_field() {
        let text = b"7 (a b) c) S 1 42 43 0 -1 4194560 1 2 3 4 11 22 33 44 20 0 5 0 100 9 375 18 1";
        let expected = Stat {
            parent: 1,
            group: 42,
            minor_faults: 1,
            major_faults: 3,
            user_ticks: 11,
            system_ticks: 22,
            of_children: [2, 4, 33, 44],
            threads: 5,
            resident_pages: 375,
        };
        assert_eq!(Stat::parse(text), Some(expected));
        assert_eq!(Stat::parse(b"7 (cut) S 1 42"), None);
    }

    #[test]
    fn switches_are_read_as_they_were_recorded() {
        let text = b"Name:\tcat\nThreads:\t1\nvoluntary_ctxt_switches:\t17\n\
            nonvoluntary_ctxt_switches:\t4\n";
        assert_eq!(parse_switches(text), Some([17, 4]));
        assert_eq!(parse_switches(b"Name:\tcat\n"), None);
    }

    #[test]
    fn the_own_group_is_seen_in_every_respect() {
        let mut scratch = Scratch::new();
        let mut members = Members::of(getpgrp());
        assert_eq!(members.read(&mut scratch), None, "no member was looked for");
        members.look(&mut scratch);
        let usage = members.read(&mut scratch).expect("this process");
        assert!(usage.resident_bytes > 0 && usage.threads > 0 && usage.cpu_ns > 0);
        assert!(members.switches(&mut scratch).is_some());
        let _ = members.descriptors();
    }

    #[test]
    fn a_child_that_was_waited_for_between_two_looks_still_counts() {
        let mut scratch = Scratch::new();
        let mut members = Members::of(getpgrp());
        members.look(&mut scratch);
        let before = members.read(&mut scratch).unwrap();
        let status = Command::new("true").status();
        assert!(status.is_ok_and(|status| status.success()));
        let after = members.read(&mut scratch).unwrap();
        assert!(after.minor_faults > before.minor_faults);
    }

    /// A target's worker that leads a session of its own; `setsid` is util-linux's.
    #[test]
    fn a_child_in_a_session_of_its_own_is_the_targets() {
        let mut target = Command::new("sh");
        let worker = "n=0; while [ $n -lt 100000 ]; do n=$((n+1)); done; echo $$; read line";
        target.args(["-c", &format!("setsid sh -c '{worker}'; true")]).process_group(0);
        let target = target.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut target = target.expect("sh is there");
        let mut line = String::new();
        BufReader::new(target.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let worker: u32 = line.trim().parse().expect("the worker's number, from setsid");
        let mut scratch = Scratch::new();
        let mut members = Members::of(Pid::from_child(&target));
        members.look(&mut scratch);
        assert_eq!(members.numbers(), [target.id(), worker]);
        let worked = std::fs::read_to_string(format!("/proc/{worker}/schedstat")).unwrap();
        let worked_ns = nth_number(worked.as_bytes(), 0).unwrap();
        let usage = members.read(&mut scratch).expect("both can be read");
        assert!(worked_ns > 0 && usage.cpu_ns >= worked_ns, "{usage:?} of {worked}");
        let mut lab = Members::of(getpgrp());
        lab.look(&mut scratch);
        assert!(!lab.numbers().contains(&worker), "what a target does is not the lab's");
        drop(target.stdin.take());
        assert!(target.wait().unwrap().success());
        assert_eq!(members.read(&mut scratch), None, "it has ended");
    }

    #[test]
    fn the_waits_of_many_threads_are_not_one_long_wait() {
        let threads = (0..16).map(|one| [15_000_000 + one, 2_000_000]);
        assert_eq!(busy_of(threads.clone(), 25_000_000), (0, 15_000_015, 2_000_000));
        assert_eq!(busy_of(threads.chain([[0, 45_000_000]]), 25_000_000).2, 45_000_000);
    }

    #[test]
    fn a_group_without_members_is_unseen() {
        let mut scratch = Scratch::new();
        let mut members = Members::of(Pid::from_raw(i32::MAX).unwrap());
        members.look(&mut scratch);
        assert_eq!(members.read(&mut scratch), None);
    }
}
