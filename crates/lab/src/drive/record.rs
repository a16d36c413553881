//! What a piece of load gave: counts, latencies by operation and second, wrong answers.

use std::sync::Arc;

use hdrhistogram::Histogram;
use load::{Cost, Done, Events, Finding, Kind, Operation, Service, Update};
use wire::Ns;

use super::seconds::{Seconds, Teller};
use super::streams::StreamSum;
use super::tally::{Counted, Tally};
use super::timed::Pressure;
use super::worker::Duty;
use crate::observe::Cpu;

/// Latencies are kept from 1 ns to this, to three digits; a longer one counts as this.
pub(crate) const LONGEST_NS: u64 = 60_000_000_000;

/// At most this many wrong answers keep their bytes in one piece of one thread.
const MOST_FOUND: usize = 16;

/// An empty histogram of latencies in nanoseconds.
pub fn empty_histogram() -> Histogram<u64> {
    #[expect(clippy::expect_used, reason = "the bounds are constants that the crate accepts")]
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("constant bounds are valid")
}

/// How many operations came to what. One operation is one key or one update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Operations answered, right or wrong.
    pub operations: u64,
    /// Operations answered wrongly.
    pub wrong: u64,
    /// Reads answered with a value.
    pub hits: u64,
    /// Operations answered with "not there".
    pub misses: u64,
    /// Requests not answered in time, and streams that brought nothing.
    pub missing: u64,
    /// Updates that streams have brought; they are operations too.
    pub updates: u64,
    /// Elements of the values that came or were written, where values have elements.
    pub elements: u64,
    /// The bytes of these elements.
    pub payload_bytes: u64,
    /// Bytes that the sockets have brought.
    pub received_bytes: u64,
    /// Bytes that the sockets have taken.
    pub sent_bytes: u64,
    /// Operations whose answers nobody checked.
    pub unchecked: u64,
}

impl Counts {
    /// Adds what another thread or piece counted.
    pub fn add(&mut self, other: Self) {
        self.operations += other.operations;
        self.wrong += other.wrong;
        self.hits += other.hits;
        self.misses += other.misses;
        self.missing += other.missing;
        self.updates += other.updates;
        self.elements += other.elements;
        self.payload_bytes += other.payload_bytes;
        self.received_bytes += other.received_bytes;
        self.sent_bytes += other.sent_bytes;
        self.unchecked += other.unchecked;
    }

    fn done(&mut self, done: &Done, reads: bool) {
        self.operations += u64::from(done.keys);
        self.hits += if reads { u64::from(done.keys - done.misses.min(done.keys)) } else { 0 };
        self.wrong += u64::from(done.wrong);
        self.misses += u64::from(done.misses);
    }
}

/// What a histogram is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// From the moment a request was due to its answer.
    Latency,
    /// From its sending to its answer; kept for scheduled requests only.
    Service,
    /// From the moment it was due and a slot free to its sending; kept for scheduled requests only.
    Lag,
    /// From the making of a value to the receipt of its update, where updates say when they were
    /// made.
    Staleness,
}

/// Every figure, in the order of the recorder's table.
const FIGURES: [Figure; 4] = [Figure::Latency, Figure::Service, Figure::Lag, Figure::Staleness];

/// One figure of one operation in one second of the run's clock.
#[derive(Clone, Debug)]
pub struct Interval {
    /// What it is about.
    pub figure: Figure,
    /// Which group of clients, as an index into the point's.
    pub group: usize,
    /// Which operation, as an index into the service's.
    pub operation: usize,
    /// Seconds since the zero of the run's clock.
    pub second: u64,
    /// Nanoseconds.
    pub histogram: Counted,
}

/// A wrong answer and when it came.
#[derive(Clone, Debug)]
pub struct Found {
    /// On the run's clock.
    pub at: Ns,
    /// The answer.
    pub finding: Finding,
}

/// A slow request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slow {
    /// From the moment it was due to its answer, or until it was given up.
    pub latency_ns: u64,
    /// When that was, on the run's clock.
    pub at: Ns,
    /// Which group of clients, as an index into the point's.
    pub group: usize,
    /// Which operation, as an index into the service's.
    pub operation: usize,
}

/// The slowest requests of a trial that are kept.
const MOST_SLOW: usize = 64;

/// The slowest requests seen so far.
#[derive(Clone, Debug, Default)]
pub struct Slowest {
    kept: Vec<Slow>,
    /// A request has to be slower than this to be kept.
    bar_ns: u64,
}

impl Slowest {
    /// Keeps a request if it is among the slowest.
    #[inline]
    pub(crate) fn offer(&mut self, slow: Slow) {
        if slow.latency_ns > self.bar_ns {
            self.keep(slow);
        }
    }

