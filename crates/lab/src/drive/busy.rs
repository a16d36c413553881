//! The third engine: calls that are too short for the clock, timed in samples of many. A thread a
//! slot; the same samples are taken of operations without a target, in a process of their own.
//!
//! As many calls are timed together as take [`SAMPLE_NS`], found by doubling (as benchmark
//! harnesses do since Chen & Revels, "Robust benchmarking in noisy environments", 2016). What a
//! call comes to is checked before and after, never within a sample.

use std::sync::atomic::Ordering;

use load::{Busy, Events, Op};
use wire::{ProtocolError, clock};

use super::config::{Command, WorkerConfig};
use super::recorder::Recorder;
use super::result::LoadResult;
use crate::cpus::pin_this_thread;
use crate::observe::thread_cpu;

/// A sample lasts at least this long: a thousand readings of the clock.
const SAMPLE_NS: u64 = 25_000;

/// At most this many calls in one sample.
const MAX_CALLS: u64 = 1 << 30;

/// Number of operations that are drawn, prepared, and then called in turn.
pub(crate) const CASES: usize = 1024;

/// Times samples of as many calls each.
pub(crate) struct SampleTimer {
    /// Calls in one sample.
    pub(crate) calls: u64,
    /// How many samples there are so far, and how many bytes their calls were about.
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// When the last one ended.
    pub(crate) ended: u64,
    next: usize,
}

impl SampleTimer {
    /// Doubles the calls until the shortest of three samples is long enough: one alone may be long
    /// because something else ran. That warms everything up as well.
    pub(crate) fn calibrated(client: &mut dyn Busy) -> Self {
        let mut samples = Self { calls: 1, count: 0, bytes: 0, ended: clock::now(), next: 0 };
        let shortest = |samples: &mut Self, client: &mut dyn Busy| {
            (0..3).map(|_| samples.take(client)).min().unwrap_or(0)
        };
        while shortest(&mut samples, client) < SAMPLE_NS && samples.calls < MAX_CALLS {
            samples.calls *= 2;
        }
        (samples.count, samples.bytes) = (0, 0);
        samples
    }

    /// Takes one sample, and returns how long it took.
    #[inline]
    pub(crate) fn take(&mut self, client: &mut dyn Busy) -> u64 {
        let (mut next, mut bytes) = (self.next, 0);
        let start = clock::now();
        for _ in 0..self.calls {
            bytes += client.call(next);
            next = (next + 1) % CASES;
        }
        self.ended = clock::now();
        self.next = next;
        self.bytes += bytes as u64;
        self.count += 1;
        self.ended - start
    }
}

/// One slot with its thread.
pub(super) struct BusyWorker {
    config: WorkerConfig,
    client: Box<dyn Busy>,
    /// The only operation of its mix.
    operation: usize,
    recorder: Recorder,
}

impl BusyWorker {
    /// Makes the client, and what it will be called for.
    pub(super) fn open(
        config: WorkerConfig,
        make: impl FnOnce() -> Result<Box<dyn Busy>, ProtocolError>,
    ) -> std::io::Result<Self> {
        pin_this_thread(config.cpu.as_slice())?;
        let mut client = make().map_err(std::io::Error::other)?;
        let mut stream = config.stream(config.slots.start);
        let ops: Vec<Op> = (0..CASES).map(|_| stream.next_op()).collect();
        ops.iter().for_each(|op| client.ready(*op));
        let operation = ops[0].operation;
        Ok(Self { recorder: Recorder::of(&config), config, client, operation })
    }

    /// Executes a command.
    pub(super) fn execute(&mut self, command: Command) -> LoadResult {
        self.recorder.clear();
        let (start, cpu) = (clock::now(), thread_cpu());
        let mut bytes = 0;
        match command {
            // A client of this kind prepares what it needs when it is made.
            Command::Prepare(_) => {}
            Command::Run(length_ns) => bytes = self.run(start + length_ns),
        }
        self.recorder.end_second();
        let generator = thread_cpu().since(cpu);
        let duration_ns = self.recorder.last_answer.saturating_sub(start);
        let rate = bytes as f64 * 1e9 / duration_ns.max(1) as f64;
        let result = self.recorder.result();
        LoadResult {
            duration_ns,
            busy: generator.total_ns as f64 / (clock::now() - start).max(1) as f64,
            generator,
            most_waited_ns: generator.waited_ns,
            figures: if bytes > 0 { vec![("bytes_per_s".to_owned(), rate)] } else { Vec::new() },
            ..result
        }
    }

    /// Samples until that time; returns how many bytes they were about.
    fn run(&mut self, until: u64) -> u64 {
        self.check();
        let mut samples = SampleTimer::calibrated(&mut *self.client);
        let mut events = Events::default();
        while samples.count == 0
            || (samples.ended < until && !self.config.stop.load(Ordering::Relaxed))
        {
            let each_ns = samples.take(&mut *self.client) / samples.calls;
            self.recorder.answers_at(samples.ended, &mut events);
            self.recorder.counts.operations += samples.calls;
            self.recorder.timed(self.operation, each_ns.max(1), samples.calls);
        }
        self.check();
        samples.bytes
    }

    /// Checks what every call comes to.
    fn check(&mut self) {
        let mut events = Events::default();
        for index in 0..CASES {
            if let Err(finding) = self.client.check(index) {
                self.recorder.counts.operations += 1;
                self.recorder.counts.wrong += 1;
                events.found(|| *finding);
            }
        }
        self.recorder.answers_at(clock::now(), &mut events);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::Finding;

    /// Counts what it is asked for.
    #[derive(Default)]
    struct Counting {
        called: u64,
    }

    impl Busy for Counting {
        fn ready(&mut self, _: Op) {}

        fn call(&mut self, index: usize) -> usize {
            assert!(index < CASES);
            self.called += 1;
            std::hint::black_box(3)
        }

        fn check(&mut self, _: usize) -> Result<(), Box<Finding>> {
            Ok(())
        }
    }

    #[test]
    fn a_sample_is_long_enough_and_every_call_is_counted() {
        let mut client = Counting::default();
        let mut samples = SampleTimer::calibrated(&mut client);
        assert!(samples.calls > 1 && samples.calls.is_power_of_two());
        let before = client.called;
        (0..7).for_each(|_| _ = samples.take(&mut client));
        assert_eq!(client.called - before, 7 * samples.calls);
        assert_eq!((samples.count, samples.bytes), (7, 21 * samples.calls));
    }
}
