//! The second engine: one thread a slot, whose client blocks in `call(op)`.
//!
//! A thread that hangs in a call can't be ended. So each publishes in [`Watched`] since when it has
//! been in one; the session gives up the slot, and abandons its thread, when that is too long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use load::{Caller, Cost, Done, Events, Outcome, Stream, Took};
use wire::{Ns, ProtocolError, clock};

use super::arrivals::Arrivals;
use super::config::{Command, Parts, WorkerConfig};
use super::interval::Figure;
use super::recorder::Recorder;
use super::result::LoadResult;
use super::timed::Timed;
use crate::cpus::pin_this_thread;
use crate::observe::thread_cpu;

/// The interval at which a thread that waits for a scheduled call checks for the run's stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A call is given up when it is not back this long after its time-out, in nanoseconds.
const GRACE_NS: u64 = 1_000_000_000;

/// Since when a thread has been in a call, and how long it may be.
#[derive(Debug)]
pub(super) struct Watched {
    /// When the call began; 0 between calls.
    since: AtomicU64,
    /// In nanoseconds; it differs while parts are prepared.
    timeout_ns: AtomicU64,
}

impl Watched {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { since: AtomicU64::new(0), timeout_ns: AtomicU64::new(u64::MAX) })
    }

    /// The time-out of a call that will not come back any more, in nanoseconds.
    pub(super) fn hangs(&self, now: Ns) -> Option<u64> {
        let since = self.since.load(Ordering::Relaxed);
        let timeout_ns = self.timeout_ns.load(Ordering::Relaxed);
        let most_ns = timeout_ns.saturating_add(GRACE_NS);
        (since > 0 && now.saturating_sub(since) > most_ns).then_some(timeout_ns)
    }
}

/// One slot with its thread.
pub(super) struct CallWorker {
    config: WorkerConfig,
    caller: Box<dyn Caller>,
    stream: Stream,
    recorder: Recorder,
    events: Events,
    figures: Vec<(String, f64)>,
    cost: Option<Cost>,
    watched: Arc<Watched>,
    runs: u64,
    /// What the calls of a closed loop took, all together; of those that measure it themselves the
    /// CPU time, too.
    looped: Took,
    /// CPU time of calls into a target that is a library.
    by_target_ns: u64,
}

/// A call that is back.
struct Answered {
    operation: usize,
    /// When it began and ended.
    sent: Ns,
    at: Ns,
    /// How long it took: less than that, where the client says so.
    took: Took,
}

impl CallWorker {
    /// Makes the client.
    pub(super) fn open(
        config: WorkerConfig,
        watched: Arc<Watched>,
        make: impl FnOnce() -> Result<Box<dyn Caller>, ProtocolError>,
    ) -> std::io::Result<Self> {
        pin_this_thread(config.cpu.as_slice())?;
        let caller = make().map_err(std::io::Error::other)?;
        Ok(Self {
            stream: config.stream(config.slots.start),
            recorder: Recorder::of(&config),
            config,
            caller,
            events: Events::default(),
            figures: Vec::new(),
            cost: None,
            watched,
            runs: 0,
            looped: Took::default(),
            by_target_ns: 0,
        })
    }

    /// Executes a command.
    pub(super) fn execute(&mut self, command: Command) -> LoadResult {
        self.recorder.clear();
        (self.looped, self.by_target_ns) = (Took::default(), 0);
        let (start, cpu) = (clock::now(), thread_cpu());
        let worked = match command {
            Command::Prepare(parts) => self.prepare(parts).map(|()| None),
            Command::Run(length_ns) => self.run(start, start + length_ns),
        };
        let (timed, trouble) = match worked {
            Ok(timed) => (timed, None),
            Err(fault) => (None, Some(fault.to_string())),
        };
        self.recorder.end_second();
        let mut generator = thread_cpu().since(cpu);
        generator.total_ns = generator.total_ns.saturating_sub(self.by_target_ns);
        let each = self.recorder.take_each(self.config.workload.operations());
        let waited = timed.as_ref().map(Timed::waited).unwrap_or_default();
        let stretches = self.recorder.take_stretches(&waited);
        let result = self.recorder.result();
        let cost = self.cost.take();
        LoadResult {
            duration_ns: self.duration_ns(start, timed.as_ref()),
            busy: self.busy(generator.total_ns, clock::now() - start),
            by_target_ns: (self.by_target_ns > 0).then_some(self.by_target_ns),
            generator,
            most_waited_ns: generator.waited_ns,
            trouble,
            pressure: timed.map(|timed| timed.pressure()).unwrap_or_default(),
            figures: std::mem::take(&mut self.figures).into_iter().chain(each).collect(),
            program_ns: cost.map_or(0, |cost| cost.user_ns + cost.system_ns + cost.watcher_ns),
            cost,
            stretches,
            ..result
        }
    }

    /// The part of its time that the client worked: a call blocks while the target does. What a
    /// client does between calls that measure themselves, such as checking answers, delays none.
    fn busy(&self, own_ns: u64, length_ns: u64) -> f64 {
        let (worked_ns, length_ns) = match self.looped {
            Took { by_target: true, .. } => (0, length_ns),
            Took { cpu_ns: 0, .. } => (own_ns, length_ns),
            Took { elapsed_ns, cpu_ns, .. } => (cpu_ns, elapsed_ns),
        };
        worked_ns as f64 / length_ns.max(1) as f64
    }

