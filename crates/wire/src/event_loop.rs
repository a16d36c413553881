//! One thread's event loop: waits for events and gives each ready connection a turn. Data plane.
//!
//! Level-triggered, and one read per readiness: bytes left unread are reported again, so no read
//! is made only to return EAGAIN.

use std::mem;
use std::sync::atomic::Ordering::SeqCst;

use crate::accept::{Acceptor, LISTENER_TOKEN};
use crate::datagrams::{DATAGRAM_TOKEN, endpoint_and_socket};
use crate::mailbox::Message;
use crate::poll::{Event, Interest};
use crate::slots::SPECIAL;
use crate::system::{Ring, System};
use crate::timers::NEVER;
use crate::watching::WATCH_TOKEN;
use crate::worker::Worker;
use crate::{Closed, Connection, Ns, Wake};

/// The mailbox's token.
pub(crate) const MAILBOX_TOKEN: u64 = SPECIAL;

impl<C: Connection, S: System> Worker<C, S> {
    /// Runs until the server stops.
    pub(crate) fn run(mut self) {
        self.open_endpoints();
        while !self.is_finished() {
            self.pass();
        }
        self.end();
    }

    /// One pass of the loop: waits, and serves everything that is due.
    #[inline]
    pub(crate) fn pass(&mut self) {
        let events = self.wait();
        self.read_clock();
        self.round.begin(1);
        match self.uring.take() {
            None => (0..events).for_each(|index| self.dispatch(self.system.event(index))),
            Some(mut uring) => {
                self.dispatch_batch(events, &mut uring);
                if uring.ring.is_lost() {
                    self.shared.uring_threads.fetch_sub(1, SeqCst);
                } else {
                    self.uring = Some(uring);
                }
            }
        }
        if self.mailbox().is_pending() {
            self.read_messages();
        }
        if !self.queues.fresh.is_empty() {
            self.read_fresh();
        }
        self.call_timers();
        self.run_queued();
        if self.handle.has_requests() {
            self.serve_requests();
        }
        if let Some(after_pass) = &self.shared.config.after_pass {
            after_pass.wake();
        }
    }

    /// Whether the thread has stopped serving.
    pub(crate) fn is_finished(&self) -> bool {
        self.stop_at_ns.is_some_and(|at| self.slots.len() == 0 || self.now_ns >= at)
    }

    /// Waits for events or the nearest timer, and returns how many events there are.
    fn wait(&mut self) -> usize {
        let may_sleep = !self.has_work() && self.mailbox().may_sleep();
        let timeout_ns = if may_sleep { self.nearest_ns() } else { Some(0) };
        let events =
            self.system.wait(timeout_ns).expect("waiting fails only for a bug in the loop");
        if may_sleep {
            self.mailbox().awake();
        }
        events
    }

    /// The time until the nearest timer.
    fn nearest_ns(&self) -> Option<Ns> {
        // Against the clock as it is now: time spent since it was read must not lengthen the wait.
        Some(self.nearest_at_ns()?.saturating_sub(self.system.now()))
    }

    /// The time of the nearest timer.
    pub(crate) fn nearest_at_ns(&self) -> Option<Ns> {
        let retry_at = self.acceptor.as_ref().and_then(Acceptor::retry_at_ns);
        let times = [self.timers.next(), retry_at, self.stop_at_ns];
        times.into_iter().flatten().min()
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
            // What only continues to send waits for the next round.
            Some(slot) if slot.output.is_some() || slot.drained_due => {
                match self.round.is_spent() {
                    true => self.queue(token),
                    false => self.write(token),
                }
            }
            // Only an error or a hang-up is reported then: no answer can be sent any more.
            Some(slot) if slot.interest == Interest::Nothing => {
                self.close(token, Closed::ByPeer);
            }
            Some(_) => self.read(token),
            None => {}
        }
    }

    fn dispatch_special(&mut self, token: u64) {
        if token == MAILBOX_TOKEN {
            self.mailbox().clear_event();
        } else if token >= WATCH_TOKEN {
            self.wake_watcher(token);
        } else if token >= DATAGRAM_TOKEN {
            let (endpoint, socket) = endpoint_and_socket(token);
            if let Some(open) = self.endpoints.get_mut(endpoint) {
                open.turn(socket, self.now_ns, &self.shared.counters[self.index]);
                self.arm_endpoint(endpoint);
            }
        } else if let Some(acceptor) = &mut self.acceptor
            && token >= LISTENER_TOKEN
        {
            let into = &mut self.queues.accepted;
            acceptor.accept(token, &self.system, &self.shared, self.now_ns, into);
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

    fn read_messages(&mut self) {
        let mut messages = mem::take(&mut self.queues.messages);
        self.mailbox().take(&mut messages);
        for message in messages.drain(..) {
            match message {
                Message::Socket(accepted) => self.open(accepted),
                Message::Wake(token) if token & SPECIAL != 0 => {
                    self.resume_endpoint(token, Wake::Posted);
                }
                Message::Wake(token) => self.wake(token),
                Message::Accept => {
                    if let Some(acceptor) = &mut self.acceptor {
                        acceptor.resume(&self.system, &self.shared);
                    }
                }
                Message::Stop(at_ns) => self.stop(at_ns),
            }
        }
        self.queues.messages = messages;
    }

    fn call_timers(&mut self) {
        // The clock may be read meanwhile: what becomes due then waits for the next pass.
        let now_ns = self.now_ns;
        while let Some((at_ns, token)) = self.timers.due(now_ns) {
            if token & SPECIAL != 0 {
                self.call_endpoint_timer(at_ns, token);
            } else if let Some(slot) = self.slots.get_mut(token)
                && slot.armed_ns == at_ns
            {
                slot.armed_ns = NEVER;
                self.call_timer(token);
            }
        }
        if let Some(acceptor) = &mut self.acceptor
            && acceptor.retry_at_ns().is_some_and(|at_ns| at_ns <= self.now_ns)
        {
            acceptor.resume(&self.system, &self.shared);
        }
    }

    /// A connection's timer: does what is due of all that the timer stands for.
    fn call_timer(&mut self, token: u64) {
        let (now_ns, idle_ns) = (self.now_ns, self.idle_ns);
        let slot = self.slot(token);
        if Self::deadline_ns(slot, idle_ns) > now_ns {
            self.arm(token);
        } else if slot.poll_by_ns <= now_ns {
            let interest = slot.interest;
            slot.poll_by_ns = NEVER;
            self.expect(token, interest);
            self.arm(token);
        } else if slot.connection.is_none() {
            self.finish(token);
        } else if slot.establish_by_ns <= now_ns || Self::idle_until_ns(slot, idle_ns) <= now_ns {
            self.close(token, Closed::Socket(std::io::ErrorKind::TimedOut));
        } else {
            self.resume(token, Wake::Timer);
        }
    }
}
