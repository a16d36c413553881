//! A slot: a connection with its dialect, its operations, and its outstanding requests.

use std::sync::Arc;

use load::{Dialect, Events, Op, Speaks, Stream, Tag, Workload};
use wire::stream::ReadOutcome;
use wire::{Input, Interest, Ns, Output, ProtocolError};

use super::config::Parts;
use super::interval::Figure;
use super::recorder::Recorder;

/// The unsent bytes at which no more requests are written; a single request may exceed it.
const OUTPUT_LIMIT: usize = 1 << 20;

/// The least depth while preparing, whatever the workload's.
const PREPARE_DEPTH: usize = 64;

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// When it was due: latency counts from here.
    scheduled: Ns,
    /// When it was written to be sent at once: service time counts from here.
    sent: Ns,
    operation: usize,
    /// Updates so far, when it is a stream.
    stream: Option<u64>,
    /// Whether it is a stream that is being ended: nothing of it counts.
    ends: bool,
}

/// A part of the preparation that was sent in a datagram.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prepared {
    pub(super) part: u64,
    /// How often it has been sent.
    pub(super) times: u32,
}

/// A connection's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not yet accepted by the other side.
    Connecting,
    /// Accepted; the dialect is not ready yet.
    Opening,
    /// In use.
    Ready,
    /// Broken, for the rest of the session.
    Gone,
}

/// What every slot of a thread has in common.
pub(super) struct SlotConfig {
    pub(super) workload: Arc<dyn Workload>,
    pub(super) speaks: Speaks,
    pub(super) datagrams: bool,
    pub(super) depth: usize,
    pub(super) reconnect_every: Option<u64>,
}

impl SlotConfig {
    fn dialect(&self) -> Result<Box<dyn Dialect>, ProtocolError> {
        self.workload.clone().dialect(&self.speaks)
    }
}

/// A connection and what is under way on it.
pub(super) struct Slot {
    pub(super) dialect: Box<dyn Dialect>,
    pub(super) input: Input,
    pub(super) output: Output,
    pub(super) state: State,
    /// Whether the socket took less than was offered, so that it must be watched for writing.
    pub(super) blocked: bool,
    /// Whether its last read brought more than a submission reads.
    pub(super) reads_much: bool,
    /// While a slow reader pauses: when it reads again.
    pub(super) reads_at: Option<Ns>,
    /// While a connection that broke waits to be made again: when that is tried.
    pub(super) connects_at: Option<Ns>,
    /// How often its connection broke since the last answer.
    pub(super) breaks: usize,
    pub(super) stream: Stream,
    pending: Vec<Option<Pending>>,
    free: Vec<Tag>,
    /// By tag, the parts that were sent in datagrams, which may get lost; empty for streams.
    prepared: Vec<Prepared>,
    depth: usize,
    /// Requests that this connection may still carry.
    left: u64,
    /// When places became free that could not be used at once, because the connection has carried
    /// all that it may: a closed loop's next requests were due then. The wait for the others and
    /// for a new connection is part of their latency.
    free_since: Vec<Ns>,
    /// When the last of its requests was answered or given up.
    pub(super) last_answer: Ns,
    /// Requests of this run that were answered or given up.
    pub(super) settled: u64,
    /// When as many of them were as are outstanding at a time, and how many that were then.
    first: (Ns, u64),
}

impl Slot {
    /// A slot whose connection is being made.
    pub(super) fn open(slot_config: &SlotConfig, stream: Stream) -> Result<Self, ProtocolError> {
        let places = slot_config.depth.max(PREPARE_DEPTH);
        Ok(Self {
            dialect: slot_config.dialect()?,
            input: Input::new(),
            output: Output::new(OUTPUT_LIMIT),
            state: State::Connecting,
            blocked: false,
            reads_much: false,
            reads_at: None,
            connects_at: None,
            breaks: 0,
            stream,
            pending: vec![None; places],
            free: (0..places as Tag).rev().collect(),
            prepared: vec![Prepared::default(); if slot_config.datagrams { places } else { 0 }],
            depth: slot_config.depth,
            left: slot_config.reconnect_every.unwrap_or(u64::MAX),
            free_since: Vec::with_capacity(places),
            last_answer: 0,
            settled: 0,
            first: (0, 0),
        })
    }

