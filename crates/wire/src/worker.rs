//! One thread's event loop: waits for events and gives each ready connection a turn. Data plane.
//!
//! Level-triggered, and one read per readiness: bytes left unread are reported again, so no read
//! is made only to return EAGAIN.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, SeqCst};

use rustix::fd::AsFd;

use crate::accept::{Accepted, Acceptor, LISTENER_TOKEN};
use crate::buffers::{SMALL_REST_BYTES, ThreadBuffers};
use crate::clock;
use crate::closing::LINGER_NS;
use crate::counters::{ThreadCounters, add};
use crate::datagrams::{DATAGRAM_TOKEN, DatagramSocket};
use crate::mailbox::{Mailbox, Message};
use crate::poll::{Event, Interest, Poller};
use crate::server::{Shared, ThreadIndex};
use crate::slots::{SPECIAL, Slot, Slots};
use crate::stream::{ReadOutcome, read};
use crate::timers::{NEVER, Timers};
use crate::transport::Handshake;
use crate::turn::{Turn, TurnEnd};
use crate::uring_turn::{Sent, UringTurn};
use crate::{Closed, Connection, Datagrams, Flow, Ns, Peer, Wake, Waker};

/// The mailbox's token.
pub(crate) const MAILBOX_TOKEN: u64 = SPECIAL;

/// The clock is read again after this many bytes, as copying them takes time.
const CLOCK_EVERY_BYTES: usize = 128 * 1024;

/// One thread's part of a server.
pub(crate) struct Worker<C, D> {
    pub(crate) index: ThreadIndex,
    pub(crate) shared: Arc<Shared>,
    pub(crate) make: Arc<dyn Fn(ThreadIndex) -> C + Send + Sync>,
    pub(crate) poller: Poller,
    /// Present while this thread uses io_uring.
    pub(crate) uring: Option<Box<UringTurn>>,
    pub(crate) slots: Slots<C>,
    pub(crate) timers: Timers,
    pub(crate) buffers: ThreadBuffers,
    pub(crate) acceptor: Option<Acceptor>,
    pub(crate) datagrams: Vec<DatagramSocket<D>>,
    pub(crate) idle_ns: Option<Ns>,
    pub(crate) queues: Queues,
    pub(crate) now_ns: Ns,
    /// Bytes moved since the clock was read.
    pub(crate) moved_bytes: usize,
    /// When a stopping server closes the connections that are still open.
    pub(crate) stop_at_ns: Option<Ns>,
    /// The thread that serves the next accepted connection.
    pub(crate) next_thread: ThreadIndex,
}

/// Lists whose memory is reused from turn to turn.
#[derive(Default)]
pub(crate) struct Queues {
    /// The tokens of connections that have yielded.
    yielded: Vec<u64>,
    yielded_spare: Vec<u64>,
    messages: Vec<Message>,
    accepted: Vec<Accepted>,
}

