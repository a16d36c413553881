//! What this host's kernel says of a process, and how long its ways between two threads take.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write, pipe};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::thread;
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu};
use wire::clock::thread_cpu;

use super::super::ping::cpus::{Cpus, pin};
use super::super::ping::trial::quantile;

/// Round trips of a floor.
const ROUNDS: u64 = 1_000;

/// Round trips of a cache line in a sample: the clock costs as much as a fifth of one.
const TRIPS: u64 = 16;

/// What a process, or a thread of it, has used until now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    /// Nanoseconds on a CPU.
    pub(super) cpu_ns: u64,
    /// Nanoseconds ready to run, while others did.
    pub(super) ready_ns: u64,
    /// Context switches.
    pub(super) switches: u64,
}

impl Used {
    /// That of all threads of a process; `None` where that isn't known.
    pub(super) fn of(pid: u32) -> Option<Self> {
        let all = Threads::of(pid)?.0.into_values();
        Some(all.fold(Self::default(), |all, one| Self {
            cpu_ns: all.cpu_ns + one.cpu_ns,
            ready_ns: all.ready_ns + one.ready_ns,
            switches: all.switches + one.switches,
        }))
    }

    /// What it has used since.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            ready_ns: self.ready_ns.saturating_sub(before.ready_ns),
            switches: self.switches.saturating_sub(before.switches),
        }
    }

    /// Which share of a core a thread that has used this wanted: the time in which others had its
    /// CPU counts neither way. It may have slept before, as one does that is woken on a busy host.
    fn wanted(self, took_ns: f64) -> f64 {
        let cpu = self.cpu_ns as f64;
        cpu / (took_ns - self.ready_ns as f64).max(cpu).max(1.0)
    }
}

/// What each thread of a process has used until now, by its number.
#[derive(Debug)]
pub(super) struct Threads(HashMap<OsString, Used>);

impl Threads {
    /// Reads it; `None` where the process isn't there, isn't ours to see, or the kernel doesn't
    /// count.
    pub(super) fn of(pid: u32) -> Option<Self> {
        Self::within(Path::new(&format!("/proc/{pid}/task")))
    }

    /// Reads it in a folder of threads.
    fn within(folder: &Path) -> Option<Self> {
        let mut threads = HashMap::new();
        for task in fs::read_dir(folder).ok()? {
            let task = task.ok()?;
            // A thread may end meanwhile.
            let read = |name: &str| fs::read_to_string(task.path().join(name));
            let (Ok(schedule), Ok(status)) = (read("schedstat"), read("status")) else { continue };
            let mut fields = schedule.split_ascii_whitespace().map(str::parse::<u64>);
            let mut next = || fields.next()?.ok();
            let (cpu_ns, ready_ns, turns) = (next()?, next()?, next()?);
            // One that has had no turn yet; and all of them where the kernel doesn't count.
            if turns == 0 {
                continue;
            }
            let switches = status.lines().filter_map(|line| line.split_once("ctxt_switches:"));
            let switches = switches.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum();
            threads.insert(task.file_name(), Used { cpu_ns, ready_ns, switches });
        }
        // A process has a thread that runs: where none could be read, none was counted.
        (!threads.is_empty()).then_some(Self(threads))
    }

    /// Which share of a core they wanted since, all together.
    pub(super) fn wanted(&self, before: &Self, took_ns: f64) -> f64 {
        let before = |number: &OsString| before.0.get(number).copied().unwrap_or_default();
        self.0.iter().map(|(number, used)| used.since(before(number)).wanted(took_ns)).sum()
    }
}

/// How many acknowledgements of TCP this host has delayed to the end of their time, as far as this
/// network namespace goes; `None` where the kernel doesn't say.
pub(super) fn delayed_acks() -> Option<u64> {
    counter(&fs::read_to_string("/proc/self/net/netstat").ok()?, "TcpExt:", "DelayedACKs")
}

/// A counter of a table that has lines of names, each before one of values.
fn counter(table: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = table.lines().filter(|line| line.starts_with(group));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut both = names.split_ascii_whitespace().zip(values.split_ascii_whitespace());
    both.find(|(one, _)| *one == name)?.1.parse().ok()
}

/// Medians of round trips of eight bytes between two threads of this process, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Floors {
    /// Of two threads that wait for a number on their CPUs; `None` on one core, where one keeps the
    /// other from it.
    pub(super) cache_line_ns: Option<f64>,
    pub(super) futex_ns: f64,
    /// What of that the two are on a CPU: on a virtual machine a core is woken by its hypervisor,
    /// whose work is booked to who asks for it.
    pub(super) futex_cpu_ns: f64,
    pub(super) pipe_ns: f64,
    pub(super) tcp_ns: f64,
    /// What TCP carries between them.
    pub(super) tcp_bytes_per_ns: f64,
}

