//! Which programs used CPU time between two moments, by name: all of `/proc/PID/stat`, before a
//! slice and, only where that slice is disturbed, after it.
//!
//! A reading costs 3 to 6 µs per process: 0.5 ms with 150 of them, 6 ms with a thousand. It lies
//! between slices, never within what is measured, and is taken again only once the time since
//! the last is [`PAUSE_PER_COST`] times what that took: at most a twentieth of a run's length. CPU
//! times are in clock ticks, exact to one. What came and went in between counts through the parent
//! that waited for it; what no reading can see remains. On which core a program used its time is
//! known only where it may use no others.

use rustix::process::Pid;

use super::listing::Listing;
use super::owner::FORWARDERS;
use super::roots::Roots;
use super::source::{Scratch, Source, number, words};

/// With more processes than these, none is read: programs remain unnamed.
const PROCESSES_LIMIT: usize = 4096;

/// The time from one reading to the next, in what the first of them took.
const PAUSE_PER_COST: u64 = 20;

/// The flag of kernel threads in `/proc/PID/stat` (`PF_KTHREAD`, include/linux/sched.h).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// How far parents are followed: a loop of process numbers that were used again ends there.
const ANCESTORS_LIMIT: usize = 64;

/// The processes of the run, whose CPU time is not other programs'.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunProcesses<'a> {
    /// The target that was measured; `None` where its processes are not known.
    pub(super) target: Option<&'a Roots>,
    /// The names and processes of all targets that run, and of the lab.
    pub(super) followed: &'a [(String, Roots)],
    /// Whether programs that the lab has started are its load.
    pub(super) programs_load: bool,
    /// The run's cores; empty means all.
    pub(super) cpus: &'a [usize],
}

/// Programs by the cores that they used.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OtherPrograms {
    /// Names, and the cores of all programs of that name, most first.
    pub cores: Vec<(String, f64)>,
    /// Whether some of that may have been on cores that are none of the run's: one of them may use
    /// others.
    pub also_elsewhere: bool,
}

impl OtherPrograms {
    /// The cores that these used at least if one of them, whichever, is the target, reached
    /// directly or through one that passes on what it gets.
    pub(super) fn beside_a_target(&self) -> f64 {
        let all = self.cores.iter().filter(|(name, _)| !FORWARDERS.contains(&&name[..]));
        let (sum, most) = all.fold((0.0, 0.0), |(sum, most): (f64, f64), (_, cores)| {
            (sum + cores, most.max(*cores))
        });
        sum - most
    }
}

/// Reads processes.
#[derive(Debug)]
pub(super) struct Census {
    listing: Listing,
    scratch: Scratch,
    pids: Vec<u32>,
    last: Reading,
    tick_ns: u64,
}

/// Every process at a moment.
#[derive(Debug, Default)]
struct Reading {
    at: wire::Ns,
    took_ns: u64,
    /// In the order of their numbers; empty when they couldn't be read.
    processes: Vec<Process>,
}

/// What is needed of `/proc/PID/stat`; proc_pid_stat(5).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Process {
    pid: u32,
    name: [u8; 16],
    parent: u32,
    group: u32,
    is_kernel: bool,
    ticks: u64,
    /// Ticks of children that it has waited for.
    ticks_of_children: u64,
    threads: u64,
    /// When it started, which tells processes of one number apart.
    started: u64,
    /// The core of its first thread.
    cpu: usize,
}

impl Census {
    pub(super) fn open() -> Self {
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        Self {
            listing: Listing::open(),
            scratch: Scratch::for_lines(),
            pids: Vec::new(),
            last: Reading::default(),
            tick_ns,
        }
    }

    /// Reads the start mark of a slice that begins now, unless the last reading is recent.
    pub(super) fn before_slice(&mut self) {
        if self.is_due() {
            self.last = self.read();
        }
    }

