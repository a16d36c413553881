//! One thread of load: its slots, its event loop, and the pieces of work that it is ordered to do.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wire::stream::{self, FlushOutcome, ReadOutcome};
use wire::{Address, Input, Interest, Ns, Poller, clock};
use workload::{DialectRow, Events, Stream, Truth, Workload};

use super::record::{Piece, Recorder};
use super::slot::Slot;
use crate::deploy::pin_this_thread;
use crate::observe::thread_cpu;

/// How often requests are looked through for ones that are overdue, and dialects for timers.
const LOOK_EVERY_NS: u64 = 5_000_000;

/// The largest answer that a dialect may leave unconsumed.
const INPUT_LIMIT: usize = 64 << 20;

/// At most this much is written to one connection at a time.
const MOST_WRITTEN: usize = 1 << 20;

/// What one thread is to do from its start to its end.
#[derive(Clone)]
pub(super) struct Duty {
    pub(super) group: usize,
    pub(super) address: Address,
    pub(super) dialect: &'static DialectRow,
    pub(super) workload: Workload,
    pub(super) truth: Arc<Truth>,
    pub(super) slots: std::ops::Range<usize>,
    pub(super) depth: usize,
    pub(super) timeout_ns: u64,
    pub(super) cpu: Option<usize>,
    pub(super) round: u64,
    pub(super) clock_zero: Ns,
    pub(super) stop: Arc<AtomicBool>,
}

/// One piece of work.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// Write these keys' first versions.
    Prepare(std::ops::Range<u64>),
    /// Send operations for so many nanoseconds.
    Run(u64),
}

/// A thread's state.
pub(super) struct Worker {
    duty: Duty,
    slots: Vec<Slot>,
    poller: Poller,
    recorder: Recorder,
    events: Events,
    /// Lent to every connection in turn: only an unfinished answer stays with its connection.
    lent: Input,
    trouble: Option<String>,
}

/// What the slots are filled with while a piece runs.
enum Work {
    Prepare(std::ops::Range<u64>),
    Until(Ns),
}

impl Worker {
    /// Connects every slot.
    pub(super) fn open(duty: Duty) -> std::io::Result<Self> {
        pin_this_thread(duty.cpu.as_slice())?;
        let poller = Poller::new()?;
        let mut slots = Vec::with_capacity(duty.slots.len());
        for index in duty.slots.clone() {
            let name = (duty.group as u64) << 32 | index as u64;
            let stream = Stream::new(&duty.workload, duty.round, name);
            let slot = Slot::open(&duty.address, duty.dialect, &duty.truth, stream, duty.depth)?;
            poller.add(slot.socket.as_fd(), slots.len() as u64, Interest::Read)?;
            slots.push(slot);
        }
        let recorder = Recorder::new(duty.group, duty.workload.room, duty.clock_zero);
        let mut worker = Self {
            duty,
            slots,
            poller,
            recorder,
            events: Events::default(),
            lent: Input::new(),
            trouble: None,
        };
        for index in 0..worker.slots.len() {
            worker.greet(index);
        }
        Ok(worker)
    }

    /// Lets a new connection's dialect speak first.
    fn greet(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        self.events.clear();
        match slot.dialect.opened(clock::now(), &mut self.events, &mut slot.output) {
            Ok(()) => slot.ready |= self.events.ready,
            Err(fault) => self.trouble = Some(fault.to_string()),
        }
        self.flush(index);
    }

    /// Does one piece of work and says what it gave.
    pub(super) fn obey(&mut self, order: Order) -> Piece {
        self.recorder.clear();
        self.trouble = None;
        let (start, cpu) = (clock::now(), thread_cpu());
        let work = match order {
            Order::Prepare(keys) => Work::Prepare(keys),
            Order::Run(length_ns) => Work::Until(start + length_ns),
        };
        self.drive(work, start);
        self.recorder.end_second();
        // The thread blocks when there is nothing to do: it is busy while it runs.
        let generator = thread_cpu().since(cpu);
        let wall_ns = clock::now() - start;
        Piece {
            duration_ns: self.recorder.last_answer.saturating_sub(start),
            counts: self.recorder.counts,
            generator,
            busy: generator.total_ns as f64 / wall_ns.max(1) as f64,
            intervals: std::mem::take(&mut self.recorder.finished),
            found: std::mem::take(&mut self.recorder.found),
            trouble: self.trouble.take(),
        }
    }

