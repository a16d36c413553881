//! Records one thread's latencies, in a histogram for each second. Data plane.

use std::sync::Arc;

use load::{Done, Events, Kind, Operation, Update};
use wire::Ns;

use super::config::WorkerConfig;
use super::interval::{FIGURES, Figure, Interval};
use super::lasting::Waited;
use super::live_stats::{LiveStats, Publisher};
use super::result::{Counts, LoadResult, WrongAnswer};
use super::slowest::{Slow, Slowest};
use super::streams::StreamSum;
use super::stretches::{StretchSum, Stretches};
use super::tally::Tally;

/// The most wrong answers of one command and thread that keep their bytes, and the most refusals.
const MAX_WRONG_ANSWERS: usize = 16;
const MAX_REFUSALS: usize = 4;

/// Records one thread's latencies, in a histogram for each second.
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
    pub(super) wrong_answers: Vec<WrongAnswer>,
    pub(super) finished: Vec<Interval>,
    pub(super) slowest: Slowest,
    pub(super) last_answer: Ns,
    /// Every operation with its latency, where each is kept.
    each: Option<Vec<(usize, u64)>>,
    pub(super) streams: StreamSum,
    /// The stretches of a schedule.
    stretches: Option<Stretches>,
    /// The live view's receiver, and what it has received of the current slice.
    live: Option<Arc<LiveStats>>,
    publisher: Publisher,
}

impl Recorder {
    /// Keeps, or doesn't, every latency by itself from now on.
    pub(super) fn keep_each(&mut self, keep: bool) {
        self.each = keep.then(Vec::new);
    }

    /// Every latency that was kept by itself, as a figure of its operation's name.
    pub(super) fn take_each(&mut self, operations: &[Operation]) -> Vec<(String, f64)> {
        let each = self.each.take().unwrap_or_default().into_iter();
        each.map(|(index, ns)| (format!("{}_ns", operations[index].name), ns as f64)).collect()
    }

    pub(super) fn new(group: usize, operations: &[Operation], clock_zero: Ns) -> Self {
        let reads = |operation: &Operation| operation.kind == Kind::Read;
        Self {
            group,
            current: vec![None; FIGURES.len() * operations.len()],
            reads: operations.iter().map(reads).collect(),
            second: 0,
            second_ends: 0,
            clock_zero,
            counts: Counts::default(),
            wrong_answers: Vec::new(),
            finished: Vec::new(),
            slowest: Slowest::default(),
            last_answer: 0,
            each: None,
            streams: StreamSum { group, ..StreamSum::default() },
            stretches: None,
            live: None,
            publisher: Publisher::default(),
        }
    }

    /// The recorder of a thread.
    pub(super) fn of(config: &WorkerConfig) -> Self {
        let own = Self::new(config.group, config.workload.operations(), config.clock_zero);
        Self { live: config.live.clone(), ..own }
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
        self.counts.unchecked += events.unchecked;
        if !events.findings.is_empty() {
            self.keep_findings(now, events);
        }
    }

    #[cold]
    fn begin_second(&mut self, now: Ns) {
        self.end_second();
        if let Some(live) = &self.live {
            self.publisher.publish(live, self.second, self.counts, &self.finished);
        }
        self.second = now.saturating_sub(self.clock_zero) / 1_000_000_000;
        // The time of a program's line may be any number.
        let ends = (self.second + 1).saturating_mul(1_000_000_000);
        self.second_ends = self.clock_zero.saturating_add(ends);
    }

    #[cold]
    fn keep_findings(&mut self, now: Ns, events: &mut Events) {
        let any_wrong = events.done.iter().any(|done| done.wrong > 0)
            || events.updates.iter().any(|update| update.wrong);
        let is_refusal = !any_wrong && events.done.iter().any(|done| done.refused > 0);
        let most = if is_refusal { MAX_REFUSALS } else { MAX_WRONG_ANSWERS };
        let alike = self.wrong_answers.iter().filter(|one| one.is_refusal == is_refusal).count();
        let at = now - self.clock_zero;
        let kept = events.findings.drain(..).take(most.saturating_sub(alike));
        self.wrong_answers.extend(kept.map(|finding| WrongAnswer { at, is_refusal, finding }));
    }

    /// Counts the stretches of a schedule apart that begins at `start`, as they end.
    pub(super) fn begin_stretches(&mut self, (start, ends): (Ns, Vec<Ns>)) {
        self.stretches = Some(Stretches::new(start, ends));
    }

    /// The stretches of a schedule, where this waited in them.
    pub(super) fn take_stretches(&mut self, waited: &[Waited]) -> Vec<StretchSum> {
        let stretches = self.stretches.take();
        stretches.map_or(Vec::new(), |stretches| stretches.sums(self.group, waited))
    }

    /// One answered request, which was due at `scheduled`.
    #[inline]
    pub(super) fn done(&mut self, operation: usize, scheduled: Ns, latency_ns: u64, done: &Done) {
        if let Some(stretches) = &mut self.stretches {
            stretches.done(self.last_answer, scheduled, latency_ns, done);
        }
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

    /// Requests that another program counted: how many, and the latency of each.
    pub(super) fn timed(&mut self, operation: usize, latency_ns: u64, times: u64) {
        let tally = self.current[operation].get_or_insert_with(Tally::new);
        tally.record_all(latency_ns, times);
        if times > 0 {
            let at = self.last_answer.saturating_sub(self.clock_zero);
            self.slowest.offer(Slow { latency_ns, at, group: self.group, operation });
        }
    }

    /// One request that was given up: it counts with the time that it was waited for.
    pub(super) fn missing(&mut self, now: Ns, operation: usize, waited_ns: u64) {
        self.missing_all(now, operation, waited_ns, 1);
    }

    /// The same of a request that is this many operations.
    pub(super) fn missing_all(&mut self, now: Ns, operation: usize, waited_ns: u64, times: u32) {
        if let Some(stretches) = &mut self.stretches {
            stretches.missing(now.saturating_sub(waited_ns), waited_ns, times);
        }
        self.counts.missing += u64::from(times);
        self.record(Figure::Latency, operation, waited_ns);
        let (at, group) = (now - self.clock_zero, self.group);
        self.slowest.offer(Slow { latency_ns: waited_ns, at, group, operation });
    }

    #[inline]
    pub(super) fn record(&mut self, figure: Figure, operation: usize, ns: u64) {
        let index = figure as usize * self.reads.len() + operation;
        self.current[index].get_or_insert_with(Tally::new).record(ns);
    }

    /// Ends the current second's histograms.
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

    /// Takes what was recorded.
    pub(super) fn result(&mut self) -> LoadResult {
        LoadResult {
            counts: self.counts,
            intervals: std::mem::take(&mut self.finished),
            wrong_answers: std::mem::take(&mut self.wrong_answers),
            slowest: std::mem::take(&mut self.slowest),
            threads: 1,
            ..LoadResult::default()
        }
    }

    /// Forgets everything, before a command begins.
    pub(super) fn clear(&mut self) {
        self.end_second();
        self.finished.clear();
        self.publisher = Publisher::default();
        self.slowest = Slowest::default();
        self.wrong_answers.clear();
        self.counts = Counts::default();
        self.streams = StreamSum { group: self.group, ..StreamSum::default() };
        self.stretches = None;
        self.last_answer = 0;
    }
}
