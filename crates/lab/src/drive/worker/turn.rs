//! The event loop of one thread: reads, settles what was answered, refills, writes. Data plane.

use std::sync::atomic::Ordering;

use base::units::Span;
use load::Events;
use wire::stream::{FlushOutcome, ReadOutcome};
use wire::{Input, Interest, Ns, ProtocolError, clock};

use super::super::arrivals::Arrivals;
use super::super::config::{Command, WorkerConfig};
use super::super::recorder::Recorder;
use super::super::result::LoadResult;
use super::super::slot::{Slot, SlotConfig, State};
use super::super::transport::Transport;
use super::broken::is_break;
use super::state::{READ_BYTES, Submissions, Work, Worker};
use crate::cpus::pin_this_thread;
use crate::observe::thread_cpu;

/// The interval of the search for overdue requests and due timers of dialects.
const LOOK_EVERY_NS: u64 = 5_000_000;

/// The largest answer that a dialect may leave unconsumed.
const INPUT_LIMIT: usize = 64 << 20;

/// The most bytes written to one connection at a time.
const MAX_WRITTEN: usize = 1 << 20;

/// The most datagrams read from one socket at a time.
const MAX_DATAGRAMS: usize = 64;

/// A connection that takes longer than this to be made and greeted has failed.
const CONNECT_WITHIN_NS: u64 = 5_000_000_000;

/// What took longer than that for one thread's connections: they themselves, or what a dialect
/// exchanges on one before its first request, under TLS the handshake. Where it did not for all,
/// their number may be why.
fn overdue(slots: impl Iterator<Item = State>, dialect: &str) -> std::io::Error {
    let within = Span { ns: CONNECT_WITHIN_NS };
    let (mut all, mut made, mut ready) = (0, 0, 0);
    for state in slots {
        all += 1;
        made += usize::from(state != State::Connecting);
        ready += usize::from(state == State::Ready);
    }
    let handshake = format!("connected, but the handshake ({dialect}) did not end within {within}");
    let several = |count: usize, what: &str| {
        format!(
            "{count} of this thread's {all} connections {what} within {within}: if the server \
             takes no more at a time, ask with fewer connections"
        )
    };
    let text = match made == all {
        true if all == 1 || ready == 0 => handshake,
        true => several(ready, &format!("ended the handshake ({dialect})")),
        false if all == 1 => format!("no connection within {within}"),
        false => several(made, "were made"),
    };
    std::io::Error::new(std::io::ErrorKind::TimedOut, text)
}

impl<T: Transport> Worker<T> {
    /// Connects every slot and waits until each is ready.
    pub(in crate::drive) fn open(
        config: WorkerConfig,
        slot_config: SlotConfig,
        mut transport: T,
    ) -> std::io::Result<Self> {
        pin_this_thread(config.cpu.as_slice())?;
        // The default slack lets a timed wait be 50 µs late, to save wake-ups.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let mut slots = Vec::with_capacity(config.slots.len());
        for index in config.slots.clone() {
            transport.connect(slots.len())?;
            let slot = Slot::open(&slot_config, config.stream(index));
            slots.push(slot.map_err(std::io::Error::other)?);
        }
        let submissions = Submissions::new(slots.len(), transport.max_submission());
        let mut worker = Self {
            recorder: Recorder::of(&config),
            config,
            slot_config,
            slots,
            transport,
            events: Events::default(),
            lent: Input::new(),
            submissions,
            trouble: None,
            fault: None,
            is_open: false,
            largest_bytes: 0,
            runs: 0,
            unix_ns: 0,
        };
        worker.await_ready()?;
        Ok(worker)
    }

    fn await_ready(&mut self) -> std::io::Result<()> {
        let deadline = clock::now() + CONNECT_WITHIN_NS;
        let mut work = Work::Closed { until: 0 };
        while self.slots.iter().any(|slot| slot.state != State::Ready) {
            let ready = self.transport.wait(LOOK_EVERY_NS)?;
            for event in 0..ready {
                self.turn(self.transport.ready(event), &mut work);
            }
            if let Some(trouble) = self.trouble.take() {
                return Err(std::io::Error::other(trouble));
            }
            if clock::now() > deadline {
                let states = self.slots.iter().map(|slot| slot.state);
                return Err(overdue(states, self.slot_config.speaks.dialect.name));
            }
        }
        self.is_open = true;
        Ok(())
    }