    /// Prepares for a new connection. Outstanding requests are repeated where that does no harm;
    /// the others are missing. Returns their number.
    pub(super) fn reopen(
        &mut self,
        slot_config: &SlotConfig,
        now: Ns,
        recorder: &mut Recorder,
    ) -> Result<usize, ProtocolError> {
        let may_repeat = |pending: &Option<Pending>, tag| {
            pending.is_none_or(|one| one.stream.is_none()) && self.dialect.may_repeat(tag)
        };
        let lost: Vec<Tag> = (0..self.pending.len() as Tag)
            .filter(|tag| self.pending[*tag as usize].is_some())
            .filter(|tag| !may_repeat(&self.pending[*tag as usize], *tag))
            .collect();
        for tag in &lost {
            self.give_up(*tag, now, recorder);
        }
        self.input = Input::new();
        self.output = Output::new(OUTPUT_LIMIT);
        self.state = State::Connecting;
        self.blocked = false;
        self.left = slot_config.reconnect_every.unwrap_or(u64::MAX);
        self.left -= (self.outstanding() as u64).min(self.left);
        let places = self.depth.saturating_sub(self.outstanding());
        self.free_since.resize(places, now);
        if self.outstanding() == 0 {
            self.dialect = slot_config.dialect()?;
        } else {
            self.dialect.repeat(&mut self.output);
        }
        Ok(lost.len())
    }

    /// Gives up one request: it is missing, and its tag is free.
    fn give_up(&mut self, tag: Tag, now: Ns, recorder: &mut Recorder) {
        if let Some(pending) = self.pending[tag as usize].take() {
            self.dialect.expire(tag);
            recorder.missing(now, pending.operation, now - pending.scheduled);
            self.free.push(tag);
            self.settle_some(now, 1);
        }
    }

    /// The events for which its socket is watched.
    pub(super) fn interest(&self) -> Interest {
        match (self.reads_at.is_none(), self.blocked) {
            (true, true) => Interest::Both,
            (true, false) => Interest::Read,
            (false, true) => Interest::Write,
            (false, false) => Interest::Nothing,
        }
    }

    /// The number of outstanding requests.
    #[inline]
    pub(super) fn outstanding(&self) -> usize {
        self.pending.len() - self.free.len()
    }

