//! Pauses of the host, measured by a thread that sleeps 5 ms at a time on the run's cores and
//! records how late it wakes. Its wait in the run queue is subtracted, because the run's own load
//! may fill the cores; the rest is the host's: a hypervisor that took the core away, firmware, a
//! kernel with interrupts off. No counter shows those pauses, steal included.
//!
//! A pause that is shorter than a sleep may fall between two wakings, and a longer one is seen up
//! to a sleep too short: what is counted is the least there was. Sleeping 1 ms would see more, but
//! waking up costs about 10 µs in a virtual machine: 1 % of a core, where 5 ms cost 0.2 %.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use wire::clock::{MILLISECOND_NS, now};

use super::source::{Scratch, Source, nth_number};

/// The length of a sleep.
const SLEEP_NS: u64 = 5 * MILLISECOND_NS;

/// The lateness from which on the run queue's share is read.
const ASKED_NS: u64 = 300_000;

/// Sleeps in time after which the run queue's share is read as well, so that its sum over time
/// isn't subtracted from the next pause.
const ASKED_EVERY: u32 = 16;

/// A pause longer than this is counted. A sleep ends 0.05 ms late by the timer's slack alone, and
/// hypervisors take a few tenths of a millisecond now and then.
const COUNTED_NS: u64 = MILLISECOND_NS;

/// The number of readers; each gets the longest pause since its own last reading.
const READERS_LIMIT: usize = 4;

/// The pauses seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// The longest since this reader's last reading.
    pub longest_ns: u64,
    /// How many were longer than a millisecond, since the start.
    pub count: u64,
    /// The sum of those, since the start.
    pub lost_ns: u64,
}

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Hiccups {
    shared: Arc<PauseCounters>,
    handle: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct PauseCounters {
    stop: AtomicBool,
    count: AtomicU64,
    lost_ns: AtomicU64,
    readers: AtomicU64,
    longest_ns: [AtomicU64; READERS_LIMIT],
}

impl Hiccups {
    /// Starts the thread on `cpus`; empty is any. Without it, everything is unseen.
    pub(super) fn start(cpus: &[usize]) -> Self {
        let shared = Arc::new(PauseCounters::default());
        let cpus = cpus.to_vec();
        let its = shared.clone();
        let handle = std::thread::Builder::new().name("hiccups".into()).spawn(move || {
            // Where it can't be pinned it watches whichever core it is given.
            let _ = crate::cpus::pin_this_thread(&cpus);
            its.watch();
        });
        Self { shared, handle: handle.ok() }
    }

    /// One more reader.
    pub(super) fn reader(&self) -> PauseReader {
        let index = self.shared.readers.fetch_add(1, Ordering::Relaxed) as usize;
        let seen = self.handle.is_some() && index < READERS_LIMIT;
        PauseReader { shared: self.shared.clone(), index: seen.then_some(index) }
    }
}

impl Drop for Hiccups {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

impl PauseCounters {
    fn watch(&self) {
        let mut scratch = Scratch::for_lines();
        let schedstat = Source::open("/proc/thread-self/schedstat");
        let mut queued = move || {
            let line = schedstat.read_line(&mut scratch);
            line.and_then(|line| nth_number(line, 1)).unwrap_or(0)
        };
        let (mut slept_at, mut queued_ns, mut not_asked) = (now(), queued(), 0);
        while !self.stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_nanos(SLEEP_NS));
            let woke_at = now();
            let late_ns = pause(woke_at - slept_at, 0);
            not_asked += 1;
            if late_ns < ASKED_NS && not_asked < ASKED_EVERY {
                self.note(late_ns);
                slept_at = woke_at;
                continue;
            }
            let queued_by_now_ns = queued();
            self.note(pause(woke_at - slept_at, queued_by_now_ns - queued_ns));
            (slept_at, queued_ns, not_asked) = (now(), queued_by_now_ns, 0);
        }
    }

    fn note(&self, pause_ns: u64) {
        for longest in &self.longest_ns {
            if pause_ns > longest.load(Ordering::Relaxed) {
                longest.fetch_max(pause_ns, Ordering::Relaxed);
            }
        }
        if pause_ns > COUNTED_NS {
            self.count.fetch_add(1, Ordering::Relaxed);
            self.lost_ns.fetch_add(pause_ns, Ordering::Relaxed);
        }
    }
}

/// What of a sleep of `slept_ns` was neither asked for nor spent in the run queue.
fn pause(slept_ns: u64, queued_ns: u64) -> u64 {
    slept_ns.saturating_sub(SLEEP_NS).saturating_sub(queued_ns)
}

/// One reader of the pauses.
#[derive(Debug)]
pub(super) struct PauseReader {
    shared: Arc<PauseCounters>,
    index: Option<usize>,
}

impl PauseReader {
    /// What was seen; `None` when there is no thread, or there are too many readers.
    pub(super) fn read(&mut self) -> Option<Pauses> {
        let longest_ns = &self.shared.longest_ns[self.index?];
        Some(Pauses {
            longest_ns: longest_ns.swap(0, Ordering::Relaxed),
            count: self.shared.count.load(Ordering::Relaxed),
            lost_ns: self.shared.lost_ns.load(Ordering::Relaxed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_a_core_is_no_pause() {
        assert_eq!(pause(5_054_000, 0), 54_000);
        assert_eq!(pause(13_000_000, 8_000_000), 0);
        assert_eq!(pause(13_000_000, 3_000_000), 5_000_000);
        assert_eq!(pause(4_999_000, 0), 0);
    }

    #[test]
    fn every_reader_learns_the_longest_since_its_own_last_reading() {
        let shared = Arc::new(PauseCounters::default());
        let hiccups = Hiccups { shared: shared.clone(), handle: None };
        let mut unseen = hiccups.reader();
        assert_eq!(unseen.read(), None, "there is no thread");
        let mut readers =
            [1, 2].map(|index| PauseReader { shared: shared.clone(), index: Some(index) });
        shared.note(300_000);
        shared.note(12_000_000);
        assert_eq!(readers[0].read().unwrap().longest_ns, 12_000_000);
        shared.note(2_000_000);
        let seen = readers.each_mut().map(|reader| reader.read().unwrap());
        assert_eq!(seen.map(|seen| seen.longest_ns), [2_000_000, 12_000_000]);
        assert_eq!((seen[0].count, seen[0].lost_ns), (2, 14_000_000));
    }
}