    /// Executes a command, and returns its result.
    pub(in crate::drive) fn execute(&mut self, command: Command) -> LoadResult {
        self.recorder.clear();
        (self.trouble, self.fault) = (None, None);
        let (start, cpu) = (clock::now(), thread_cpu());
        let mut work = match command {
            Command::Prepare(parts) => Work::Prepare(parts),
            Command::Run(length_ns) => self.begin_run(start, start + length_ns),
        };
        let spun_ns = self.drive(&mut work, start);
        self.recorder.end_second();
        let generator = thread_cpu().since(cpu);
        let wall_ns = clock::now() - start;
        // A thread that has nothing to do blocks, or spins through empty polls: it is busy for
        // the time that it runs, less the time that it spins.
        let busy_ns = generator.total_ns.saturating_sub(spun_ns);
        let (pressure, waited) = match &work {
            Work::Timed(timed) => (timed.pressure(), timed.waited()),
            Work::Prepare(_) | Work::Closed { .. } | Work::Steps { .. } | Work::Streams { .. } => {
                Default::default()
            }
        };
        LoadResult {
            duration_ns: self.duration_ns(&work, start),
            loop_ns: self.loop_ns(&work, start),
            generator,
            most_waited_ns: generator.waited_ns,
            busy: busy_ns as f64 / wall_ns.max(1) as f64,
            trouble: self.trouble.take(),
            fault: self.fault.take(),
            pressure,
            stretches: self.recorder.take_stretches(&waited),
            figures: self.recorder.take_each(self.config.workload.operations()),
            streams: self.take_streams(),
            ..self.recorder.result()
        }
    }

    fn begin_run(&mut self, start: Ns, until: Ns) -> Work {
        self.runs += 1;
        self.slots.iter_mut().for_each(|slot| slot.begin_run(start));
        self.recorder.keep_each(self.config.arrivals == Arrivals::Steps);
        if self.config.arrivals == Arrivals::Steps {
            self.slots.iter_mut().for_each(|slot| slot.stream.begin_again());
            return Work::Steps { stopped: false };
        }
        self.unix_ns = clock::unix_now().saturating_sub(start);
        if let Arrivals::Subscribe { pause } = self.config.arrivals {
            return Work::Streams { until, pause_ns: pause.ns };
        }
        let each = |slot| std::iter::repeat_n(slot, self.slot_config.depth);
        let places = || (0..self.slots.len()).flat_map(each).collect::<Vec<_>>();
        match self.config.timed(self.runs, start, until, &places()) {
            Some(timed) => {
                if let Some(ends) = timed.stretch_ends() {
                    self.recorder.begin_stretches(ends);
                }
                Work::Timed(timed)
            }
            None => Work::Closed { until },
        }
    }

    /// Runs until the work is done and every request is answered or given up. Returns the time
    /// spent in empty polls.
    fn drive(&mut self, work: &mut Work, start: Ns) -> u64 {
        let mut spun_ns = 0;
        let mut now = start;
        let mut look_at = start + LOOK_EVERY_NS;
        for index in 0..self.slots.len() {
            self.refill(index, start, work);
        }
        loop {
            spun_ns += self.send_due(work, &mut now);
            let wait_ns = self.may_wait(work, now, look_at);
            let ready = match self.transport.wait(wait_ns) {
                Ok(ready) => ready,
                Err(error) => {
                    self.trouble = Some(format!("waiting for events: {error}"));
                    return spun_ns;
                }
            };
            if ready == 0 {
                let before = std::mem::replace(&mut now, clock::now());
                spun_ns += if wait_ns == 0 { now - before } else { 0 };
            }
            if ready > 1 && self.submits(work) {
                now = self.turn_together(ready, work);
            } else {
                for event in 0..ready {
                    spun_ns += self.send_first(work, &mut now);
                    now = self.turn(self.transport.ready(event), work);
                }
            }
            if now >= look_at {
                look_at = now + LOOK_EVERY_NS;
                self.look(now, work);
            }
            if self.is_over(work, now) {
                return spun_ns;
            }
        }
    }

    #[inline]
    fn is_over(&mut self, work: &mut Work, now: Ns) -> bool {
        let stopped = self.config.stop.load(Ordering::Relaxed);
        if stopped {
            match work {
                Work::Prepare(parts) => parts.left = 0..0,
                Work::Closed { until } | Work::Streams { until, .. } => *until = (*until).min(now),
                Work::Steps { stopped } => *stopped = true,
                Work::Timed(timed) => drop(timed.give_up()),
            }
        }
        let over = match work {
            Work::Prepare(parts) => parts.left.is_empty(),
            Work::Closed { until } => now >= *until,
            Work::Steps { stopped } => {
                let done = |slot: &Slot| slot.stream.is_over() || slot.state == State::Gone;
                *stopped || self.slots.iter().all(done)
            }
            Work::Streams { until, .. } if now >= *until => {
                self.end_streams(now);
                true
            }
            Work::Streams { .. } => false,
            Work::Timed(timed) => timed.is_over(now),
        };
        let gone = |slot: &Slot| slot.state == State::Gone;
        let waits = |slot: &Slot| match &*work {
            Work::Closed { until } if !stopped => slot.waits_for_connection(*until),
            _ => false,
        };
        (over && self.slots.iter().all(|slot| slot.outstanding() == 0 && !waits(slot)))
            || self.slots.iter().all(gone)
    }