impl<C: Connection, D: Datagrams> Worker<C, D> {
    /// Runs until the server stops.
    pub(crate) fn run(mut self) {
        while !self.is_finished() {
            let events = self.wait();
            self.read_clock();
            match self.uring.take() {
                None => (0..events).for_each(|index| self.dispatch(self.poller.event(index))),
                Some(mut uring) => {
                    self.dispatch_batch(events, &mut uring);
                    if uring.is_lost() {
                        self.shared.uring_threads.fetch_sub(1, SeqCst);
                    } else {
                        self.uring = Some(uring);
                    }
                }
            }
            if self.mailbox().is_pending() {
                self.read_letters();
            }
            self.call_timers();
            self.run_queued();
        }
        self.end();
    }

    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.shared.mailboxes[self.index]
    }

    pub(crate) fn counters(&self) -> &ThreadCounters {
        &self.shared.counters[self.index]
    }

    fn read_clock(&mut self) {
        self.now_ns = clock::now();
        self.moved_bytes = 0;
    }

    fn is_finished(&self) -> bool {
        self.stop_at_ns.is_some_and(|at| self.slots.len() == 0 || self.now_ns >= at)
    }

    /// Waits for events or the nearest timer, and returns how many events there are.
    fn wait(&mut self) -> usize {
        let may_sleep = self.queues.yielded.is_empty() && self.mailbox().may_sleep();
        let timeout_ns = if may_sleep { self.nearest_ns() } else { Some(0) };
        let events =
            self.poller.wait(timeout_ns).expect("waiting fails only for a bug in the loop");
        if may_sleep {
            self.mailbox().awake();
        }
        events
    }

    /// The time until the nearest timer.
    fn nearest_ns(&self) -> Option<Ns> {
        let retry_at = self.acceptor.as_ref().and_then(Acceptor::retry_at_ns);
        let times = [self.timers.next(), retry_at, self.stop_at_ns];
        let nearest = times.into_iter().flatten().min()?;
        // Against the clock as it is now: time spent since it was read must not lengthen the wait.
        Some(nearest.saturating_sub(clock::now()))
    }

    #[inline]
    pub(crate) fn dispatch(&mut self, event: Event) {
        let token = event.token;
        if token & SPECIAL != 0 {
            return self.dispatch_special(token);
        }
        match self.slots.get(token) {
            // It is served when the queue of yielded connections is.
            Some(slot) if slot.queued => {}
            Some(slot) if slot.transport.is_handshaking() => self.handshake(token),
            Some(slot) if slot.output.is_some() || slot.drained_due => self.write(token),
            Some(_) => self.read(token),
            None => {}
        }
    }

    fn dispatch_special(&mut self, token: u64) {
        if token == MAILBOX_TOKEN {
            self.mailbox().clear_event();
        } else if token >= DATAGRAM_TOKEN {
            let index = (token - DATAGRAM_TOKEN) as usize;
            if let Some(socket) = self.datagrams.get_mut(index) {
                socket.turn(self.now_ns, &self.shared.counters[self.index]);
            }
        } else if let Some(acceptor) = &mut self.acceptor
            && token >= LISTENER_TOKEN
        {
            let into = &mut self.queues.accepted;
            acceptor.accept(token, &self.poller, &self.shared, self.now_ns, into);
            self.distribute();
        }
    }

    /// Distributes the accepted connections over the threads, round robin.
    fn distribute(&mut self) {
        let mut accepted = mem::take(&mut self.queues.accepted);
        for accepted in accepted.drain(..) {
            let thread = self.next_thread;
            self.next_thread = (thread + 1) % self.shared.mailboxes.len();
            if thread == self.index {
                self.open(accepted);
            } else if self.shared.mailboxes[thread].post(Message::Socket(accepted)).is_err() {
                self.shared.release_one();
            }
        }
        self.queues.accepted = accepted;
    }

    fn read_letters(&mut self) {
        let mut messages = mem::take(&mut self.queues.messages);
        self.mailbox().take(&mut messages);
        for message in messages.drain(..) {
            match message {
                Message::Socket(accepted) => self.open(accepted),
                Message::Wake(token) => self.wake(token),
                Message::Accept => {
                    if let Some(acceptor) = &mut self.acceptor {
                        acceptor.resume(&self.poller, &self.shared);
                    }
                }
                Message::Stop(at_ns) => self.stop(at_ns),
            }
        }
        self.queues.messages = messages;
    }

    fn open(&mut self, accepted: Accepted) {
        let Accepted { socket, address, transport } = accepted;
        if self.stop_at_ns.is_some() {
            return self.shared.release_one();
        }
        let slot = Slot::new(socket, transport, (self.make)(self.index), self.now_ns);
        let (token, slot) = self.slots.insert(slot);
        let posted = Arc::clone(&slot.posted);
        let added = self.poller.add(&slot.socket, token, Interest::Read);
        let shared = Arc::clone(&self.shared);
        let thread = self.index;
        let waker = Waker::new(move || {
            if !posted.swap(true, AcqRel) {
                // Posting fails only after the thread has ended, and its connections with it.
                let _ = shared.mailboxes[thread].post(Message::Wake(token));
            }
        });
        add(&self.counters().opened, 1);
        let peer = Peer { address, waker };
        let end = self.turn(token, |turn| {
            let result = turn.connection.opened(turn.now_ns, &peer, turn.output);
            match added {
                Ok(()) => turn.run(result),
                Err(error) => TurnEnd::Ended(Closed::Socket(error.kind())),
            }
        });
        self.settle(token, end);
    }

    pub(crate) fn slot(&mut self, token: u64) -> &mut Slot<C> {
        self.slots.get_mut(token).expect("the token of a connection that is open")
    }

    /// Gives a connection a turn with its own input.
    fn turn(&mut self, token: u64, act: impl FnOnce(&mut Turn<'_, C>) -> TurnEnd) -> TurnEnd {
        let Self { slots, buffers, shared, index, now_ns, moved_bytes, .. } = self;
        let Some(slot) = slots.get_mut(token) else { return TurnEnd::Unchanged };
        let Some(connection) = &mut slot.connection else { return TurnEnd::Unchanged };
        buffers.attach(&mut slot.output);
        let mut turn = Turn {
            connection,
            socket: slot.socket.as_fd(),
            transport: &mut slot.transport,
            input: &mut slot.input,
            output: &mut buffers.output,
            closing: &mut slot.closing,
            drained_due: &mut slot.drained_due,
            now_ns: *now_ns,
            budget_bytes: shared.config.turn_bytes,
            interleaved_read_bytes: 0,
        };
        let end = act(&mut turn);
        let sent = shared.config.turn_bytes - turn.budget_bytes;
        add(&shared.counters[*index].bytes_read, turn.interleaved_read_bytes);
        if sent > 0 {
            add(&shared.counters[*index].bytes_written, sent);
            slot.active_ns = *now_ns;
            *moved_bytes += sent;
        }
        slot.input.release();
        end
    }

    /// The socket is writable, or a connection that yielded has its next turn: sends what waits,
    /// and then resumes a protocol that paused for it.
    fn write(&mut self, token: u64) {
        let end = self.turn(token, |turn| turn.run(Ok(Flow::Continue)));
        self.settle(token, end);
    }

    fn wake(&mut self, token: u64) {
        let Some(slot) = self.slots.get_mut(token) else { return };
        // Cleared before the protocol is called, so that a wake during the call isn't lost.
        slot.posted.swap(false, AcqRel);
        self.resume(token, Wake::Posted);
    }

    fn resume(&mut self, token: u64, why: Wake) {
        let end = self.turn(token, |turn| match turn.closing {
            None => turn.resume(why),
            Some(_) => TurnEnd::Unchanged,
        });
        self.settle(token, end);
    }

    /// Continues a handshake, and serves the connection once it is done.
    #[cold]
    fn handshake(&mut self, token: u64) {
        let slot = self.slot(token);
        if slot.connection.is_none() {
            return self.linger(token);
        }
        let handshake = slot.transport.handshake(slot.socket.as_fd());
        match handshake {
            Handshake::Failed(kind) => self.close(token, Closed::Socket(kind)),
            Handshake::Reads => self.expect(token, Interest::Read),
            Handshake::Writes => {
                // The handshake's last bytes may wait with the output empty.
                self.slot(token).drained_due = true;
                self.expect(token, Interest::Write);
            }
            Handshake::Done => {
                let slot = self.slot(token);
                if slot.output.is_some() || slot.drained_due {
                    self.write(token)
                } else {
                    self.read(token)
                }
            }
        }
    }

    /// The socket is readable.
    pub(crate) fn read(&mut self, token: u64) {
        let Self { slots, buffers, shared, .. } = self;
        let Some(slot) = slots.get_mut(token) else { return };
        let Some(connection) = &mut slot.connection else { return self.linger(token) };
        let config = &shared.config;
        let input = buffers.input_for(&mut slot.input);
        let socket = slot.socket.as_fd();
        let outcome = match connection.place() {
            Some(place) if !place.is_empty() && input.is_empty() && slot.transport.is_plain() => {
                let most = place.len().min(config.turn_bytes);
                let outcome = read(socket, &mut place[..most]);
                if let ReadOutcome::Bytes(count) = outcome {
                    connection.placed(count);
                }
                outcome
            }
            _ => slot.transport.read_into(socket, input, config.input_limit_bytes),
        };
        self.answer(token, outcome, 0);
    }

    /// Has the protocol answer the bytes read into its input. An answer of at most `max_deferred`
    /// bytes, if it ends the turn, is left in the connection's output, for a batched send.
    pub(crate) fn answer(&mut self, token: u64, outcome: ReadOutcome, max_deferred: usize) -> Sent {
        let Self { slots, buffers, shared, index, now_ns, moved_bytes, .. } = self;
        let Some(slot) = slots.get_mut(token) else { return Sent::Now };
        let Some(connection) = &mut slot.connection else { return Sent::Now };
        let config = &shared.config;
        let is_large = slot.input.len() > SMALL_REST_BYTES;
        let mut turn = Turn {
            connection,
            socket: slot.socket.as_fd(),
            transport: &mut slot.transport,
            input: if is_large { &mut slot.input } else { &mut buffers.input },
            output: &mut buffers.output,
            closing: &mut slot.closing,
            drained_due: &mut slot.drained_due,
            now_ns: *now_ns,
            budget_bytes: config.turn_bytes,
            interleaved_read_bytes: 0,
        };
        let mut sent = Sent::Now;
        let end = match outcome {
            ReadOutcome::Bytes(count) => {
                add(&shared.counters[*index].bytes_read, count);
                let result = turn.receive();
                let end = if turn.can_defer_send(&result, max_deferred) {
                    sent = Sent::Deferred;
                    TurnEnd::Unchanged
                } else {
                    turn.run(result)
                };
                let sent_bytes = config.turn_bytes - turn.budget_bytes;
                add(&shared.counters[*index].bytes_written, sent_bytes);
                add(&shared.counters[*index].bytes_read, turn.interleaved_read_bytes);
                slot.active_ns = *now_ns;
                *moved_bytes += count + sent_bytes;
                end
            }
            // Handshake bytes that the socket didn't take wait like any other output.
            ReadOutcome::Blocked if turn.transport.has_unsent() => turn.run(Ok(Flow::Continue)),
            ReadOutcome::Blocked => TurnEnd::NothingRead,
            ReadOutcome::Closed => TurnEnd::Ended(Closed::ByPeer),
            ReadOutcome::Failed(kind) => TurnEnd::Ended(Closed::Socket(kind)),
            ReadOutcome::Full(fault) => {
                turn.connection.too_large(turn.output);
                turn.run(Err(fault))
            }
        };
        if is_large {
            slot.input.release();
        } else if !buffers.input.is_empty() {
            slot.input = buffers.input.split_rest();
        }
        self.settle(token, end);
        sent
    }

    /// Ends a connection's turn: keeps its unsent bytes and waits for the event it needs next.
    #[inline]
    pub(crate) fn settle(&mut self, token: u64, end: TurnEnd) {
        let stopping = self.stop_at_ns.is_some();
        let Some(slot) = self.slots.get_mut(token) else { return };
        if let TurnEnd::Ended(why) = end {
            return self.close(token, why);
        }
        self.buffers.detach(&mut slot.output);
        match end {
            TurnEnd::Close => return self.close_gently(token),
            TurnEnd::NothingRead if stopping && slot.input.is_empty() => {
                return self.close(token, Closed::Stopping);
            }
            TurnEnd::Done if stopping => self.queue(token),
            // Decrypted bytes wait in memory, where epoll doesn't see them.
            TurnEnd::Done | TurnEnd::NothingRead if slot.transport.has_plaintext() => {
                self.queue(token)
            }
            TurnEnd::Done | TurnEnd::NothingRead => self.expect(token, Interest::Read),
            TurnEnd::Blocked => self.expect(token, Interest::Write),
            TurnEnd::Yielded => {
                add(&self.counters().yields, 1);
                self.queue(token);
            }
            TurnEnd::Unchanged | TurnEnd::Ended(_) => {}
        }
        self.arm(token);
        if self.moved_bytes >= CLOCK_EVERY_BYTES {
            self.read_clock();
        }
    }

    /// Waits for `interest` from now on.
    #[inline]
    pub(crate) fn expect(&mut self, token: u64, interest: Interest) {
        let Self { slots, poller, .. } = self;
        let Some(slot) = slots.get_mut(token) else { return };
        if slot.interest != interest {
            slot.interest = interest;
            if let Err(error) = poller.modify(&slot.socket, token, interest) {
                self.close(token, Closed::Socket(error.kind()));
            }
        }
    }

    pub(crate) fn queue(&mut self, token: u64) {
        let Some(slot) = self.slots.get_mut(token) else { return };
        if !mem::replace(&mut slot.queued, true) {
            self.queues.yielded.push(token);
        }
    }

    /// Gives the connections that yielded their next turn.
    fn run_queued(&mut self) {
        let spare = mem::take(&mut self.queues.yielded_spare);
        let mut yielded = mem::replace(&mut self.queues.yielded, spare);
        for token in yielded.drain(..) {
            let Some(slot) = self.slots.get_mut(token) else { continue };
            slot.queued = false;
            if slot.output.is_some() || slot.drained_due {
                self.write(token)
            } else {
                self.read(token)
            }
        }
        self.queues.yielded_spare = yielded;
    }

    /// When the connection's next timer is due.
    #[inline]
    fn deadline_ns(slot: &Slot<C>, idle_ns: Option<Ns>) -> Ns {
        let Some(connection) = &slot.connection else { return slot.active_ns + LINGER_NS };
        let own = if slot.closing.is_none() { connection.deadline() } else { None };
        let idle = idle_ns.map_or(NEVER, |idle_ns| slot.active_ns.saturating_add(idle_ns));
        own.unwrap_or(NEVER).min(idle)
    }

    /// Sets a timer for the connection's deadline, unless an earlier one is set.
    #[inline]
    pub(crate) fn arm(&mut self, token: u64) {
        let Self { slots, timers, now_ns, idle_ns, .. } = self;
        let Some(slot) = slots.get_mut(token) else { return };
        let deadline_ns = Self::deadline_ns(slot, *idle_ns);
        if deadline_ns < slot.armed_ns {
            // At least 1 ns ahead: a deadline that stays in the past must not starve the loop.
            slot.armed_ns = deadline_ns.max(*now_ns + 1);
            timers.set(slot.armed_ns, token);
            let live = slots.len();
            timers.compact(live, |at, token| {
                slots.get(token).is_some_and(|slot| slot.armed_ns == at)
            });
        }
    }

    fn call_timers(&mut self) {
        while let Some((at_ns, token)) = self.timers.due(self.now_ns) {
            let now_ns = self.now_ns;
            let Some(slot) = self.slots.get_mut(token) else { continue };
            if slot.armed_ns != at_ns {
                continue;
            }
            slot.armed_ns = NEVER;
            if Self::deadline_ns(slot, self.idle_ns) > now_ns {
                self.arm(token);
            } else if slot.connection.is_none() {
                self.finish(token);
            } else if self.idle_ns.is_some_and(|idle_ns| slot.active_ns + idle_ns <= now_ns) {
                self.close(token, Closed::Socket(std::io::ErrorKind::TimedOut));
            } else {
                self.resume(token, Wake::Timer);
            }
        }
        if let Some(acceptor) = &mut self.acceptor
            && acceptor.retry_at_ns().is_some_and(|at_ns| at_ns <= self.now_ns)
        {
            acceptor.resume(&self.poller, &self.shared);
        }
    }
}