    /// Whether another request may be sent now.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.state == State::Ready
            && self.outstanding() < self.depth
            && self.left > 0
            && !self.blocked
            && !self.output.is_full()
    }

    /// Whether this connection has carried all requests that it may, and all are answered.
    #[inline]
    pub(super) fn is_used_up(&self) -> bool {
        self.left == 0 && self.outstanding() == 0
    }

    /// Writes the next request, which was due at `scheduled`. Returns its operation.
    #[inline]
    pub(super) fn send(&mut self, scheduled: Ns, now: Ns) -> usize {
        let Some(tag) = self.free.pop() else { return 0 };
        let op: Op = self.stream.next_op();
        let operation = op.operation;
        let pending = Pending { scheduled, sent: now, operation, stream: None, ends: false };
        self.pending[tag as usize] = Some(pending);
        self.dialect.request(now, tag, op, &mut self.output);
        self.left -= 1;
        operation
    }

    /// Begins the next of the streams of which the first has the index `first`.
    pub(super) fn subscribe(&mut self, first: u64, now: Ns) {
        let index = first + self.outstanding() as u64;
        let Some(tag) = self.free.pop() else { return };
        let op = self.stream.subscribe(index);
        let (operation, stream) = (op.operation, Some(0));
        let pending = Pending { scheduled: now, sent: now, operation, stream, ends: false };
        self.pending[tag as usize] = Some(pending);
        self.dialect.request(now, tag, op, &mut self.output);
    }

    /// Ends all streams, and records what each has brought.
    pub(super) fn cancel(&mut self, now: Ns, recorder: &mut Recorder) {
        for (tag, place) in self.pending.iter_mut().enumerate() {
            let Some(pending) = place else { continue };
            let Some(updates) = pending.stream.take() else { continue };
            (pending.ends, pending.sent) = (true, now);
            self.dialect.cancel(tag as Tag, &mut self.output);
            recorder.counts.missing += u64::from(updates == 0);
            recorder.streams.each.push(updates);
        }
    }

    /// Returns when a closed loop's next request is due: now, or when its place became free and
    /// could not be used at once.
    #[inline]
    pub(super) fn take_free_since(&mut self, now: Ns) -> Ns {
        self.free_since.pop().unwrap_or(now)
    }

    /// The same of a loop that ends: `None` where the next request is not due before `until`.
    #[inline]
    pub(super) fn take_due(&mut self, now: Ns, until: Ns) -> Option<Ns> {
        match self.free_since.last() {
            None => (now < until).then_some(now),
            Some(since) if *since < until => self.free_since.pop(),
            Some(_) => None,
        }
    }

    /// Whether a request that was due before `until` waits for a connection. It belongs to the
    /// loop that ends then, however long it waits.
    pub(super) fn waits_for_connection(&self, until: Ns) -> bool {
        let is_being_made = matches!(self.state, State::Connecting | State::Opening);
        is_being_made && self.free_since.iter().any(|since| *since < until)
    }

    /// Gives up the requests that were due before `until` and wait for a connection.
    pub(super) fn give_up_waiting(&mut self, now: Ns, until: Ns, recorder: &mut Recorder) {
        if !self.waits_for_connection(until) {
            return;
        }
        let mut given_up = 0;
        for since in &mut self.free_since {
            if *since < until {
                let operation = self.stream.next_op().operation;
                recorder.missing(now, operation, now - *since);
                *since = now;
                given_up += 1;
            }
        }
        self.settle_some(now, given_up);
    }

    /// A run begins: nothing of it was due before.
    pub(super) fn begin_run(&mut self, start: Ns) {
        self.free_since.iter_mut().for_each(|since| *since = (*since).max(start));
        (self.settled, self.first) = (0, (0, 0));
    }

    /// How many of a run's requests were settled behind its first, of which as many are outstanding
    /// at a time, and how long these took.
    pub(super) fn behind_the_first(&self) -> (u64, u64) {
        let (at, count) = self.first;
        (self.settled - count, self.last_answer.saturating_sub(at))
    }

    /// Notes that requests were answered or given up.
    #[inline]
    fn settle_some(&mut self, now: Ns, count: u64) {
        self.last_answer = now;
        let is_first = self.settled < self.depth as u64;
        self.settled += count;
        if is_first {
            self.first = (now, self.settled);
        }
    }

    /// Writes the next of the `parts` if there is room. Returns whether it did.
    pub(super) fn send_prepare(&mut self, now: Ns, parts: &mut Parts) -> bool {
        let may = self.state == State::Ready && !self.blocked && !self.output.is_full();
        let waits = parts.in_order && self.outstanding() > 0;
        if !may || waits || parts.left.is_empty() {
            return false;
        }
        // A part is only taken once there is a place for it.
        let Some(tag) = self.free.pop() else { return false };
        let Some(part) = parts.next() else { return false };
        let pending =
            Pending { scheduled: now, sent: now, operation: 0, stream: None, ends: false };
        self.pending[tag as usize] = Some(pending);
        self.dialect.prepare(now, tag, part, &mut self.output);
        if let Some(place) = self.prepared.get_mut(tag as usize) {
            *place = Prepared { part, times: 1 };
        }
        true
    }

    /// Returns a write of the preparation that is not answered after `patience`, in nanoseconds by
    /// the number of times that it was sent; none while nothing can be sent.
    pub(super) fn late_prepare(
        &self,
        now: Ns,
        patience: fn(u32) -> u64,
    ) -> Option<(Tag, Prepared)> {
        if self.state != State::Ready || self.blocked || self.output.is_full() {
            return None;
        }
        let mut said = self.pending.iter().zip(&self.prepared);
        let tag = said.position(|(pending, prepared)| {
            let waits = |one: Pending| now.saturating_sub(one.sent) >= patience(prepared.times);
            pending.is_some_and(waits)
        })?;
        Some((tag as Tag, self.prepared[tag]))
    }

    /// Sends the write `tag` again. Answers to earlier copies are ignored from now on.
    pub(super) fn prepare_again(&mut self, now: Ns, tag: Tag) {
        let index = tag as usize;
        let (Some(Some(pending)), Some(prepared)) =
            (self.pending.get_mut(index), self.prepared.get_mut(index))
        else {
            return;
        };
        pending.sent = now;
        prepared.times += 1;
        self.dialect.expire(tag);
        self.dialect.prepare(now, tag, prepared.part, &mut self.output);
    }

    /// Parses what a read brought into `lent`, or, where an answer is unfinished, into the slot's
    /// own input; what it comes to is in `events`. An unfinished answer moves to the slot's input.
    #[inline]
    pub(super) fn understand(
        &mut self,
        now: Ns,
        outcome: ReadOutcome,
        lent: &mut Input,
        events: &mut Events,
    ) -> Result<(), ProtocolError> {
        events.clear();
        match outcome {
            ReadOutcome::Bytes(_) => {}
            ReadOutcome::Blocked => return Ok(()),
            ReadOutcome::Closed => {
                self.dialect.closed(now, events)?;
                events.close = true;
                return Ok(());
            }
            ReadOutcome::Failed(kind) => {
                return Err(ProtocolError::new(format!("reading: {kind}")));
            }
            ReadOutcome::Full(fault) => return Err(fault),
        }
        if self.input.is_empty() {
            let understood = self.dialect.receive(now, lent, events, &mut self.output);
            if !lent.is_empty() {
                self.input = lent.split_rest();
            }
            return understood;
        }
        let understood = self.dialect.receive(now, &mut self.input, events, &mut self.output);
        self.input.release();
        understood
    }

    /// Records the answered requests of `events` and frees their places. If `timed`, service times
    /// are kept beside latencies.
    #[inline]
    pub(super) fn settle(
        &mut self,
        now: Ns,
        events: &Events,
        timed: bool,
        recorder: &mut Recorder,
    ) {
        if !events.done.is_empty() {
            self.breaks = 0;
            self.settle_some(now, events.done.len() as u64);
        }
        for done in &events.done {
            let place = self.pending.get_mut(done.tag as usize).and_then(Option::take);
            // An answer to no request is a bug of the dialect; it must not be counted.
            debug_assert!(place.is_some(), "tag {} was not under way", done.tag);
            if let Some(pending) = place {
                self.free.push(done.tag);
                if self.left == 0 {
                    self.free_since.push(now);
                }
                if pending.ends {
                    continue;
                }
                let (operation, due) = (pending.operation, pending.scheduled);
                recorder.done(operation, due, now - due, done);
                if timed {
                    recorder.record(Figure::Service, pending.operation, now - pending.sent);
                }
            }
        }
    }

    /// Records updates of streams, made on a clock that is `unix_ns` ahead of the run's. Returns
    /// whether a stream has ended, which none may do by itself.
    #[inline]
    pub(super) fn settle_streams(
        &mut self,
        now: Ns,
        events: &Events,
        unix_ns: u64,
        recorder: &mut Recorder,
    ) -> bool {
        for update in &events.updates {
            let place = self.pending.get_mut(update.stream as usize).and_then(Option::as_mut);
            if let Some(Pending { operation, stream: Some(updates), .. }) = place {
                *updates += 1;
                let made = update.made_unix_ns;
                let stale_ns = made.map(|made| (now + unix_ns).saturating_sub(made));
                recorder.update(*operation, update, stale_ns);
            }
        }
        let is_stream = |tag: Tag| {
            let place = self.pending.get(tag as usize);
            place.is_some_and(|place| place.is_some_and(|pending| pending.stream.is_some()))
        };
        events.done.iter().any(|done| is_stream(done.tag))
    }

    /// Gives up the requests that were sent `timeout_ns` ago or earlier. Returns their number.
    pub(super) fn expire(&mut self, now: Ns, timeout_ns: u64, recorder: &mut Recorder) -> usize {
        let (mut expired, mut left) = (0, self.outstanding());
        for (tag, place) in self.pending.iter_mut().enumerate() {
            // Most places are free, and this is done for every slot every 5 ms.
            if left == 0 {
                break;
            }
            let Some(pending) = *place else { continue };
            left -= 1;
            // A stream has no answer that could be overdue.
            let may_expire = pending.stream.is_none() || timeout_ns == 0;
            if may_expire && now.saturating_sub(pending.sent) >= timeout_ns {
                *place = None;
                self.dialect.expire(tag as Tag);
                if !pending.ends {
                    recorder.missing(now, pending.operation, now - pending.scheduled);
                }
                self.free.push(tag as Tag);
                expired += 1;
            }
        }
        if expired > 0 {
            self.settle_some(now, expired as u64);
        }
        expired
    }

    /// Counts everything under way as missing, and prepares for a new connection. Returns how many
    /// requests were lost.
    pub(super) fn break_off(
        &mut self,
        slot_config: &SlotConfig,
        now: Ns,
        recorder: &mut Recorder,
    ) -> Result<usize, ProtocolError> {
        let lost = self.expire(now, 0, recorder);
        self.reopen(slot_config, now, recorder)?;
        Ok(lost)
    }

    /// Counts everything under way as missing: the connection is gone. Returns how many requests
    /// were lost.
    pub(super) fn lose(&mut self, now: Ns, recorder: &mut Recorder) -> usize {
        self.state = State::Gone;
        self.expire(now, 0, recorder)
    }
}