    /// One turn of a ready connection: reads, settles what was answered, refills, writes once.
    #[inline]
    pub(super) fn turn(&mut self, index: usize, work: &mut Work) -> Ns {
        if self.slots[index].state == State::Connecting {
            return self.greet(index, work);
        }
        if self.slots[index].reads_at.is_some() {
            self.flush(index);
            return clock::now();
        }
        let datagrams = self.slot_config.datagrams;
        let reads = if datagrams { MAX_DATAGRAMS } else { 1 };
        let mut now = 0;
        for read in 0..reads {
            let outcome = self.read(index);
            if read > 0 && outcome == ReadOutcome::Blocked {
                break;
            }
            now = clock::now();
            let is_broken = is_break(&outcome);
            let slot = &mut self.slots[index];
            let understood = slot.understand(now, outcome, &mut self.lent, &mut self.events);
            if datagrams {
                // Bytes of a datagram beyond its answer belong to no other.
                self.slots[index].input = Input::new();
            }
            self.settle(index, now, work);
            match understood {
                Err(fault) => {
                    self.fail(index, &fault, is_broken, work);
                    return now;
                }
                Ok(()) if self.events.close || self.slots[index].is_used_up() => {
                    self.reopen(index, now, work);
                }
                Ok(()) => {}
            }
            self.refill(index, now, work);
            self.pause(index, now, work);
        }
        now
    }

    #[inline]
    fn read(&mut self, index: usize) -> ReadOutcome {
        let slot = &mut self.slots[index];
        // An unfinished answer is completed in the slot's own buffer.
        let input = if slot.input.is_empty() { &mut self.lent } else { &mut slot.input };
        let outcome = self.transport.read(index, input, INPUT_LIMIT);
        self.count_read(index, &outcome);
        outcome
    }

    #[inline]
    pub(super) fn count_read(&mut self, index: usize, outcome: &ReadOutcome) {
        if let ReadOutcome::Bytes(count) = outcome {
            self.recorder.counts.received_bytes += *count as u64;
            self.slots[index].reads_much = *count >= READ_BYTES;
        }
    }

    #[inline]
    pub(super) fn settle(&mut self, index: usize, now: Ns, work: &mut Work) {
        let slot = &mut self.slots[index];
        if self.events.ready && slot.state == State::Opening {
            slot.state = State::Ready;
        }
        self.recorder.answers_at(now, &mut self.events);
        if matches!(work, Work::Streams { .. })
            && slot.settle_streams(now, &self.events, self.unix_ns, &mut self.recorder)
        {
            self.trouble.get_or_insert_with(|| "the target has ended a stream".to_owned());
        }
        slot.settle(now, &self.events, work.is_timed(), &mut self.recorder);
        if let Work::Timed(timed) = work {
            for _ in &self.events.done {
                timed.free(index, now);
            }
        }
    }

    /// Sends what the work wants and what is still unsent.
    #[inline]
    pub(super) fn refill(&mut self, index: usize, now: Ns, work: &mut Work) {
        self.fill(index, now, work);
        self.flush(index);
    }

    /// Writes the requests that the work wants.
    #[inline]
    pub(super) fn fill(&mut self, index: usize, now: Ns, work: &mut Work) {
        let datagrams = self.slot_config.datagrams;
        match work {
            Work::Prepare(parts) if datagrams => self.prepare_by_datagrams(index, now, parts),
            Work::Prepare(parts) => while self.slots[index].send_prepare(now, parts) {},
            Work::Steps { stopped: false } => {
                let slot = &mut self.slots[index];
                if !slot.stream.is_over() && slot.has_room() {
                    let scheduled = slot.take_free_since(now);
                    slot.send(scheduled, now);
                }
            }
            Work::Streams { until, .. } if now < *until => self.subscribe(index, now),
            Work::Closed { until } => {
                while self.slots[index].has_room() {
                    let slot = &mut self.slots[index];
                    let Some(scheduled) = slot.take_due(now, *until) else { return };
                    slot.send(scheduled, now);
                    if datagrams {
                        self.flush(index);
                    }
                }
            }
            _ => {}
        }
    }

