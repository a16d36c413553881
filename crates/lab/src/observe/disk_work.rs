//! CPU time of the kernel's threads that do the work of disks: what a target that writes with
//! fsync makes them do is no other program's.
//!
//! Block devices and file systems work in threads called `kworker`, which show in their name the
//! queue that they last worked for (Documentation/core-api/workqueue.rst, "Monitoring"): only those
//! of queues in [`QUEUES`] count. A worker `kworker/N:` works on core N, `kworker/u` on any.

use super::listing::Listing;
use super::source::{Scratch, Source, nth_number, number};

/// Beginnings of the names of queues of block devices and file systems.
const QUEUES: &[&str] = &[
    "kblockd",
    "flush-",
    "writeback",
    "ext4",
    "xfs",
    "btrfs",
    "dio/",
    "loop",
    "nvme",
    "scsi",
    "dm-",
    "kcryptd",
    "md",
];

/// Threads of file systems that have names of their own.
const THREADS: &[&str] = &["jbd2/", "xfsaild/", "btrfs-"];

/// With more workers than these, all are unseen.
const WORKERS_LIMIT: usize = 1024;

/// CPU time so far, since this program looked first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskWork {
    /// By core, of threads that work on one only.
    pub by_core: Vec<(usize, u64)>,
    /// Of those that may work on any.
    pub anywhere_ns: u64,
}

impl DiskWork {
    /// What was used since `earlier` on these cores; on a part of the host's cores
    /// (`is_all` false) nothing is known of threads that may work on any.
    pub(super) fn since(&self, earlier: &Self, cores: &[usize], is_all: bool) -> u64 {
        let before = |core| earlier.by_core.iter().find(|(one, _)| *one == core).map_or(0, |c| c.1);
        let of_cores = self.by_core.iter().filter(|(core, _)| cores.contains(core));
        let bound: u64 = of_cores.map(|(core, ns)| ns.saturating_sub(before(*core))).sum();
        let anywhere = self.anywhere_ns.saturating_sub(earlier.anywhere_ns);
        bound + if is_all { anywhere } else { 0 }
    }

    fn add(&mut self, core: Option<usize>, ns: u64) {
        let Some(core) = core else {
            self.anywhere_ns += ns;
            return;
        };
        match self.by_core.iter_mut().find(|(one, _)| *one == core) {
            Some((_, sum)) => *sum += ns,
            None => self.by_core.push((core, ns)),
        }
    }
}

/// A thread of the kernel's that may work for disks.
#[derive(Debug)]
struct Worker {
    pid: u32,
    name: Source,
    ran: Source,
    ran_ns: u64,
}

/// Reads it.
#[derive(Debug)]
pub(super) struct DiskWorkReader {
    listing: Listing,
    pids: Vec<u32>,
    /// Every process at the last reading, in ascending order.
    known: Vec<u32>,
    workers: Vec<Worker>,
    sum: DiskWork,
    scratch: Scratch,
}

impl DiskWorkReader {
    pub(super) fn open() -> Self {
        let mut reader = Self {
            listing: Listing::open(),
            pids: Vec::new(),
            known: Vec::new(),
            workers: Vec::new(),
            sum: DiskWork::default(),
            scratch: Scratch::for_lines(),
        };
        // What ran before counts for nothing.
        reader.read();
        reader.sum = DiskWork::default();
        reader
    }

    /// The CPU time so far; `None` is unseen.
    pub(super) fn read(&mut self) -> Option<DiskWork> {
        if !self.listing.read(&mut self.pids) {
            return None;
        }
        let is_there = |worker: &Worker, pids: &[u32]| pids.binary_search(&worker.pid).is_ok();
        self.workers.retain(|worker| is_there(worker, &self.pids));
        for pid in &self.pids {
            if self.known.binary_search(pid).is_err() {
                self.workers.extend(Worker::open(*pid, &mut self.scratch));
            }
        }
        std::mem::swap(&mut self.known, &mut self.pids);
        if self.workers.len() > WORKERS_LIMIT {
            return None;
        }
        for worker in &mut self.workers {
            let Some(core) = worker.name.read_line(&mut self.scratch).and_then(works_for_disks)
            else {
                continue;
            };
            let ran = worker.ran.read_line(&mut self.scratch).and_then(|line| nth_number(line, 0));
            if let Some(ran_ns) = ran {
                self.sum.add(core, ran_ns.saturating_sub(worker.ran_ns));
                worker.ran_ns = ran_ns;
            }
        }
        Some(self.sum.clone())
    }
}

impl Worker {
    /// A process that has just been seen first, if it is such a thread.
    fn open(pid: u32, scratch: &mut Scratch) -> Option<Self> {
        let name = Source::open(&format!("/proc/{pid}/comm"));
        let line = name.read_line(scratch)?;
        let is_worker = line.starts_with(b"kworker/") || is_thread(line);
        let ran = || Source::open(&format!("/proc/{pid}/schedstat"));
        is_worker.then(|| Self { pid, name, ran: ran(), ran_ns: 0 })
    }
}

fn is_thread(name: &[u8]) -> bool {
    THREADS.iter().any(|thread| name.starts_with(thread.as_bytes()))
}

/// Whether a thread of this name works for disks, and if so on which core; on any if `None` is
/// within.
fn works_for_disks(name: &[u8]) -> Option<Option<usize>> {
    let name = name.trim_ascii_end();
    if is_thread(name) {
        return Some(None);
    }
    let rest = name.strip_prefix(b"kworker/")?;
    // The queue follows on a minus, or a plus while it is worked for.
    let at = rest.iter().position(|byte| matches!(byte, b'-' | b'+'))?;
    let queue = &rest[at + 1..];
    let core = rest.split(|byte| *byte == b':').next().and_then(number);
    let is_disk = QUEUES.iter().any(|known| queue.starts_with(known.as_bytes()));
    is_disk.then(|| core.map(|core| core as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_disks_are_known_by_the_queue_that_they_work_for() {
        let of = |name: &str| works_for_disks(format!("{name}\n").as_bytes());
        assert_eq!(of("kworker/1:1H-kblockd"), Some(Some(1)));
        assert_eq!(of("kworker/0:1H+kblockd"), Some(Some(0)));
        assert_eq!(of("kworker/u8:2-flush-254:0"), Some(None));
        assert_eq!(of("kworker/u8:1-ext4-rsv-conversion"), Some(None));
        assert_eq!(of("jbd2/vda-8"), Some(None));
        for other in ["kworker/0:1-virtio_vsock", "kworker/u9:0", "kblockd", "rustc", "kworker/"] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn what_was_used_on_other_cores_is_left_out() {
        let work = |by_core: &[(usize, u64)], anywhere_ns| DiskWork {
            by_core: by_core.to_vec(),
            anywhere_ns,
        };
        let (before, after) = (work(&[(0, 5)], 10), work(&[(0, 12), (1, 20)], 14));
        assert_eq!(after.since(&before, &[0, 1], true), 31);
        assert_eq!(after.since(&before, &[0], false), 7);
        assert_eq!(before.since(&after, &[0, 1], true), 0);
    }

    #[test]
    fn a_host_is_read_without_an_error_and_never_backwards() {
        let mut reader = DiskWorkReader::open();
        let Some(first) = reader.read() else {
            testing::skip("this host has more of the kernel's threads than are looked at");
            return;
        };
        let second = reader.read().expect("the host was seen before");
        assert!(second.anywhere_ns >= first.anywhere_ns);
    }
}