#[cfg(test)]
mod tests {
    use load::{Done, Scenario, null};

    use super::*;

    /// A slot whose connection carries two requests, both at a time.
    fn slot() -> (SlotConfig, Slot, Recorder) {
        let text = "service = 'null'\noperation = 'ask'";
        let scenario = Scenario::parse(text, &null::SERVICE).unwrap();
        let (workload, speaks) = (scenario.begin(), Speaks::plainly(&null::DIALECT));
        let stream = Stream::new(&scenario, &*workload, 1, 0);
        let (datagrams, depth, reconnect_every) = (false, 2, Some(2));
        let slot_config = SlotConfig { workload, speaks, datagrams, depth, reconnect_every };
        let mut slot = Slot::open(&slot_config, stream).unwrap();
        slot.state = State::Ready;
        (slot_config, slot, Recorder::new(0, scenario.operations(), 0))
    }

    fn answer(slot: &mut Slot, now: Ns, tag: Tag, recorder: &mut Recorder) {
        let mut events = Events::default();
        events.done.push(Done::right(tag));
        recorder.answers_at(now, &mut events);
        slot.settle(now, &events, false, recorder);
    }

    #[test]
    fn requests_are_due_when_their_places_are_free_though_the_connection_is_made_again() {
        let (slot_config, mut slot, mut recorder) = slot();
        let due = [slot.take_free_since(10), slot.take_free_since(10)];
        assert_eq!(due, [10, 10], "nothing was waited for yet");
        slot.send(10, 10);
        slot.send(10, 10);
        answer(&mut slot, 20, 0, &mut recorder);
        assert!(!slot.is_used_up() && !slot.has_room(), "one is under way, and no other may be");
        answer(&mut slot, 35, 1, &mut recorder);
        assert!(slot.is_used_up());
        slot.reopen(&slot_config, 35, &mut recorder).unwrap();
        let mut due = [slot.take_free_since(90), slot.take_free_since(90)];
        due.sort_unstable();
        assert_eq!(due, [20, 35]);
        assert_eq!(slot.take_free_since(90), 90, "there are two places");
    }

