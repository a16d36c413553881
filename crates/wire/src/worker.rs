//! The loop of one thread: waits, and gives every connection that has something to do its turn.
//!
//! Level-triggered and one read per readiness: what isn't read now is reported again, so no read
//! is made only to be told that nothing is there.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, SeqCst};

use rustix::fd::AsFd;
use rustix::net::{Shutdown, shutdown};

use crate::accept::{Accepted, Acceptor, LISTENER_TOKEN};
use crate::clock::{self, SECOND_NS};
use crate::counters::{ThreadCounters, add};
use crate::datagrams::{DATAGRAM_TOKEN, DatagramSocket};
use crate::link::Handshake;
use crate::mailbox::{Letter, Mailbox};
use crate::pass::{After, Pass};
use crate::poll::{Event, Interest, Poller};
use crate::server::{Shared, ThreadIndex};
use crate::slots::{Lent, SMALL_REST_BYTES, SPECIAL, Slot, Slots};
use crate::stream::{self, ReadOutcome, read};
use crate::timers::{NEVER, Timers};
use crate::together::{Sent, Together};
use crate::{Closed, Connection, Datagrams, Flow, Input, Ns, Peer, Wake, Waker};

/// The mailbox's token.
pub(crate) const MAILBOX_TOKEN: u64 = SPECIAL;

/// How long and for how many bytes a closed connection's socket is still read from, so that the
/// last answer isn't lost to a reset.
const LINGER_NS: Ns = SECOND_NS;
const LINGER_BYTES: usize = 1 << 20;

/// After so many bytes have moved, the clock is read again.
const CLOCK_EVERY_BYTES: usize = 128 * 1024;

/// One thread's part of a server.
pub(crate) struct Worker<C, D> {
    pub(crate) index: ThreadIndex,
    pub(crate) shared: Arc<Shared>,
    pub(crate) make: Arc<dyn Fn(ThreadIndex) -> C + Send + Sync>,
    pub(crate) poller: Poller,
    /// There where system calls are made together.
    pub(crate) together: Option<Box<Together>>,
    pub(crate) slots: Slots<C>,
    pub(crate) timers: Timers,
    pub(crate) lent: Lent,
    pub(crate) acceptor: Option<Acceptor>,
    pub(crate) datagrams: Vec<DatagramSocket<D>>,
    pub(crate) idle_ns: Option<Ns>,
    pub(crate) queues: Queues,
    pub(crate) now_ns: Ns,
    /// Bytes moved since the clock was read.
    pub(crate) moved_bytes: usize,
    /// When a stopping server closes what is still open.
    pub(crate) stop_at_ns: Option<Ns>,
    /// The thread that the next accepted connection goes to.
    pub(crate) next_thread: ThreadIndex,
}

/// Lists that keep their memory from turn to turn.
#[derive(Default)]
pub(crate) struct Queues {
    again: Vec<u64>,
    again_spare: Vec<u64>,
    letters: Vec<Letter>,
    accepted: Vec<Accepted>,
}

impl<C: Connection, D: Datagrams> Worker<C, D> {
    /// Runs until the server stops.
    pub(crate) fn run(mut self) {
        while !self.is_finished() {
            let events = self.wait();
            self.read_clock();
            match self.together.take() {
                None => (0..events).for_each(|index| self.dispatch(self.poller.event(index))),
                Some(mut together) => {
                    self.dispatch_together(events, &mut together);
                    if together.is_lost() {
                        self.shared.rings.fetch_sub(1, SeqCst);
                    } else {
                        self.together = Some(together);
                    }
                }
            }
            if self.mailbox().is_pending() {
                self.read_letters();
            }
            self.call_timers();
            self.go_on();
        }
        self.end();
    }

    fn mailbox(&self) -> &Mailbox {
        &self.shared.mailboxes[self.index]
    }

    fn counters(&self) -> &ThreadCounters {
        &self.shared.counters[self.index]
    }

    fn read_clock(&mut self) {
        self.now_ns = clock::now();
        self.moved_bytes = 0;
    }