    /// The programs, other than the run's own, that used CPU time since the reading before the
    /// slice; `None` is unseen, also where that reading is too recent for what it took. Where the
    /// target's processes are not known this reading alone says whether others ran, so it is taken.
    pub(super) fn after_slice(&mut self, run: &RunProcesses<'_>) -> Option<OtherPrograms> {
        if run.target.is_some() && !self.is_due() {
            return None;
        }
        let now = self.read();
        let before = std::mem::replace(&mut self.last, now);
        let now = &self.last;
        if before.processes.is_empty() || now.processes.is_empty() {
            return None;
        }
        let length_ns = now.at.saturating_sub(before.at).max(1);
        let elsewhere: Vec<usize> = match run.cpus.is_empty() {
            true => Vec::new(),
            false => crate::cpus::cpus_here(),
        };
        let elsewhere: Vec<usize> =
            elsewhere.into_iter().filter(|cpu| !run.cpus.contains(cpu)).collect();
        let place = |process: &Process| Place::of(process, run.cpus, &elsewhere);
        let (used, also_elsewhere) = used(&before.processes, &now.processes, run, &place);
        let cores = |ticks| (ticks * self.tick_ns) as f64 / length_ns as f64;
        let cores = used.into_iter().map(|(name, ticks)| (name, cores(ticks))).collect();
        Some(OtherPrograms { cores, also_elsewhere })
    }

    /// Whether the last reading is old enough for another.
    fn is_due(&self) -> bool {
        let pause_ns = wire::clock::now().saturating_sub(self.last.at);
        pause_ns >= PAUSE_PER_COST.saturating_mul(self.last.took_ns)
    }

    fn read(&mut self) -> Reading {
        let began = wire::clock::now();
        let mut processes = Vec::with_capacity(self.last.processes.len() + 16);
        if self.listing.read(&mut self.pids) && self.pids.len() <= PROCESSES_LIMIT {
            for pid in &self.pids {
                let stat = Source::open(&format!("/proc/{pid}/stat"));
                processes.extend(stat.read_line(&mut self.scratch).and_then(Process::parse));
            }
        }
        let at = wire::clock::now();
        Reading { at, took_ns: at - began, processes }
    }
}

/// Where a process may have used its CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// On the run's cores only.
    Here,
    /// On these or others.
    Anywhere,
    /// On others only.
    Elsewhere,
}

impl Place {
    /// By the cores that it may use; a thread of it may still use fewer.
    fn of(process: &Process, cpus: &[usize], elsewhere: &[usize]) -> Self {
        if elsewhere.is_empty() {
            return Self::Here;
        }
        let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
        let set = pid.and_then(|pid| rustix::thread::sched_getaffinity(Some(pid)).ok());
        let may_use =
            |of: &[usize]| set.as_ref().is_none_or(|set| of.iter().any(|cpu| set.is_set(*cpu)));
        // The kernel says where a thread ran last: of one alone that is something, if not all.
        let was_elsewhere = process.threads <= 1 && !cpus.contains(&process.cpu);
        match (may_use(cpus), may_use(elsewhere)) {
            (false, _) => Self::Elsewhere,
            (true, false) => Self::Here,
            (true, true) if was_elsewhere => Self::Elsewhere,
            (true, true) => Self::Anywhere,
        }
    }
}

impl Process {
    fn parse(text: &[u8]) -> Option<Self> {
        let start = text.iter().position(|byte| *byte == b'(')?;
        let end = text.iter().rposition(|byte| *byte == b')')?;
        let pid = u32::try_from(number(text[..start].trim_ascii())?).ok()?;
        let mut fields = [0; 37];
        let mut seen = 0;
        for (field, word) in fields.iter_mut().zip(words(&text[end + 1..])) {
            // The state is a letter, and some fields may be negative; none of those is used.
            *field = number(word).unwrap_or(0);
            seen += 1;
        }
        let mut name = [0; 16];
        for (place, byte) in name.iter_mut().zip(text.get(start + 1..end)?) {
            *place = *byte;
        }
        (seen == fields.len()).then(|| Self {
            pid,
            name,
            parent: u32::try_from(fields[1]).unwrap_or(0),
            group: u32::try_from(fields[2]).unwrap_or(0),
            is_kernel: fields[6] & KERNEL_THREAD != 0,
            ticks: fields[11] + fields[12],
            ticks_of_children: fields[13] + fields[14],
            threads: fields[17],
            started: fields[19],
            cpu: fields[36] as usize,
        })
    }

    /// Its name, without the numbers of kernel threads and without what separates names in a
    /// sentence.
    fn name(&self) -> String {
        let name = String::from_utf8_lossy(&self.name);
        let name = name.trim_end_matches(['\0', '\u{fffd}']);
        let name = if self.is_kernel { name.split(['/', ':']).next() } else { Some(name) };
        let allowed = |c: char| !c.is_control() && !matches!(c, ',' | ';' | ':' | '(' | ')');
        let shown = |c| if allowed(c) { c } else { '_' };
        name.unwrap_or_default().trim().chars().map(shown).collect()
    }
}