    #[cold]
    fn keep(&mut self, slow: Slow) {
        if self.kept.len() < MOST_SLOW {
            self.kept.push(slow);
        } else if let Some(least) = self.kept.iter_mut().min() {
            *least = slow;
        }
        if self.kept.len() == MOST_SLOW {
            self.bar_ns = self.kept.iter().map(|slow| slow.latency_ns).min().unwrap_or(0);
        }
    }

    /// Adds what others kept.
    pub(crate) fn add(&mut self, other: Self) {
        for slow in other.kept {
            self.offer(slow);
        }
    }

    /// The slowest first.
    pub fn in_order(&self) -> Vec<Slow> {
        let mut kept = self.kept.clone();
        kept.sort_unstable_by(|a, b| b.cmp(a));
        kept
    }
}

/// What one piece of load gave, summed over its threads.
#[derive(Clone, Debug, Default)]
pub struct Piece {
    /// From the first request to the last answer, in nanoseconds.
    pub duration_ns: u64,
    /// What came.
    pub counts: Counts,
    /// CPU time of the generator's threads.
    pub generator: Cpu,
    /// CPU time of the program that loaded, of all of it: it is not among the lab's.
    pub program_ns: u64,
    /// The most memory of a generator that is a program of its own.
    pub generator_bytes: Option<u64>,
    /// The part of their time that the generator's busiest thread was not waiting.
    pub busy: f64,
    /// Latencies by group, operation and second.
    pub intervals: Vec<Interval>,
    /// The first wrong answers.
    pub found: Vec<Found>,
    /// The slowest requests.
    pub slowest: Slowest,
    /// What went wrong with a connection, if anything did.
    pub trouble: Option<String>,
    /// How hard a schedule pressed; zero without one.
    pub pressure: Pressure,
    /// Figures that calls measured themselves, in their order.
    pub figures: Vec<(String, f64)>,
    /// What the calls cost the target, where only they can tell.
    pub cost: Option<Cost>,
    /// What streams have brought, by group of clients.
    pub streams: Vec<StreamSum>,
}

/// Collects one thread's latencies and hands each second's on as it ends.
#[derive(Debug)]
pub(super) struct Recorder {
    group: usize,
    /// Per figure and operation of the service, made when first used.
    current: Vec<Option<Tally>>,
    /// Which operations read.
    reads: Vec<bool>,
    second: u64,
    /// When the current second ends.
    second_ends: Ns,
    clock_zero: Ns,
    pub(super) counts: Counts,
    pub(super) found: Vec<Found>,
    pub(super) finished: Vec<Interval>,
    pub(super) slowest: Slowest,
    pub(super) last_answer: Ns,
    /// Every operation with its latency, where each is kept.
    each: Option<Vec<(usize, u64)>>,
    pub(super) streams: StreamSum,
    /// Who looks on, and what was told of the current piece.
    onlooker: Option<Arc<Seconds>>,
    teller: Teller,
}

impl Recorder {
    /// Whether every latency is kept by itself from now on.
    pub(super) fn keep_each(&mut self, keep: bool) {
        self.each = keep.then(Vec::new);
    }

    /// Every latency that was kept by itself, as a figure of its operation's name.
    pub(super) fn take_each(&mut self, service: &Service) -> Vec<(String, f64)> {
        let each = self.each.take().unwrap_or_default().into_iter();
        each.map(|(index, ns)| (format!("{}_ns", service.operations[index].name), ns as f64))
            .collect()
    }

    pub(super) fn new(group: usize, service: &Service, clock_zero: Ns) -> Self {
        let reads = |operation: &Operation| matches!(operation.kind, Kind::Read | Kind::ReadMany);
        Self {
            group,
            current: vec![None; FIGURES.len() * service.operations.len()],
            reads: service.operations.iter().map(reads).collect(),
            second: 0,
            second_ends: 0,
            clock_zero,
            counts: Counts::default(),
            found: Vec::new(),
            finished: Vec::new(),
            slowest: Slowest::default(),
            last_answer: 0,
            each: None,
            streams: StreamSum { group, ..StreamSum::default() },
            onlooker: None,
            teller: Teller::default(),
        }
    }

    /// The recorder of a thread that has this to do.
    pub(super) fn of(duty: &Duty) -> Self {
        let own = Self::new(duty.group, duty.workload.service, duty.clock_zero);
        Self { onlooker: duty.onlooker.clone(), ..own }
    }

    /// Call once per batch of answers, before [`Recorder::latency`].
    #[inline]
    pub(super) fn answers_at(&mut self, now: Ns, events: &mut Events) {
        self.last_answer = now;
        if now >= self.second_ends {
            self.begin_second(now);
        }
        if events.elements > 0 {
            self.counts.elements += events.elements;
            self.counts.payload_bytes += events.payload_bytes;
        }
        if !events.findings.is_empty() {
            self.keep_findings(now, events);
        }
    }