    fn is_finished(&self) -> bool {
        self.stop_at_ns.is_some_and(|at| self.slots.len() == 0 || self.now_ns >= at)
    }

    /// Sleeps until something is to be done, and says how many sockets are ready.
    fn wait(&mut self) -> usize {
        let may_sleep = self.queues.again.is_empty() && self.mailbox().may_sleep();
        let timeout_ns = if may_sleep { self.nearest_ns() } else { Some(0) };
        let events = self.poller.wait(timeout_ns).expect("waiting fails only by a mistake here");
        if may_sleep {
            self.mailbox().awake();
        }
        events
    }

    /// How long until the nearest time at which something is to be done.
    fn nearest_ns(&self) -> Option<Ns> {
        let retry_at = self.acceptor.as_ref().and_then(Acceptor::retry_at_ns);
        let times = [self.timers.next(), retry_at, self.stop_at_ns];
        let nearest = times.into_iter().flatten().min()?;
        // The clock may have gone on since it was read: then the wait is short, not long.
        Some(nearest.saturating_sub(clock::now()))
    }

    #[inline]
    pub(crate) fn dispatch(&mut self, event: Event) {
        let token = event.token;
        if token & SPECIAL != 0 {
            return self.dispatch_special(token);
        }
        match self.slots.get(token) {
            // Its turn comes with the queue.
            Some(slot) if slot.queued => {}
            Some(slot) if slot.link.is_handshaking() => self.shake(token),
            Some(slot) if slot.output.is_some() || slot.owed => self.write(token),
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
            self.hand_over();
        }
    }

    /// Gives the accepted connections to the threads in turn.
    fn hand_over(&mut self) {
        let mut accepted = mem::take(&mut self.queues.accepted);
        for accepted in accepted.drain(..) {
            let thread = self.next_thread;
            self.next_thread = (thread + 1) % self.shared.mailboxes.len();
            if thread == self.index {
                self.open(accepted);
            } else if self.shared.mailboxes[thread].post(Letter::Socket(accepted)).is_err() {
                self.shared.release_one();
            }
        }
        self.queues.accepted = accepted;
    }

    fn read_letters(&mut self) {
        let mut letters = mem::take(&mut self.queues.letters);
        self.mailbox().take(&mut letters);
        for letter in letters.drain(..) {
            match letter {
                Letter::Socket(accepted) => self.open(accepted),
                Letter::Wake(token) => self.wake(token),
                Letter::Accept => {
                    if let Some(acceptor) = &mut self.acceptor {
                        acceptor.go_on(&self.poller, &self.shared);
                    }
                }
                Letter::Stop(at_ns) => self.stop(at_ns),
            }
        }
        self.queues.letters = letters;
    }

    fn open(&mut self, accepted: Accepted) {
        let Accepted { socket, address, link } = accepted;
        if self.stop_at_ns.is_some() {
            return self.shared.release_one();
        }
        let slot = Slot::new(socket, link, (self.make)(self.index), self.now_ns);
        let (token, slot) = self.slots.insert(slot);
        let posted = Arc::clone(&slot.posted);
        let added = self.poller.add(&slot.socket, token, Interest::Read);
        let shared = Arc::clone(&self.shared);
        let thread = self.index;
        let waker = Waker::new(move || {
            if !posted.swap(true, AcqRel) {
                // Nobody reads it only when the connection has gone, and then nobody need.
                let _ = shared.mailboxes[thread].post(Letter::Wake(token));
            }
        });
        add(&self.counters().opened, 1);
        let peer = Peer { address, waker };
        let after = self.pass(token, |pass| {
            let result = pass.connection.opened(pass.now_ns, &peer, pass.output);
            match added {
                Ok(()) => pass.run(result),
                Err(error) => After::Gone(Closed::Socket(error.kind())),
            }
        });
        self.settle(token, after);
    }

    fn slot(&mut self, token: u64) -> &mut Slot<C> {
        self.slots.get_mut(token).expect("the token of a connection that is open")
    }