/// The process of this number.
fn find(processes: &[Process], pid: u32) -> Option<&Process> {
    processes.binary_search_by_key(&pid, |one| one.pid).ok().map(|place| &processes[place])
}

/// Ticks by name that processes other than the run's own used from one reading to the other, most
/// first, and whether some of that may have been elsewhere.
fn used(
    before: &[Process],
    after: &[Process],
    run: &RunProcesses<'_>,
    place: &dyn Fn(&Process) -> Place,
) -> (Vec<(String, u64)>, bool) {
    let mut used: Vec<(String, u64)> = Vec::new();
    let mut add = |name: String, ticks: u64| match used.iter_mut().find(|one| one.0 == name) {
        _ if ticks == 0 => {}
        Some((_, sum)) => *sum += ticks,
        None => used.push((name, ticks)),
    };
    let mut also_elsewhere = false;
    for process in after {
        let Some(name) = foreign_name(process, after, run) else { continue };
        let earlier = find(before, process.pid).filter(|one| one.started == process.started);
        let [own, waited] = earlier.map_or([0; 2], |one| [one.ticks, one.ticks_of_children]);
        let own = process.ticks.saturating_sub(own);
        let waited = match process.ticks_of_children.saturating_sub(waited) {
            0 => 0,
            waited => waited.saturating_sub(known_of_ended(process, before, after)),
        };
        if own + waited == 0 {
            continue;
        }
        let places = [Some(process), earlier].map(|one| one.map_or(Place::Here, place));
        if places.contains(&Place::Elsewhere) {
            continue;
        }
        also_elsewhere |= places.contains(&Place::Anywhere);
        add(format!("{name}'s children"), waited);
        add(name, own);
    }
    used.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    (used, also_elsewhere)
}

/// What had been used before by those that have ended in between and of which a process is the
/// nearest ancestor that lives: it has waited for them, or for one that had.
fn known_of_ended(process: &Process, before: &[Process], after: &[Process]) -> u64 {
    let ended = |one: &Process| find(after, one.pid).is_none_or(|now| now.started != one.started);
    let is_heir = |one: &&Process| {
        let mut parent = find(before, one.parent);
        for _ in 0..ANCESTORS_LIMIT {
            match parent {
                Some(one) if one.pid == process.pid => return true,
                Some(one) if ended(one) => parent = find(before, one.parent),
                _ => return false,
            }
        }
        false
    };
    let all = before.iter().filter(|one| ended(one)).filter(is_heir);
    all.map(|one| one.ticks + one.ticks_of_children).sum()
}