    #[cold]
    fn begin_second(&mut self, now: Ns) {
        self.end_second();
        if let Some(onlooker) = &self.onlooker {
            let Counts { operations, wrong, missing, .. } = self.counts;
            let counts = (operations, wrong, missing);
            self.teller.tell(onlooker, self.second, counts, &self.finished);
        }
        self.second = now.saturating_sub(self.clock_zero) / 1_000_000_000;
        // A program may say any time.
        let ends = (self.second + 1).saturating_mul(1_000_000_000);
        self.second_ends = self.clock_zero.saturating_add(ends);
    }

    #[cold]
    fn keep_findings(&mut self, now: Ns, events: &mut Events) {
        for finding in events.findings.drain(..) {
            if self.found.len() < MOST_FOUND {
                self.found.push(Found { at: now - self.clock_zero, finding });
            }
        }
    }

    /// One answered request.
    #[inline]
    pub(super) fn done(&mut self, operation: usize, latency_ns: u64, done: &Done) {
        self.counts.done(done, self.reads[operation]);
        if let Some(each) = &mut self.each {
            each.push((operation, latency_ns));
        }
        self.record(Figure::Latency, operation, latency_ns);
        let (at, group) = (self.last_answer - self.clock_zero, self.group);
        self.slowest.offer(Slow { latency_ns, at, group, operation });
    }

    /// One update of a stream, `stale_ns` after its value was made.
    #[inline]
    pub(super) fn update(&mut self, operation: usize, update: &Update, stale_ns: Option<u64>) {
        self.counts.operations += 1;
        self.counts.updates += 1;
        self.counts.wrong += u64::from(update.wrong);
        self.streams.missed += update.missed;
        self.streams.merged += update.merged;
        if let Some(stale_ns) = stale_ns {
            self.record(Figure::Staleness, operation, stale_ns);
        }
    }

    /// So many requests that took so long each, counted by another program.
    pub(super) fn timed(&mut self, operation: usize, latency_ns: u64, times: u64) {
        let tally = self.current[operation].get_or_insert_with(Tally::new);
        tally.record_all(latency_ns, times);
        if times > 0 {
            let at = self.last_answer.saturating_sub(self.clock_zero);
            self.slowest.offer(Slow { latency_ns, at, group: self.group, operation });
        }
    }

    /// One request that was given up: it counts at no less than the time it was waited for.
    pub(super) fn missing(&mut self, now: Ns, operation: usize, waited_ns: u64) {
        self.counts.missing += 1;
        self.record(Figure::Latency, operation, waited_ns);
        let (at, group) = (now - self.clock_zero, self.group);
        self.slowest.offer(Slow { latency_ns: waited_ns, at, group, operation });
    }

    #[inline]
    pub(super) fn record(&mut self, figure: Figure, operation: usize, ns: u64) {
        let index = figure as usize * self.reads.len() + operation;
        self.current[index].get_or_insert_with(Tally::new).record(ns);
    }

    /// Hands on what the current second holds.
    pub(super) fn end_second(&mut self) {
        let operations = self.reads.len();
        for (index, current) in self.current.iter_mut().enumerate() {
            if let Some(histogram) = current.as_mut().and_then(Tally::take) {
                let (figure, operation) = (FIGURES[index / operations], index % operations);
                let (group, second) = (self.group, self.second);
                self.finished.push(Interval { figure, group, operation, second, histogram });
            }
        }
    }

    /// Forgets everything, before a piece begins.
    pub(super) fn clear(&mut self) {
        self.end_second();
        self.finished.clear();
        self.teller = Teller::default();
        self.slowest = Slowest::default();
        self.found.clear();
        self.counts = Counts::default();
        self.streams = StreamSum { group: self.group, ..StreamSum::default() };
        self.last_answer = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_requests_are_kept_and_no_more_than_wanted() {
        let mut slowest = Slowest::default();
        let mut others = Slowest::default();
        for index in 0..10_000_u64 {
            let latency_ns = index * 7919 % 10_007;
            let slow = Slow { latency_ns, at: index, group: 0, operation: 0 };
            if index % 2 == 0 { slowest.offer(slow) } else { others.offer(slow) }
        }
        slowest.add(others);
        let kept: Vec<u64> = slowest.in_order().iter().map(|slow| slow.latency_ns).collect();
        let mut all: Vec<u64> = (0..10_000).map(|index| index * 7919 % 10_007).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(kept, all[..MOST_SLOW]);
    }
}