impl Floors {
    /// Measures them between these cores, which takes some 130 ms.
    pub(super) fn measure(cpus: Cpus) -> anyhow::Result<Self> {
        let cores = two_cores(cpus);
        let line = cores.map(|(near, far)| apart(move || cache_line(near, far)));
        let measured = apart(move || {
            pin(cpus.client)?;
            Self::measure_here(cpus)
        })?;
        Ok(Self { cache_line_ns: line.transpose()?, ..measured })
    }

    fn measure_here(cpus: Cpus) -> anyhow::Result<Self> {
        let (near_in, far_out) = pipe()?;
        let (far_in, near_out) = pipe()?;
        let pipe_ns = ping_pong(cpus, near_in, near_out, far_in, far_out)?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let near = TcpStream::connect(listener.local_addr()?)?;
        let (far, _) = listener.accept()?;
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        let tcp_bytes_per_ns = rate(cpus, &near, far.try_clone()?)?;
        let tcp_ns = ping_pong(cpus, near.try_clone()?, near, far.try_clone()?, far)?;
        let (futex_ns, futex_cpu_ns) = futex(cpus)?;
        let cache_line_ns = None;
        Ok(Self { cache_line_ns, futex_ns, futex_cpu_ns, pipe_ns, tcp_ns, tcp_bytes_per_ns })
    }
}

/// Does something in a thread of its own, so that this one stays where it may be.
fn apart<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    thread::spawn(work).join().unwrap_or_else(|_| anyhow::bail!("the floors of this host"))
}

/// Two cores, those of both sides where they are said; `None` where there is one.
fn two_cores(cpus: Cpus) -> Option<(usize, usize)> {
    let near = cpus.client.unwrap_or_else(sched_getcpu);
    let other = || {
        let allowed = sched_getaffinity(None).ok()?;
        (0..CpuSet::MAX_CPU).find(|cpu| *cpu != near && allowed.is_set(*cpu))
    };
    let far = cpus.server.or_else(other).filter(|far| *far != near)?;
    Some((near, far))
}

/// A number on a cache line of its own.
#[repr(align(128))]
struct Line(AtomicU64);

/// What ends the other thread.
const END: u64 = u64::MAX;

/// A number that two threads hand over, each of which waits for it on its core.
fn cache_line(near: usize, far: usize) -> anyhow::Result<f64> {
    // Where they may not run there, both would wait on one core.
    pin(Some(far))?;
    pin(Some(near))?;
    let turn = Arc::new(Line(AtomicU64::new(0)));
    let theirs = Arc::clone(&turn);
    let far = thread::Builder::new().spawn(move || {
        let pinned = pin(Some(far));
        loop {
            match theirs.0.load(Acquire) {
                END => return pinned,
                turn if turn % 2 == 1 => theirs.0.store(turn + 1, Release),
                _ => std::hint::spin_loop(),
            }
        }
    })?;
    let median = median(|| {
        for _ in 0..TRIPS {
            let back = turn.0.load(Acquire) + 2;
            turn.0.store(back - 1, Release);
            while turn.0.load(Acquire) != back {
                std::hint::spin_loop();
            }
        }
        Ok(())
    });
    turn.0.store(END, Release);
    far.join().unwrap_or_else(|_| anyhow::bail!("the floors of this host"))?;
    Ok(median? / TRIPS as f64)
}

/// The median of `once`.
fn median(mut once: impl FnMut() -> io::Result<()>) -> io::Result<f64> {
    let mut samples = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        once()?;
        samples.push(start.elapsed().as_nanos() as f64);
    }
    samples.sort_by(f64::total_cmp);
    Ok(quantile(&samples, 0.5))
}

/// Bytes by which the rate is measured.
const RATE_BYTES: u64 = 16 << 20;

/// How many bytes pass in a nanosecond.
fn rate(cpus: Cpus, mut near: &TcpStream, far: TcpStream) -> io::Result<f64> {
    let begun = Instant::now();
    let reader = thread::Builder::new().spawn(move || {
        let pinned = pin(cpus.server);
        let read = io::copy(&mut far.take(RATE_BYTES), &mut io::sink());
        pinned.is_ok() && read.is_ok()
    })?;
    let piece = vec![0; 64 << 10];
    for _ in 0..RATE_BYTES / piece.len() as u64 {
        near.write_all(&piece)?;
    }
    match reader.join() {
        Ok(true) => Ok(RATE_BYTES as f64 / begun.elapsed().as_nanos() as f64),
        _ => Err(io::Error::other("loopback: what was sent was not read")),
    }
}

fn ping_pong(
    cpus: Cpus,
    mut near_in: impl Read,
    mut near_out: impl Write,
    mut far_in: impl Read + Send + 'static,
    mut far_out: impl Write + Send + 'static,
) -> io::Result<f64> {
    let echo = thread::Builder::new().spawn(move || {
        // Where it can't be had, the near side has said so.
        let _ = pin(cpus.server);
        let mut word = [0; 8];
        // The end of the near side is its end.
        while far_in.read_exact(&mut word).is_ok() && far_out.write_all(&word).is_ok() {}
    })?;
    let mut word = [7; 8];
    let median = median(|| {
        near_out.write_all(&word)?;
        near_in.read_exact(&mut word)
    });
    drop((near_out, near_in));
    // It does nothing that panics.
    let _ = echo.join();
    median
}