/// What a process that isn't the run's own is called; `None` for one that is, and for the kernel's
/// threads for received packets, whose work is the run's. What a target has started is its own, in
/// whatever group it is.
fn foreign_name(process: &Process, all: &[Process], run: &RunProcesses<'_>) -> Option<String> {
    let lab = std::process::id();
    if process.pid == lab {
        return None;
    }
    let name = process.name();
    if process.is_kernel && name == "ksoftirqd" {
        return None;
    }
    let is_measured = |one: &Process| run.target.is_some_and(|roots| roots.has(one.pid, one.group));
    let target_of = |one: &Process| {
        let is_its = |roots: &Roots| !roots.are_the_labs() && roots.has(one.pid, one.group);
        run.followed.iter().find(|(_, roots)| is_its(roots)).map(|(name, _)| name)
    };
    let mut one = process;
    for _ in 0..ANCESTORS_LIMIT {
        if is_measured(one) {
            return None;
        }
        if let Some(target) = target_of(one) {
            return Some(format!("{target} between its slices"));
        }
        if one.parent == lab {
            return (!run.programs_load).then_some(name);
        }
        let Some(parent) = find(all, one.parent).filter(|parent| parent.pid > 1) else { break };
        one = parent;
    }
    // A target is often called so, too.
    let is_alike = find(all, lab).is_some_and(|own| own.name == process.name);
    Some(if is_alike { format!("another {name}") } else { name })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes as the kernel prints them, with these ticks.
    fn line(pid: u32, name: &str, parent: u32, ticks: u64, waited: u64) -> String {
        let flags = if parent == 2 { 2_129_984 } else { 4_194_304 };
        format!(
            "{pid} ({name}) S {parent} {pid} {pid} 0 -1 {flags} 9 9 9 9 {ticks} 5 {waited} 0 20 0 \
             1 0 {started} 49164288 4068 18446744073709551615 1 1 0 0 0 0 0 4096 1256 0 0 0 17 1 \
             0 0 0 0 0 0 0 0 0 0 0 0 0\n",
            started = pid * 10
        )
    }

    fn processes(lines: &[String]) -> Vec<Process> {
        let parse = |line: &String| Process::parse(line.as_bytes()).expect("a line of the kernel");
        let mut all: Vec<Process> = lines.iter().map(parse).collect();
        all.sort_by_key(|one| one.pid);
        all
    }

    const NOTHING: RunProcesses<'_> =
        RunProcesses { target: None, followed: &[], programs_load: false, cpus: &[] };

    fn used_by(before: &[String], after: &[String], run: &RunProcesses<'_>) -> Vec<(String, u64)> {
        used(&processes(before), &processes(after), run, &|_| Place::Here).0
    }

    fn group(number: i32) -> Roots {
        Roots::Group(Pid::from_raw(number).unwrap())
    }

    fn named(all: &[(&str, u64)]) -> Vec<(String, u64)> {
        all.iter().map(|(name, ticks)| ((*name).to_owned(), *ticks)).collect()
    }

    #[test]
    fn a_line_is_read_as_the_kernel_prints_it() {
        let [one] = processes(&[line(7, "a (b) c", 3, 11, 30)])[..] else { unreachable!() };
        assert_eq!((one.pid, one.parent, one.group, one.started), (7, 3, 7, 70));
        assert_eq!((one.ticks, one.ticks_of_children, one.threads, one.cpu), (16, 30, 1, 1));
        assert_eq!(one.name(), "a _b_ c");
        assert_eq!(Process::parse(b"7 (cut) S 1 42"), None);
    }

    #[test]
    fn programs_of_one_name_are_summed_and_the_runs_own_left_out() {
        let lab = std::process::id();
        let all = |ticks: u64| {
            vec![
                line(20, "rustc", 1, 1_000 + 2 * ticks, 0),
                line(21, "rustc", 1, 500 + ticks, 0),
                line(22, "java", 1, 70 + ticks, 0),
                line(23, "sleep", 1, 70, 0),
                line(24, "kworker/0:1-eve", 2, ticks, 0),
                line(25, "kworker/1:2", 2, 3, 0),
                line(26, "ksoftirqd/1", 2, ticks, 0),
                line(27, "loadline", 1, 9 + 2 * ticks, 0),
                line(30, "memcached", lab, 9 * ticks, 0),
                line(31, "loadline", lab, 4 * ticks, 0),
                line(lab, "loadline", 1, 4 * ticks, 0),
            ]
        };
        let followed = [
            ("loadline".to_owned(), group(31)),
            ("generator".to_owned(), Roots::Group(rustix::process::getpgrp())),
        ];
        let target = group(30);
        let run = RunProcesses { target: Some(&target), followed: &followed, ..NOTHING };
        let others = used_by(&all(0), &all(10), &run);
        let expected = [
            ("loadline between its slices", 40),
            ("rustc", 30),
            ("another loadline", 20),
            ("java", 10),
            ("kworker", 10),
        ];
        assert_eq!(others, named(&expected));
    }

    #[test]
    fn programs_that_the_lab_started_are_named_unless_they_are_its_load() {
        let lab = std::process::id();
        let all = |ticks| vec![line(lab, "loadline", 1, 0, 0), line(90, "wrk", lab, ticks, 0)];
        assert_eq!(used_by(&all(0), &all(6), &NOTHING), named(&[("wrk", 6)]));
        let loads = RunProcesses { programs_load: true, ..NOTHING };
        assert_eq!(used_by(&all(0), &all(6), &loads), []);
    }

    #[test]
    fn what_a_target_started_in_a_group_of_its_own_is_the_targets() {
        let all = |ticks| {
            vec![
                line(30, "postgres", std::process::id(), ticks, 0),
                line(31, "worker", 30, 2 * ticks, 0),
                line(32, "helper", 31, ticks, 0),
                line(50, "redis", std::process::id(), 0, 0),
                line(51, "saver", 50, 4 * ticks, 0),
            ]
        };
        let expected = named(&[("redis between its slices", 40)]);
        // Started by the lab, or found at their addresses.
        let found = |pid| Roots::Processes(vec![pid]);
        for [postgres, redis] in [[group(30), group(50)], [found(30), found(50)]] {
            let followed = [("postgres".to_owned(), postgres.clone()), ("redis".to_owned(), redis)];
            let run = RunProcesses { target: Some(&postgres), followed: &followed, ..NOTHING };
            assert_eq!(used_by(&all(0), &all(10), &run), expected);
        }
    }

    #[test]
    fn what_may_use_other_cores_too_is_no_more_than_probable() {
        let before = [line(40, "cc1", 1, 0, 0), line(41, "java", 1, 0, 0)];
        let after = [line(40, "cc1", 1, 50, 0), line(41, "java", 1, 0, 0)];
        let with = |of_cc1, of_java| {
            let place = |one: &Process| if one.pid == 40 { of_cc1 } else { of_java };
            used(&processes(&before), &processes(&after), &NOTHING, &place)
        };
        let cc1 = || named(&[("cc1", 50)]);
        assert_eq!(with(Place::Here, Place::Anywhere), (cc1(), false), "java used nothing");
        assert_eq!(with(Place::Anywhere, Place::Here), (cc1(), true));
        assert_eq!(with(Place::Elsewhere, Place::Here), (Vec::new(), false));
    }

    #[test]
    fn a_process_that_may_use_every_core_may_have_been_on_any() {
        let here = crate::cpus::cpus_here();
        let [first, rest @ ..] = &here[..] else { return };
        let mut own = processes(&[line(std::process::id(), "lab", 1, 0, 0)])[0];
        (own.cpu, own.threads) = (*first, 1);
        assert_eq!(Place::of(&own, &here, &[]), Place::Here, "there are no others");
        if rest.is_empty() {
            return;
        }
        assert_eq!(Place::of(&own, &[*first], rest), Place::Anywhere, "though it ran here last");
        assert_eq!(Place::of(&own, rest, &[*first]), Place::Elsewhere);
        own.threads = 2;
        assert_eq!(Place::of(&own, rest, &[*first]), Place::Anywhere);
    }

    #[test]
    fn a_reading_that_takes_long_is_not_repeated_at_once() {
        let mut census = Census::open();
        census.last = Reading { at: wire::clock::now(), took_ns: u64::MAX, processes: Vec::new() };
        let target = group(30);
        let run = RunProcesses { target: Some(&target), ..NOTHING };
        assert_eq!(census.after_slice(&run), None);
        assert_eq!(census.last.took_ns, u64::MAX, "nothing was read");
        assert_eq!(census.after_slice(&NOTHING), None, "there is nothing to compare with");
        assert!(!census.last.processes.is_empty(), "an unknown target is judged by it");
    }

    #[test]
    fn what_came_and_went_counts_through_the_parent_that_waited_for_it() {
        // cc1 had used 400 ticks before, and 20 more until it ended; `as` came and went within.
        let before = [line(5, "make", 1, 10, 1_000), line(40, "cc1", 5, 395, 0)];
        let after = [line(5, "make", 1, 12, 1_000 + 420 + 7), line(41, "cc1", 5, 25, 0)];
        let others = used_by(&before, &after, &NOTHING);
        assert_eq!(others, named(&[("cc1", 30), ("make's children", 27), ("make", 2)]));
    }

    #[test]
    fn what_a_tree_had_used_before_is_not_counted_again_once_its_root_is_waited_for() {
        // bash waits for cargo, which has waited for rustc: 707 ticks, of which 700 are old.
        let bash = |waited| line(4, "bash", 1, 0, waited);
        let before = [bash(0), line(5, "cargo", 4, 95, 100), line(40, "rustc", 5, 495, 0)];
        let after = [bash(100 + 100 + 500 + 7)];
        assert_eq!(used_by(&before, &after, &NOTHING), named(&[("bash's children", 7)]));
    }

    #[test]
    fn a_number_that_was_used_again_is_another_process() {
        let before = [line(40, "cc1", 1, 395, 0)];
        let again = line(40, "java", 1, 20, 0).replace(" 400 49164288", " 999 49164288");
        assert_eq!(used_by(&before, &[again], &NOTHING), named(&[("java", 25)]));
    }
}
