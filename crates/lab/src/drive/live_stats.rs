//! The figures of a slice while it is measured, second by second, for live views.
//!
//! A thread of load ends a second's histograms with the first answer of the next one; where there
//! is a live view, it then sends a copy, once a second, through a channel of fixed size that never
//! makes it wait. What has no room is sent with the next second.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use wire::{Ns, clock};

use super::interval::{Figure, Interval};
use super::result::Counts;
use super::tally::Counted;

/// The capacity of the channel, in seconds of one thread.
const KEPT: usize = 256;

/// A second is settled this long after its end: threads end it with their next answer.
const SETTLED_NS: Ns = 200_000_000;

/// What threads of load have measured in one second.
#[derive(Clone, Debug, Default)]
pub struct Second {
    /// Seconds since the zero of the run's clock.
    pub second: u64,
    /// Operations answered.
    pub operations: u64,
    /// Those answered wrongly.
    pub wrong: u64,
    /// Those refused.
    pub refused: u64,
    /// Requests not answered in time.
    pub missing: u64,
    /// Latencies, send lags and ages of updates, over all groups and operations.
    pub times: Vec<(Figure, Counted)>,
}

/// The channel from threads of load to live views.
#[derive(Debug)]
pub struct LiveStats {
    clock_zero: Ns,
    sender: SyncSender<Second>,
    received: Mutex<Received>,
    /// Whether there is a live view.
    wanted: AtomicBool,
    /// Whether a slice is measured that is long enough to be shown.
    open: AtomicBool,
}

#[derive(Debug)]
struct Received {
    channel: Receiver<Second>,
    /// Received seconds that are not settled yet.
    early: Vec<Second>,
}

impl LiveStats {
    /// A channel without a live view.
    pub fn new(clock_zero: Ns) -> Self {
        let (sender, channel) = sync_channel(KEPT);
        let received = Mutex::new(Received { channel, early: Vec::new() });
        let (wanted, open) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { clock_zero, sender, received, wanted, open }
    }

    /// There is a live view from now on.
    pub fn want(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// Returns the seconds that were settled since the last call, and the first one that is not
    /// settled yet.
    pub fn take(&self) -> (Vec<Second>, u64) {
        let settled_ns = clock::now().saturating_sub(self.clock_zero + SETTLED_NS);
        let settled = settled_ns / 1_000_000_000;
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        let Received { channel, early } = &mut *received;
        early.extend(channel.try_iter());
        let taken = early.extract_if(.., |one| one.second < settled).collect();
        (taken, settled)
    }

    /// A slice that is long enough to be shown begins.
    pub(crate) fn begin(&self) {
        self.forget();
        self.open.store(true, Ordering::Relaxed);
    }

    /// It is over; what was not taken of it is dropped, as its whole is reported.
    pub(crate) fn end(&self) {
        self.open.store(false, Ordering::Relaxed);
        self.forget();
    }

    fn forget(&self) {
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        received.early.clear();
        while received.channel.try_recv().is_ok() {}
    }
}

/// What one thread has sent of its current run.
#[derive(Debug, Default)]
pub(super) struct Publisher {
    intervals: usize,
    counts: Counts,
}

impl Publisher {
    /// Sends what was recorded since the last time, as of this second.
    #[cold]
    pub(super) fn publish(
        &mut self,
        live: &LiveStats,
        second: u64,
        counts: Counts,
        finished: &[Interval],
    ) {
        let before = self.counts;
        let is_shown = live.wanted.load(Ordering::Relaxed) && live.open.load(Ordering::Relaxed);
        let new = finished.get(self.intervals..).unwrap_or_default();
        if !is_shown || (new.is_empty() && counts.operations == before.operations) {
            return;
        }
        let news = Second {
            second,
            operations: counts.operations - before.operations,
            wrong: counts.wrong - before.wrong,
            refused: counts.refused - before.refused,
            missing: counts.missing - before.missing,
            times: new.iter().map(|one| (one.figure, one.histogram.clone())).collect(),
        };
        if live.sender.try_send(news).is_ok() {
            *self = Self { intervals: finished.len(), counts };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::tally::Tally;

    fn publish(live: &LiveStats, publisher: &mut Publisher, second: u64, operations: u64) {
        let mut tally = Tally::new();
        tally.record(operations);
        let histogram = tally.take().expect("a value");
        let (figure, group, operation) = (Figure::Latency, 0, 0);
        let one = Interval { figure, group, operation, second, histogram };
        let finished = vec![one; publisher.intervals + 1];
        let counts = Counts { operations, ..Counts::default() };
        publisher.publish(live, second, counts, &finished);
    }

    #[test]
    fn each_second_is_published_once_and_only_to_a_live_view() {
        let live = LiveStats::new(clock::now().saturating_sub(10_000_000_000));
        let mut publisher = Publisher::default();
        live.begin();
        publish(&live, &mut publisher, 1, 5);
        assert!(live.take().0.is_empty(), "there is no live view");
        live.want();
        publish(&live, &mut publisher, 2, 7);
        publish(&live, &mut publisher, 3, 12);
        publish(&live, &mut publisher, 60, 13);
        let (taken, settled) = live.take();
        let rates: Vec<_> = taken.iter().map(|one| (one.second, one.operations)).collect();
        assert_eq!(rates, [(2, 7), (3, 5)], "the last lies ahead");
        assert!((9..60).contains(&settled));
        assert!(live.take().0.is_empty(), "it was published once");
        live.end();
        publish(&live, &mut publisher, 4, 20);
        live.begin();
        assert!(live.take().0.is_empty(), "a slice that is over is reported as a whole");
    }

    #[test]
    fn a_live_view_that_takes_nothing_delays_no_thread() {
        let live = LiveStats::new(clock::now().saturating_sub(10_000_000_000));
        live.want();
        live.begin();
        let mut publisher = Publisher::default();
        let all = 3 * KEPT as u64;
        (1..=all).for_each(|operations| publish(&live, &mut publisher, 1, operations));
        assert_eq!(live.take().0.len(), KEPT);
        publish(&live, &mut publisher, 2, all + 1);
        let (rest, _) = live.take();
        assert_eq!(rest[0].operations, all + 1 - KEPT as u64, "it comes with the next second");
    }
}