/// Two threads that park and wake each other.
fn futex(cpus: Cpus) -> io::Result<(f64, f64)> {
    let turn = Arc::new(AtomicU64::new(0));
    let (theirs, near) = (Arc::clone(&turn), thread::current());
    let far = thread::Builder::new().spawn(move || {
        // As above.
        let _ = pin(cpus.server);
        for round in 0..ROUNDS {
            while theirs.load(SeqCst) != 2 * round + 1 {
                thread::park();
            }
            theirs.fetch_add(1, SeqCst);
            near.unpark();
        }
        thread_cpu()
    })?;
    let before_ns = thread_cpu();
    let median = median(|| {
        let round = turn.fetch_add(1, SeqCst) + 1;
        far.thread().unpark();
        while turn.load(SeqCst) == round {
            thread::park();
        }
        Ok(())
    });
    let here_ns = thread_cpu() - before_ns;
    // As above.
    let far_ns = far.join().unwrap_or_default();
    Ok((median?, (here_ns + far_ns) as f64 / ROUNDS as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_time_and_its_floors_are_more_than_nothing() {
        let floors = Floors::measure(Cpus::default()).expect("floors");
        // Not since before: threads of other tests end meanwhile, and take along what they had.
        let used = Used::of(std::process::id()).expect("this process");
        assert!(used.cpu_ns > 0 && used.switches > 0, "{used:?}");
        for floor in [floors.futex_ns, floors.pipe_ns, floors.tcp_ns] {
            assert!(floor > 0.0, "{floors:?}");
        }
        assert_eq!(Used::of(u32::MAX), None);
        let is_alone = two_cores(Cpus::default()).is_none();
        assert_eq!(floors.cache_line_ns.is_none(), is_alone, "{floors:?}");
        assert!(floors.cache_line_ns.is_none_or(|floor| floor > 0.0), "{floors:?}");
    }

    #[test]
    fn what_a_kernel_does_not_count_is_not_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let used = || Threads::within(folder.path()).map(|threads| threads.0.into_values().next());
        for thread in ["7", "8"] {
            let place = folder.path().join(thread);
            fs::create_dir(&place).expect("a folder");
            let status = "voluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t1\n";
            fs::write(place.join("status"), status).expect("a file");
        }
        assert_eq!(used(), None, "without schedstat");
        let schedule = folder.path().join("7").join("schedstat");
        fs::write(&schedule, "0 0 0\n").expect("a file");
        assert_eq!(used(), None, "with one that has no figures");
        fs::write(&schedule, "900 20 5\n").expect("a file");
        let right = Used { cpu_ns: 900, ready_ns: 20, switches: 4 };
        assert_eq!(used(), Some(Some(right)), "the other thread has ended meanwhile");
    }

    #[test]
    fn a_counter_is_found_by_its_name() {
        let table = "TcpExt: TW DelayedACKs\nTcpExt: 4 17\nIpExt: InOctets\nIpExt: 9\n";
        assert_eq!(counter(table, "TcpExt:", "DelayedACKs"), Some(17));
        assert_eq!(counter(table, "TcpExt:", "InOctets"), None);
        assert_eq!(counter("TcpExt: TW DelayedACKs\n", "TcpExt:", "DelayedACKs"), None);
    }

    #[test]
    fn a_thread_that_sleeps_wants_no_core_however_long_it_waits_for_one_when_it_wakes() {
        let wanted = |cpu_ns, ready_ns, took| Used { cpu_ns, ready_ns, switches: 0 }.wanted(took);
        assert_eq!(wanted(200, 0, 200.0), 1.0, "it spins");
        assert_eq!(wanted(100, 100, 200.0), 1.0, "it spins, and shares its core");
        assert_eq!(wanted(2, 300, 500.0), 0.01, "it slept for 200");
        assert_eq!(wanted(0, 200, 200.0), 0.0);
        assert_eq!(wanted(9, 0, 8.0), 1.0, "clocks differ");
        let threads = |all: [u64; 2]| {
            let used = |cpu_ns| Used { cpu_ns, ..Used::default() };
            let number = |at: usize| OsString::from(at.to_string());
            Threads(all.iter().enumerate().map(|(at, cpu)| (number(at), used(*cpu))).collect())
        };
        assert_eq!(threads([150, 50]).wanted(&threads([50, 0]), 100.0), 1.5);
    }

    #[test]
    fn two_cores_are_those_that_are_said_and_one_is_none() {
        let of = |client, server| two_cores(Cpus { client, server });
        assert_eq!(of(Some(3), Some(5)), Some((3, 5)));
        assert_eq!(of(Some(3), Some(3)), None);
        let allowed = sched_getaffinity(None).expect("a set");
        let (near, far) = of(None, None).unwrap_or((0, 1));
        assert!(near != far);
        assert_eq!(of(None, None).is_some(), allowed.count() > 1);
    }
}
