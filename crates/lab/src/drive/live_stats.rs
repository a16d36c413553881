//! What a slice shows while it is measured, second by second, for live views.
//!
//! A thread of load sets a second's latencies aside when the first answer of the next one comes;
//! where somebody looks on it hands a copy on then, once a second, through a channel of fixed size
//! that never makes it wait. What has no room is told with the next second.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use wire::{Ns, clock};

use super::interval::{Figure, Interval};
use super::tally::Counted;

/// Seconds of threads that are kept until somebody takes them.
const KEPT: usize = 256;

/// A second is told of once it is over for so long: threads end it with their next answer.
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
    /// Requests not answered in time.
    pub missing: u64,
    /// Latencies, send lags and ages of updates, over all groups and operations.
    pub times: Vec<(Figure, Counted)>,
}

/// Where threads of load hand seconds on.
#[derive(Debug)]
pub struct LiveStats {
    clock_zero: Ns,
    tell: SyncSender<Second>,
    told: Mutex<Told>,
    /// Whether anybody looks on at all.
    wanted: AtomicBool,
    /// Whether a slice is measured that is worth looking into.
    open: AtomicBool,
}

#[derive(Debug)]
struct Told {
    received: Receiver<Second>,
    /// What was received of seconds that are not settled yet.
    early: Vec<Second>,
}

impl LiveStats {
    /// Nobody looks on yet.
    pub fn new(clock_zero: Ns) -> Self {
        let (tell, received) = sync_channel(KEPT);
        let told = Mutex::new(Told { received, early: Vec::new() });
        let (wanted, open) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { clock_zero, tell, told, wanted, open }
    }

    /// Somebody looks on from now on.
    pub fn want(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// What has come to be known since this was last called, and the first second that is not
    /// settled yet.
    pub fn take(&self) -> (Vec<Second>, u64) {
        let settled_ns = clock::now().saturating_sub(self.clock_zero + SETTLED_NS);
        let settled = settled_ns / 1_000_000_000;
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let Told { received, early } = &mut *told;
        early.extend(received.try_iter());
        let taken = early.extract_if(.., |one| one.second < settled).collect();
        (taken, settled)
    }

    /// A slice that is worth looking into begins.
    pub(crate) fn begin(&self) {
        self.forget();
        self.open.store(true, Ordering::Relaxed);
    }

    /// It is over; what was not taken of it is told as a whole.
    pub(crate) fn end(&self) {
        self.open.store(false, Ordering::Relaxed);
        self.forget();
    }

    fn forget(&self) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.early.clear();
        while told.received.try_recv().is_ok() {}
    }
}

/// What one thread has told of the piece that it works on.
#[derive(Debug, Default)]
pub(super) struct Publisher {
    intervals: usize,
    operations: u64,
    wrong: u64,
    missing: u64,
}

impl Publisher {
    /// Hands on what has come since the last time, as of this second.
    #[cold]
    pub(super) fn tell(
        &mut self,
        live: &LiveStats,
        second: u64,
        (operations, wrong, missing): (u64, u64, u64),
        finished: &[Interval],
    ) {
        let looks_on = live.wanted.load(Ordering::Relaxed) && live.open.load(Ordering::Relaxed);
        let new = finished.get(self.intervals..).unwrap_or_default();
        if !looks_on || (new.is_empty() && operations == self.operations) {
            return;
        }
        let news = Second {
            second,
            operations: operations - self.operations,
            wrong: wrong - self.wrong,
            missing: missing - self.missing,
            times: new.iter().map(|one| (one.figure, one.histogram.clone())).collect(),
        };
        if live.tell.try_send(news).is_ok() {
            let intervals = finished.len();
            *self = Self { intervals, operations, wrong, missing };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::tally::Tally;

    fn told(live: &LiveStats, publisher: &mut Publisher, second: u64, operations: u64) {
        let mut tally = Tally::new();
        tally.record(operations);
        let histogram = tally.take().expect("a value");
        let (figure, group, operation) = (Figure::Latency, 0, 0);
        let one = Interval { figure, group, operation, second, histogram };
        let finished = vec![one; publisher.intervals + 1];
        publisher.tell(live, second, (operations, 0, 0), &finished);
    }

    #[test]
    fn each_second_is_told_once_and_only_to_who_looks_on() {
        let live = LiveStats::new(clock::now().saturating_sub(10_000_000_000));
        let mut publisher = Publisher::default();
        live.begin();
        told(&live, &mut publisher, 1, 5);
        assert!(live.take().0.is_empty(), "nobody wanted it");
        live.want();
        told(&live, &mut publisher, 2, 7);
        told(&live, &mut publisher, 3, 12);
        told(&live, &mut publisher, 60, 13);
        let (taken, settled) = live.take();
        let rates: Vec<_> = taken.iter().map(|one| (one.second, one.operations)).collect();
        assert_eq!(rates, [(2, 7), (3, 5)], "the last lies ahead");
        assert!((9..60).contains(&settled));
        assert!(live.take().0.is_empty(), "it was told once");
        live.end();
        told(&live, &mut publisher, 4, 20);
        live.begin();
        assert!(live.take().0.is_empty(), "a slice that is over is told as a whole");
    }

    #[test]
    fn who_does_not_take_what_is_told_holds_nobody_up() {
        let live = LiveStats::new(clock::now().saturating_sub(10_000_000_000));
        live.want();
        live.begin();
        let mut publisher = Publisher::default();
        let all = 3 * KEPT as u64;
        (1..=all).for_each(|operations| told(&live, &mut publisher, 1, operations));
        assert_eq!(live.take().0.len(), KEPT);
        told(&live, &mut publisher, 2, all + 1);
        let (rest, _) = live.take();
        assert_eq!(rest[0].operations, all + 1 - KEPT as u64, "it comes with the next second");
    }
}
