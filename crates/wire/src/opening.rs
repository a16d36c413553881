//! How connections begin: accepted ones, outgoing ones, and their handshakes.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::AcqRel;

use crate::clock::duration_ns;
use crate::counters::add;
use crate::handle::Connect;
use crate::handshake::Handshake;
use crate::mailbox::{Accepted, Message};
use crate::poll::Interest;
use crate::slots::Slot;
use crate::system::System;
use crate::timers::NEVER;
use crate::together;
use crate::transport::Transport;
use crate::turn::TurnEnd;
use crate::worker::Worker;
use crate::{Address, Closed, Connection, Peer, Waker};

impl<C: Connection, S: System> Worker<C, S> {
    /// Serves an accepted connection.
    pub(crate) fn open(&mut self, accepted: Accepted<S::Socket>) {
        let Accepted { socket, address, transport, listener } = accepted;
        if self.stop_at_ns.is_some() {
            return self.shared.release_one();
        }
        let protocol = (self.factories[listener])(self.handle.clone());
        let mut slot = Slot::new(socket, transport, protocol, self.now_ns);
        if slot.transport.is_handshaking() {
            let timeout_ns = duration_ns(self.shared.config.handshake_timeout);
            slot.establish_by_ns = self.now_ns.saturating_add(timeout_ns);
        }
        let token = self.slots.insert(slot).0;
        add(&self.counters().opened, 1);
        self.announce(token, address);
    }

    /// Reads from the connections that were accepted in this pass. What a client sends with its
    /// connection has often come by now: then the socket is never polled for it.
    pub(crate) fn read_fresh(&mut self) {
        let mut fresh = mem::take(&mut self.queues.fresh);
        for token in fresh.drain(..) {
            match self.slots.get(token) {
                Some(slot) if slot.transport.is_handshaking() => self.handshake(token),
                Some(slot) if !slot.queued && !slot.is_polled => self.read(token),
                _ => {}
            }
        }
        self.queues.fresh = fresh;
    }

    /// Tells the protocol that its connection is open.
    fn announce(&mut self, token: u64, address: Address) {
        let posted = Arc::clone(&self.slot(token).posted);
        let peer = Peer { address, waker: self.waker(token, posted) };
        let end = self.turn(token, |turn| {
            let result = turn.connection.opened(turn.now_ns, &peer, turn.output);
            turn.run(result)
        });
        if end == TurnEnd::Done && !self.slot(token).is_polled {
            self.queues.fresh.push(token);
            return self.settle(token, TurnEnd::Unchanged);
        }
        self.settle(token, end);
    }

    /// A waker that posts to this thread's mailbox; `posted` merges wakes until they are read.
    pub(crate) fn waker(&self, token: u64, posted: Arc<AtomicBool>) -> Waker {
        let (shared, thread) = (Arc::clone(&self.shared), self.index);
        Waker::new(move || {
            if posted.swap(true, AcqRel) {
                return;
            }
            // Posting fails only after the thread has ended, and its connections with it.
            if shared.mailboxes[thread].leave(Message::Wake(token)).unwrap_or(false) {
                let shared = Arc::clone(&shared);
                together::ring(move || shared.mailboxes[thread].ring());
            }
        })
    }

    /// Begins an outgoing connection.
    pub(crate) fn connect(&mut self, request: Connect<C>) {
        let Connect { address, timeout_ns, mut protocol } = request;
        if self.stop_at_ns.is_some() {
            self.handle.release_outgoing();
            return protocol.closed(Closed::Stopping);
        }
        let socket = match self.system.connect(&address) {
            Ok(socket) => socket,
            Err(error) => {
                self.handle.release_outgoing();
                return protocol.closed(Closed::Socket(error.kind()));
            }
        };
        let mut slot = Slot::new(socket, Transport::Connecting, protocol, self.now_ns);
        slot.is_outgoing = true;
        slot.connecting_to = Some(Box::new(address));
        slot.establish_by_ns = self.now_ns.saturating_add(timeout_ns);
        slot.interest = Interest::Write;
        let (token, slot) = self.slots.insert(slot);
        slot.is_polled = true;
        match self.system.add(&slot.socket, token, Interest::Write) {
            Ok(()) => self.arm(token),
            Err(error) => self.close(token, Closed::Socket(error.kind())),
        }
    }

    /// Continues a handshake or a connect, and serves the connection once it is done.
    #[cold]
    pub(crate) fn handshake(&mut self, token: u64) {
        let slot = self.slot(token);
        if slot.connection.is_none() {
            return self.linger(token);
        }
        let handshake = slot.transport.handshake(&slot.socket);
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
                slot.establish_by_ns = NEVER;
                if let Some(address) = slot.connecting_to.take() {
                    self.announce(token, *address);
                } else if slot.output.is_some() || slot.drained_due {
                    self.write(token);
                } else {
                    self.read(token);
                }
            }
        }
    }
}