    /// Gives a connection a turn with its own input.
    fn pass(&mut self, token: u64, turn: impl FnOnce(&mut Pass<'_, C>) -> After) -> After {
        let Self { slots, lent, shared, index, now_ns, moved_bytes, .. } = self;
        let Some(slot) = slots.get_mut(token) else { return After::Stay };
        let Some(connection) = &mut slot.connection else { return After::Stay };
        lent.begin(&mut slot.output);
        let mut pass = Pass {
            connection,
            socket: slot.socket.as_fd(),
            link: &mut slot.link,
            input: &mut slot.input,
            output: &mut lent.output,
            closing: &mut slot.closing,
            owed: &mut slot.owed,
            now_ns: *now_ns,
            budget_bytes: shared.config.turn_bytes,
            heard_bytes: 0,
        };
        let after = turn(&mut pass);
        let sent = shared.config.turn_bytes - pass.budget_bytes;
        add(&shared.counters[*index].bytes_read, pass.heard_bytes);
        if sent > 0 {
            add(&shared.counters[*index].bytes_written, sent);
            slot.active_ns = *now_ns;
            *moved_bytes += sent;
        }
        slot.input.release();
        after
    }

    /// The peer takes bytes again, or the connection's turn has come again: goes on with what is
    /// unsent, and then with what had to wait for that.
    fn write(&mut self, token: u64) {
        let after = self.pass(token, |pass| pass.run(Ok(Flow::Continue)));
        self.settle(token, after);
    }

    fn wake(&mut self, token: u64) {
        let Some(slot) = self.slots.get_mut(token) else { return };
        // Cleared before the protocol looks, so that a wake that comes while it does isn't lost.
        slot.posted.swap(false, AcqRel);
        self.resume(token, Wake::Posted);
    }

    fn resume(&mut self, token: u64, why: Wake) {
        let after = self.pass(token, |pass| match pass.closing {
            None => pass.resume(why),
            Some(_) => After::Stay,
        });
        self.settle(token, after);
    }

    /// Goes on with a handshake, and with the connection once it is over.
    #[cold]
    fn shake(&mut self, token: u64) {
        let slot = self.slot(token);
        if slot.connection.is_none() {
            return self.linger(token);
        }
        let handshake = slot.link.shake(slot.socket.as_fd());
        match handshake {
            Handshake::Failed(kind) => self.close(token, Closed::Socket(kind)),
            Handshake::Reads => self.expect(token, Interest::Read),
            Handshake::Writes => {
                // The last of it may be all that waits: then there is no output to say so.
                self.slot(token).owed = true;
                self.expect(token, Interest::Write);
            }
            Handshake::Done => {
                let slot = self.slot(token);
                if slot.output.is_some() || slot.owed {
                    self.write(token)
                } else {
                    self.read(token)
                }
            }
        }
    }

    /// The socket has something to read.
    pub(crate) fn read(&mut self, token: u64) {
        let Self { slots, lent, shared, .. } = self;
        let Some(slot) = slots.get_mut(token) else { return };
        let Some(connection) = &mut slot.connection else { return self.linger(token) };
        let config = &shared.config;
        let input = lent.input_for(&mut slot.input);
        let socket = slot.socket.as_fd();
        let outcome = match connection.place() {
            Some(place) if !place.is_empty() && input.is_empty() && slot.link.is_plain() => {
                let most = place.len().min(config.turn_bytes);
                let outcome = read(socket, &mut place[..most]);
                if let ReadOutcome::Bytes(count) = outcome {
                    connection.placed(count);
                }
                outcome
            }
            _ => slot.link.read_into(socket, input, config.input_limit_bytes),
        };
        self.answer(token, outcome, 0);
    }

    /// Has the protocol answer what has been read into its input. An answer of at most
    /// `most_waiting` bytes, which ends the turn, is left with the connection.
    pub(crate) fn answer(&mut self, token: u64, outcome: ReadOutcome, most_waiting: usize) -> Sent {
        let Self { slots, lent, shared, index, now_ns, moved_bytes, .. } = self;
        let Some(slot) = slots.get_mut(token) else { return Sent::Now };
        let Some(connection) = &mut slot.connection else { return Sent::Now };
        let config = &shared.config;
        let is_large = slot.input.len() > SMALL_REST_BYTES;
        let mut pass = Pass {
            connection,
            socket: slot.socket.as_fd(),
            link: &mut slot.link,
            input: if is_large { &mut slot.input } else { &mut lent.input },
            output: &mut lent.output,
            closing: &mut slot.closing,
            owed: &mut slot.owed,
            now_ns: *now_ns,
            budget_bytes: config.turn_bytes,
            heard_bytes: 0,
        };
        let mut sent = Sent::Now;
        let after = match outcome {
            ReadOutcome::Bytes(count) => {
                add(&shared.counters[*index].bytes_read, count);
                let result = pass.receive();
                let after = if pass.may_wait(&result, most_waiting) {
                    sent = Sent::Later;
                    After::Stay
                } else {
                    pass.run(result)
                };
                let sent_bytes = config.turn_bytes - pass.budget_bytes;
                add(&shared.counters[*index].bytes_written, sent_bytes);
                add(&shared.counters[*index].bytes_read, pass.heard_bytes);
                slot.active_ns = *now_ns;
                *moved_bytes += count + sent_bytes;
                after
            }
            // A handshake's answer that the peer does not take is waited for like any other.
            ReadOutcome::Blocked if pass.link.has_unsent() => pass.run(Ok(Flow::Continue)),
            ReadOutcome::Blocked => After::Quiet,
            ReadOutcome::Closed => After::Gone(Closed::ByPeer),
            ReadOutcome::Failed(kind) => After::Gone(Closed::Socket(kind)),
            ReadOutcome::Full(fault) => {
                pass.connection.too_large(pass.output);
                pass.run(Err(fault))
            }
        };
        if is_large {
            slot.input.release();
        } else if !lent.input.is_empty() {
            slot.input = lent.input.split_rest();
        }
        self.settle(token, after);
        sent
    }

    /// Leaves a connection as its turn has left it, waiting for what it needs next.
    #[inline]
    pub(crate) fn settle(&mut self, token: u64, after: After) {
        let stopping = self.stop_at_ns.is_some();
        let Some(slot) = self.slots.get_mut(token) else { return };
        if let After::Gone(why) = after {
            return self.close(token, why);
        }
        self.lent.end(&mut slot.output);
        match after {
            After::Close => return self.close_gently(token),
            After::Quiet if stopping && slot.input.is_empty() => {
                return self.close(token, Closed::Stopping);
            }
            After::Idle if stopping => self.queue(token),
            // The socket would not say that there is more: it has been read already.
            After::Idle | After::Quiet if slot.link.has_plaintext() => self.queue(token),
            After::Idle | After::Quiet => self.expect(token, Interest::Read),
            After::Blocked => self.expect(token, Interest::Write),
            After::Again => {
                add(&self.counters().yields, 1);
                self.queue(token);
            }
            After::Stay | After::Gone(_) => {}
        }
        self.arm(token);
        if self.moved_bytes >= CLOCK_EVERY_BYTES {
            self.read_clock();
        }
    }

    /// Waits for `interest` from now on.
    #[inline]
    fn expect(&mut self, token: u64, interest: Interest) {
        let Self { slots, poller, .. } = self;
        let Some(slot) = slots.get_mut(token) else { return };
        if slot.interest != interest {
            slot.interest = interest;
            if let Err(error) = poller.modify(&slot.socket, token, interest) {
                self.close(token, Closed::Socket(error.kind()));
            }
        }
    }

    fn queue(&mut self, token: u64) {
        let Some(slot) = self.slots.get_mut(token) else { return };
        if !mem::replace(&mut slot.queued, true) {
            self.queues.again.push(token);
        }
    }

    /// Gives a turn to those who had more to do than the last one allowed.
    fn go_on(&mut self) {
        let spare = mem::take(&mut self.queues.again_spare);
        let mut again = mem::replace(&mut self.queues.again, spare);
        for token in again.drain(..) {
            let Some(slot) = self.slots.get_mut(token) else { continue };
            slot.queued = false;
            if slot.output.is_some() || slot.owed { self.write(token) } else { self.read(token) }
        }
        self.queues.again_spare = again;
    }

    /// When the connection is to be called next without anything having come.
    #[inline]
    fn deadline_ns(slot: &Slot<C>, idle_ns: Option<Ns>) -> Ns {
        let Some(connection) = &slot.connection else { return slot.active_ns + LINGER_NS };
        let own = if slot.closing.is_none() { connection.deadline() } else { None };
        let idle = idle_ns.map_or(NEVER, |idle_ns| slot.active_ns.saturating_add(idle_ns));
        own.unwrap_or(NEVER).min(idle)
    }

    /// Sees to it that a timer comes at the connection's deadline or before.
    #[inline]
    fn arm(&mut self, token: u64) {
        let Self { slots, timers, now_ns, idle_ns, .. } = self;
        let Some(slot) = slots.get_mut(token) else { return };
        let deadline_ns = Self::deadline_ns(slot, *idle_ns);
        if deadline_ns < slot.armed_ns {
            // Not now: a deadline that has passed and stays would keep this thread from all else.
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
            acceptor.go_on(&self.poller, &self.shared);
        }
    }

    /// Tells the protocol that its connection has ended.
    fn tell_closed(&mut self, token: u64, why: Closed) {
        if matches!(why, Closed::ProtocolError(_)) {
            add(&self.counters().faults, 1);
        }
        if let Some(mut connection) = self.slot(token).connection.take() {
            connection.closed(why);
        }
    }

    /// Closes at once.
    fn close(&mut self, token: u64, why: Closed) {
        self.lent.discard();
        if let Some(slot) = self.slots.get_mut(token) {
            slot.link.end(slot.socket.as_fd());
        }
        self.tell_closed(token, why);
        self.finish(token);
    }

    /// Closes after all is sent: says so to the peer, and then waits for its end. A socket closed
    /// with bytes unread would be reset, and the reset could overtake the last answer.
    fn close_gently(&mut self, token: u64) {
        let why = self.slot(token).closing.take().unwrap_or(Closed::ByUs);
        self.tell_closed(token, why);
        let now_ns = self.now_ns;
        let slot = self.slot(token);
        slot.input = Input::new();
        slot.linger_left_bytes = LINGER_BYTES;
        slot.active_ns = now_ns;
        slot.link.end(slot.socket.as_fd());
        if shutdown(&slot.socket, Shutdown::Write).is_err() {
            return self.finish(token);
        }
        self.expect(token, Interest::Read);
        self.arm(token);
    }

    /// Throws away what the peer of a closed connection still sends.
    fn linger(&mut self, token: u64) {
        let Self { slots, lent, .. } = self;
        let Some(slot) = slots.get_mut(token) else { return };
        let outcome = stream::read_into(&slot.socket, &mut lent.input, usize::MAX);
        lent.input.clear();
        match outcome {
            ReadOutcome::Blocked => {}
            ReadOutcome::Bytes(count) if count < slot.linger_left_bytes => {
                slot.linger_left_bytes -= count;
            }
            _ => self.finish(token),
        }
    }

    /// Closes the socket and frees the place.
    fn finish(&mut self, token: u64) {
        if self.slots.remove(token).is_some() {
            self.shared.release_one();
        }
    }

    /// Accepts nothing more, and gives every connection a last look at what has come.
    fn stop(&mut self, at_ns: Ns) {
        self.acceptor = None;
        self.stop_at_ns = Some(at_ns);
        for mut socket in self.datagrams.drain(..) {
            socket.expect_many();
            socket.turn(self.now_ns, &self.shared.counters[self.index]);
        }
        for token in self.slots.tokens() {
            if self.slot(token).connection.is_some() && self.slot(token).output.is_none() {
                self.queue(token);
            }
        }
    }

    /// Closes what the deadline has found unfinished.
    fn end(mut self) {
        for token in self.slots.tokens() {
            self.close(token, Closed::Stopping);
        }
        for letter in self.mailbox().close() {
            if matches!(letter, Letter::Socket(_)) {
                self.shared.release_one();
            }
        }
        debug_assert!(self.shared.current.load(SeqCst) < usize::MAX / 2, "counted off too often");
    }
}