    /// How long a command took that began at `start`. Between two calls of a closed loop that time
    /// themselves the client has work of its own, such as starting what watches a process: that
    /// time is nothing that the target took.
    fn duration_ns(&self, start: Ns, timed: Option<&Timed>) -> u64 {
        let ends = timed.map_or(0, Timed::ends);
        match self.looped.elapsed_ns {
            0 => self.recorder.last_answer.max(ends).saturating_sub(start),
            looped_ns => looped_ns,
        }
    }

    fn is_stopped(&self) -> bool {
        self.config.stop.load(Ordering::Relaxed)
    }

    fn prepare(&mut self, mut parts: Parts) -> Result<(), ProtocolError> {
        let timeout_ns = parts.within_ns.unwrap_or(self.config.timeout_ns);
        while let Some(part) = parts.next() {
            if self.is_stopped() {
                break;
            }
            let sent = clock::now();
            let outcome = self.watched(timeout_ns, |caller| caller.prepare(part))?;
            let _ = self.record(0, sent, sent, timeout_ns, outcome);
        }
        Ok(())
    }

    /// Calls until it is time to stop; returns the schedule, if there is one.
    fn run(&mut self, start: Ns, until: Ns) -> Result<Option<Timed>, ProtocolError> {
        self.runs += 1;
        let steps = self.config.arrivals == Arrivals::Steps;
        self.recorder.keep_each(steps);
        if steps {
            self.stream.begin_again();
            let mut now = start;
            while !self.stream.is_over() && !self.is_stopped() {
                now = self.call(now)?.at;
            }
            return Ok(None);
        }
        let Some(mut timed) = self.config.timed(self.runs, start, until, &[0]) else {
            let mut now = start;
            while now < until && !self.is_stopped() {
                let answered = self.call(now)?;
                self.looped.add(answered.took);
                now = answered.at;
            }
            return Ok(None);
        };
        if let Some(ends) = timed.stretch_ends() {
            self.recorder.begin_stretches(ends);
        }
        let mut now = start;
        while !timed.is_over(now) && !self.is_stopped() {
            if let Some(due) = timed.due(now) {
                let Answered { operation, sent, at, .. } = self.call(due.scheduled)?;
                self.recorder.record(Figure::Lag, operation, sent - due.possible);
                self.recorder.record(Figure::Service, operation, at - sent);
                timed.free(0, at);
            } else {
                let wait = timed.wake().unwrap_or(until).saturating_sub(now);
                std::thread::sleep(Duration::from_nanos(wait).min(LOOK_EVERY));
            }
            now = clock::now();
            if now > until + self.config.timeout_ns {
                for scheduled in timed.give_up() {
                    let operation = self.stream.next_op().operation;
                    self.recorder.missing(now, operation, now - scheduled);
                }
            }
        }
        Ok(Some(timed))
    }

    /// One call, due at `scheduled`.
    fn call(&mut self, scheduled: Ns) -> Result<Answered, ProtocolError> {
        let op = self.stream.next_op();
        let (operation, timeout_ns) = (op.operation, self.config.timeout_ns);
        let sent = clock::now();
        let outcome = self.watched(timeout_ns, |caller| caller.call(op))?;
        let (at, took) = self.record(operation, scheduled, sent, timeout_ns, outcome);
        Ok(Answered { operation, sent, at, took })
    }

    /// Calls, and publishes the time of the call's begin meanwhile.
    fn watched<T>(&mut self, timeout_ns: u64, call: impl FnOnce(&mut dyn Caller) -> T) -> T {
        self.watched.timeout_ns.store(timeout_ns, Ordering::Relaxed);
        self.watched.since.store(clock::now(), Ordering::Relaxed);
        let outcome = call(&mut *self.caller);
        self.watched.since.store(0, Ordering::Relaxed);
        outcome
    }

    /// Records an answer, or that it came too late. Returns when that is, and how long it took.
    fn record(
        &mut self,
        operation: usize,
        scheduled: Ns,
        sent: Ns,
        timeout_ns: u64,
        outcome: Outcome,
    ) -> (Ns, Took) {
        let now = clock::now();
        self.events.clear();
        let Outcome { answers, misses, wrong, refused, finding, took, cost, figures } = outcome;
        if let Some(finding) = finding {
            self.events.done.push(Done { tag: 0, answers, misses, wrong, refused });
            self.events.found(|| finding);
        }
        self.recorder.answers_at(now, &mut self.events);
        let waited = Took { elapsed_ns: now - scheduled, ..Took::default() };
        let took = took.filter(|_| now - sent <= timeout_ns).unwrap_or(waited);
        self.by_target_ns += if took.by_target { took.cpu_ns } else { 0 };
        if now - sent > timeout_ns {
            // An insertion of many objects that comes too late lacks all of them.
            self.recorder.missing_all(now, operation, waited.elapsed_ns, answers.max(1));
        } else {
            let done = Done { tag: 0, answers, misses, wrong, refused };
            self.recorder.done(operation, scheduled, took.elapsed_ns, &done);
        }
        self.figures.extend(figures);
        if let Some(cost) = cost {
            self.cost.get_or_insert_default().add(cost);
        }
        (now, took)
    }
}