    #[test]
    fn a_request_that_was_due_before_the_end_is_sent_or_missing_and_none_after_it_is() {
        let (slot_config, mut slot, mut recorder) = slot();
        assert_eq!([slot.take_due(99, 100), slot.take_due(100, 100)], [Some(99), None]);
        slot.reopen(&slot_config, 40, &mut recorder).unwrap();
        assert!(slot.waits_for_connection(100) && !slot.waits_for_connection(40));
        slot.state = State::Ready;
        assert_eq!(slot.take_due(250, 100), Some(40), "its connection was made late");
        slot.state = State::Connecting;
        slot.give_up_waiting(1_000, 100, &mut recorder);
        assert_eq!((recorder.counts.missing, slot.last_answer), (1, 1_000));
        assert!(!slot.waits_for_connection(100), "it is given up once");
        slot.state = State::Ready;
        assert_eq!(slot.take_due(1_000, 100), None);
    }

    #[test]
    fn nothing_of_a_run_is_due_before_it_begins() {
        let (slot_config, mut slot, mut recorder) = slot();
        slot.reopen(&slot_config, 40, &mut recorder).unwrap();
        slot.begin_run(1_000);
        assert_eq!([slot.take_free_since(1_010), slot.take_free_since(1_010)], [1_000, 1_000]);
    }
}