    #[inline]
    pub(super) fn flush(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if slot.output.is_empty() && !slot.blocked {
            return;
        }
        let (before, datagrams) = (slot.output.len(), self.slot_config.datagrams);
        let outcome = self.transport.flush(index, &mut slot.output, MAX_WRITTEN);
        self.recorder.counts.sent_bytes += (before - slot.output.len()) as u64;
        let blocked = match outcome {
            FlushOutcome::Done => false,
            FlushOutcome::Blocked | FlushOutcome::More => true,
            // The read that follows says the same, behind the last answers.
            FlushOutcome::Failed(_) if self.is_open && slot.reads_at.is_none() && !datagrams => {
                return;
            }
            FlushOutcome::Failed(kind) => {
                self.lose(index, &ProtocolError::new(format!("writing: {kind}")));
                return;
            }
        };
        if blocked != slot.blocked {
            slot.blocked = blocked;
            let interest = slot.interest();
            self.watch(index, interest);
        }
    }

    pub(super) fn watch(&mut self, index: usize, interest: Interest) {
        if let Err(error) = self.transport.watch(index, interest) {
            self.trouble = Some(format!("watching a connection: {error}"));
        }
    }

    /// A connection is made, or has failed: lets its dialect send first.
    #[cold]
    fn greet(&mut self, index: usize, work: &mut Work) -> Ns {
        let now = clock::now();
        if let Err(error) = self.transport.connected(index) {
            let fault = ProtocolError::new(format!("connecting: {error}"));
            self.fail(index, &fault, true, work);
            return now;
        }
        let slot = &mut self.slots[index];
        slot.state = State::Opening;
        self.events.clear();
        match slot.dialect.opened(now, &mut self.events, &mut slot.output) {
            Ok(()) => {
                self.watch(index, Interest::Read);
                self.settle(index, now, work);
                self.refill(index, now, work);
            }
            Err(fault) => self.give_up(index, &fault, work),
        }
        now
    }

    /// Makes a connection again that the server closes, or that has carried all that it may.
    pub(super) fn reopen(&mut self, index: usize, now: Ns, work: &mut Work) {
        match self.slots[index].reopen(&self.slot_config, now, &mut self.recorder) {
            Ok(lost) => work.free(index, lost, now),
            Err(fault) => return self.give_up(index, &fault, work),
        }
        if let Err(error) = self.transport.connect(index) {
            self.lose(index, &ProtocolError::new(format!("connecting again: {error}")));
        }
    }

    /// Gives up overdue requests, and calls the due timers of dialects.
    fn look(&mut self, now: Ns, work: &mut Work) {
        let timeout_ns = self.prepare_again(now, work).unwrap_or_else(|| match work {
            Work::Prepare(parts) => parts.within_ns.unwrap_or(self.config.timeout_ns),
            _ => self.config.timeout_ns,
        });
        for index in 0..self.slots.len() {
            if self.slots[index].state == State::Gone {
                continue;
            }
            if self.slots[index].reads_at.is_some_and(|at| at <= now) {
                self.read_again(index);
            }
            if self.slots[index].connects_at.is_some_and(|at| at <= now) {
                self.connect_again(index);
            }
            let slot = &mut self.slots[index];
            let expired = slot.expire(now, timeout_ns, &mut self.recorder);
            if slot.dialect.deadline().is_some_and(|deadline| deadline <= now) {
                slot.dialect.timer(now, &mut slot.output);
            }
            if let Work::Timed(timed) = work {
                for _ in 0..expired {
                    timed.free(index, now);
                }
            }
            if self.slots[index].is_used_up() {
                self.reopen(index, now, work);
            }
            self.refill(index, now, work);
        }
        self.give_up_backlog(now, work);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_connected_in_time_is_named_with_the_number_of_connections() {
        use State::{Connecting, Opening, Ready};
        let said = |states: &[State]| overdue(states.iter().copied(), "http").to_string();
        let handshake = "connected, but the handshake (http) did not end within 5 s";
        assert_eq!(said(&[Opening]), handshake);
        assert_eq!(said(&[Opening, Opening]), handshake, "one would not do either");
        assert_eq!(said(&[Connecting]), "no connection within 5 s");
        assert_eq!(
            said(&[Ready, Ready, Opening, Connecting]),
            "3 of this thread's 4 connections were made within 5 s: if the server takes no more at \
             a time, ask with fewer connections"
        );
        let part = "1 of this thread's 2 connections ended the handshake (http) within 5 s: if";
        assert!(said(&[Ready, Opening]).starts_with(part));
    }
}
