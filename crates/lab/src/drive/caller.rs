//! The second engine: one thread a slot, whose client blocks in `call(op)`.

use std::sync::atomic::Ordering;
use std::time::Duration;

use load::{Caller, Cost, Done, Events, Outcome, Stream};
use wire::{Ns, ProtocolError, clock};

use super::record::{Figure, Piece, Recorder};
use super::timed::Timed;
use super::worker::{Duty, Order};
use crate::cpus::pin_this_thread;
use crate::observe::thread_cpu;
use crate::plan::Arrivals;

/// A thread that waits for a scheduled call looks at least this often whether the run is stopped.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// One slot with its thread.
pub(super) struct CallWorker {
    duty: Duty,
    caller: Box<dyn Caller>,
    stream: Stream,
    recorder: Recorder,
    events: Events,
    figures: Vec<(String, f64)>,
    cost: Option<Cost>,
    trouble: Option<String>,
    runs: u64,
}

impl CallWorker {
    /// Makes the client.
    pub(super) fn open(
        duty: Duty,
        make: impl FnOnce() -> Result<Box<dyn Caller>, ProtocolError>,
    ) -> std::io::Result<Self> {
        pin_this_thread(duty.cpu.as_slice())?;
        let caller = make().map_err(std::io::Error::other)?;
        Ok(Self {
            stream: duty.stream(duty.slots.start),
            recorder: Recorder::of(&duty),
            duty,
            caller,
            events: Events::default(),
            figures: Vec::new(),
            cost: None,
            trouble: None,
            runs: 0,
        })
    }

    /// Does one piece of work and says what it gave.
    pub(super) fn obey(&mut self, order: Order) -> Piece {
        self.recorder.clear();
        self.trouble = None;
        let (start, cpu) = (clock::now(), thread_cpu());
        let worked = match order {
            Order::Prepare(keys) => self.prepare(keys).map(|()| None),
            Order::Run(length_ns) => self.run(start, start + length_ns),
        };
        let timed = worked.unwrap_or_else(|fault| {
            self.trouble = Some(fault.to_string());
            None
        });
        self.recorder.end_second();
        let generator = thread_cpu().since(cpu);
        Piece {
            program_ns: 0,
            generator_bytes: None,
            duration_ns: self.recorder.last_answer.saturating_sub(start),
            counts: self.recorder.counts,
            // A call blocks while the target works, so CPU time says how busy the client itself is.
            busy: generator.total_ns as f64 / (clock::now() - start).max(1) as f64,
            generator,
            intervals: std::mem::take(&mut self.recorder.finished),
            found: std::mem::take(&mut self.recorder.found),
            slowest: std::mem::take(&mut self.recorder.slowest),
            trouble: self.trouble.take(),
            pressure: timed.map(|timed| timed.pressure).unwrap_or_default(),
            figures: {
                let each = self.recorder.take_each(self.duty.workload.service);
                std::mem::take(&mut self.figures).into_iter().chain(each).collect()
            },
            cost: self.cost.take(),
            streams: Vec::new(),
        }
    }

    fn is_stopped(&self) -> bool {
        self.duty.stop.load(Ordering::Relaxed)
    }

    fn prepare(&mut self, keys: std::ops::Range<u64>) -> Result<(), ProtocolError> {
        for key in keys {
            if self.is_stopped() {
                break;
            }
            let sent = clock::now();
            let outcome = self.caller.prepare(key)?;
            self.record(0, sent, outcome);
        }
        Ok(())
    }

    /// Calls until it is time to stop; gives the schedule back, if there is one.
    fn run(&mut self, start: Ns, until: Ns) -> Result<Option<Timed>, ProtocolError> {
        self.runs += 1;
        let steps = self.duty.arrivals == Arrivals::Steps;
        self.recorder.keep_each(steps);
        if steps {
            self.stream.begin_again();
            let mut now = start;
            while !self.stream.is_over() && !self.is_stopped() {
                now = self.call(now)?;
            }
            return Ok(None);
        }
        let Some(mut timed) = self.duty.timed(self.runs, start, until, &[0]) else {
            let mut now = start;
            while now < until && !self.is_stopped() {
                now = self.call(now)?;
            }
            return Ok(None);
        };
        let mut now = start;
        while !timed.is_over(now) && !self.is_stopped() {
            if let Some(due) = timed.due(now) {
                let sent = clock::now();
                let operation = self.duty.workload.mix[0].0;
                self.recorder.record(Figure::Lag, operation, sent - due.possible);
                let answered = self.call(due.scheduled)?;
                self.recorder.record(Figure::Service, operation, answered - sent);
                timed.free(0, answered);
            } else {
                let wait = timed.wake().unwrap_or(until).saturating_sub(now);
                std::thread::sleep(Duration::from_nanos(wait).min(LOOK_EVERY));
            }
            now = clock::now();
            if now > until + self.duty.timeout_ns {
                let operation = self.duty.workload.mix[0].0;
                for scheduled in timed.give_up() {
                    self.recorder.missing(now, operation, now - scheduled);
                }
            }
        }
        Ok(Some(timed))
    }

    /// One call, due at `scheduled`; says when it was answered.
    fn call(&mut self, scheduled: Ns) -> Result<Ns, ProtocolError> {
        let op = self.stream.draw();
        let operation = op.operation;
        let outcome = self.caller.call(&op)?;
        Ok(self.record(operation, scheduled, outcome))
    }

    fn record(&mut self, operation: usize, scheduled: Ns, outcome: Outcome) -> Ns {
        let now = clock::now();
        self.events.clear();
        let Outcome { keys, misses, wrong, finding, took_ns, cost, figures } = outcome;
        if let Some(finding) = finding {
            self.events.found(|| finding);
        }
        self.recorder.answers_at(now, &mut self.events);
        let done = Done { tag: 0, keys, misses, wrong };
        self.recorder.done(operation, took_ns.unwrap_or(now - scheduled), &done);
        self.figures.extend(figures);
        if let Some(cost) = cost {
            self.cost.get_or_insert_default().add(cost);
        }
        now
    }
}