    /// Runs until the work is done and every request is answered or given up.
    fn drive(&mut self, mut work: Work, start: Ns) {
        for index in 0..self.slots.len() {
            self.refill(index, start, &mut work);
        }
        let mut now = start;
        let mut look_at = start + LOOK_EVERY_NS;
        loop {
            let may_wait = look_at.saturating_sub(now);
            let ready = match self.poller.wait(Some(may_wait)) {
                Ok(ready) => ready,
                Err(error) => {
                    self.trouble = Some(format!("waiting for events: {error}"));
                    return;
                }
            };
            if ready == 0 {
                now = clock::now();
            }
            for event in 0..ready {
                let index = self.poller.event(event).token as usize;
                now = self.turn(index, &mut work);
            }
            if now >= look_at {
                look_at = now + LOOK_EVERY_NS;
                self.look(now, &mut work);
            }
            let over = match &work {
                Work::Prepare(keys) => keys.is_empty() || self.duty.stop.load(Ordering::Relaxed),
                Work::Until(end) => now >= *end || self.duty.stop.load(Ordering::Relaxed),
            };
            if (over && self.outstanding() == 0) || self.slots.iter().all(|slot| !slot.ready) {
                return;
            }
        }
    }

    fn outstanding(&self) -> usize {
        self.slots.iter().map(Slot::outstanding).sum()
    }

    /// One ready connection: reads, settles what was answered, refills, writes once.
    #[inline]
    fn turn(&mut self, index: usize, work: &mut Work) -> Ns {
        let slot = &mut self.slots[index];
        let own = !slot.input.is_empty();
        if own {
            std::mem::swap(&mut self.lent, &mut slot.input);
        }
        let outcome = stream::read_into(slot.socket.as_fd(), &mut self.lent, INPUT_LIMIT);
        let now = clock::now();
        self.events.clear();
        let understood = match outcome {
            ReadOutcome::Bytes(_) => {
                let output = &mut slot.output;
                slot.dialect.receive(now, &mut self.lent, &mut self.events, output)
            }
            ReadOutcome::Blocked => Ok(()),
            ReadOutcome::Closed => Err(wire::Fault::new("the target closed the connection")),
            ReadOutcome::Failed(kind) => Err(wire::Fault::new(format!("reading: {kind}"))),
            ReadOutcome::Full(fault) => Err(fault),
        };
        if own {
            std::mem::swap(&mut self.lent, &mut slot.input);
        } else if !self.lent.is_empty() {
            slot.input = self.lent.split_rest();
        }
        slot.ready |= self.events.ready;
        self.recorder.answers_at(now, &mut self.events);
        slot.settle(now, &self.events, &mut self.recorder);
        match understood {
            Err(fault) if slot.outstanding() > 0 || !self.events.close => self.lose(index, &fault),
            Err(_) => self.reopen(index),
            Ok(()) if self.events.close => self.reopen(index),
            Ok(()) => {}
        }
        self.refill(index, now, work);
        now
    }

    /// Sends what the work wants and what is still unsent.
    #[inline]
    fn refill(&mut self, index: usize, now: Ns, work: &mut Work) {
        let slot = &mut self.slots[index];
        if slot.ready && !slot.blocked {
            match work {
                Work::Prepare(keys) => slot.fill_prepare(now, keys),
                Work::Until(end) if now < *end => slot.fill(now),
                Work::Until(_) => {}
            }
        }
        self.flush(index);
    }

    #[inline]
    fn flush(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if slot.output.is_empty() && !slot.blocked {
            return;
        }
        let outcome = stream::flush(slot.socket.as_fd(), &mut slot.output, MOST_WRITTEN);
        let blocked = match outcome {
            FlushOutcome::Done => false,
            FlushOutcome::Blocked | FlushOutcome::More => true,
            FlushOutcome::Failed(kind) => {
                let fault = wire::Fault::new(format!("writing: {kind}"));
                return self.lose(index, &fault);
            }
        };
        if blocked != slot.blocked {
            slot.blocked = blocked;
            let interest = if blocked { Interest::Both } else { Interest::Read };
            if let Err(error) = self.poller.modify(slot.socket.as_fd(), index as u64, interest) {
                self.trouble = Some(format!("watching a connection: {error}"));
            }
        }
    }

    /// A connection has broken: what was under way is missing, and the piece says so.
    #[cold]
    fn lose(&mut self, index: usize, fault: &wire::Fault) {
        let slot = &mut self.slots[index];
        slot.lose(clock::now(), &mut self.recorder);
        let _ = self.poller.remove(slot.socket.as_fd());
        self.trouble.get_or_insert_with(|| format!("connection {index}: {fault}"));
    }

    /// The server closed as its protocol may: the connection is made again.
    #[cold]
    fn reopen(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let _ = self.poller.remove(slot.socket.as_fd());
        let made = slot.reopen(&self.duty.address, self.duty.dialect, &self.duty.truth);
        let added =
            made.and_then(|()| self.poller.add(slot.socket.as_fd(), index as u64, Interest::Read));
        match added {
            Ok(()) => self.greet(index),
            Err(error) => self.trouble = Some(format!("connecting again: {error}")),
        }
    }

    /// Overdue requests are given up, and dialects get their timers.
    fn look(&mut self, now: Ns, work: &mut Work) {
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if !slot.ready {
                continue;
            }
            slot.expire(now, self.duty.timeout_ns, &mut self.recorder);
            if slot.dialect.deadline().is_some_and(|deadline| deadline <= now) {
                slot.dialect.timer(now, &mut slot.output);
            }
            self.refill(index, now, work);
        }
    }
}
