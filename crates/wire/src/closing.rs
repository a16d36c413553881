//! How connections end: at once, or after their last answer; and how a thread stops. Data plane.

use std::sync::atomic::Ordering::SeqCst;

use crate::clock::SECOND_NS;
use crate::counters::add;
use crate::mailbox::Message;
use crate::poll::Interest;
use crate::stream::{self, ReadOutcome, Socket};
use crate::system::System;
use crate::worker::Worker;
use crate::{Closed, Connection, Input, Ns};

/// For how long, and for how many bytes, a closed connection's socket is still read from, so that
/// a reset doesn't discard the last answer.
pub(crate) const LINGER_NS: Ns = SECOND_NS;
const LINGER_BYTES: usize = 1 << 20;

impl<C: Connection, S: System> Worker<C, S> {
    /// Calls [`Connection::closed`].
    fn notify_closed(&mut self, token: u64, why: Closed) {
        if matches!(why, Closed::ProtocolError(_)) {
            add(&self.counters().protocol_errors, 1);
        }
        if let Some(mut connection) = self.slot(token).connection.take() {
            connection.closed(why);
        }
    }

    /// Closes at once.
    pub(crate) fn close(&mut self, token: u64, why: Closed) {
        self.buffers.discard();
        if let Some(slot) = self.slots.get_mut(token) {
            slot.transport.end(&slot.socket);
        }
        self.notify_closed(token, why);
        self.finish(token);
    }

    /// Closes after all is sent: shuts down the sending side and waits for the peer's end. A
    /// socket closed with unread bytes is reset, and the reset could discard the last answer.
    pub(crate) fn close_gently(&mut self, token: u64) {
        let slot = self.slot(token);
        let why = slot.closing.take().unwrap_or(Closed::ByUs);
        if slot.transport.is_plain() && slot.connection.as_ref().is_some_and(|one| !one.lingers()) {
            return self.close(token, why);
        }
        self.notify_closed(token, why);
        let now_ns = self.now_ns;
        let slot = self.slot(token);
        slot.input = Input::new();
        // Nothing is written any more: what the peer sends is discarded at once.
        slot.drained_due = false;
        slot.linger_left_bytes = LINGER_BYTES;
        slot.active_ns = now_ns;
        slot.transport.end(&slot.socket);
        if slot.socket.end_sending().is_err() {
            return self.finish(token);
        }
        self.expect(token, Interest::Read);
        self.arm(token);
    }

    /// Discards what the peer of a closed connection still sends.
    pub(crate) fn linger(&mut self, token: u64) {
        let Self { slots, buffers, .. } = self;
        let Some(slot) = slots.get_mut(token) else { return };
        let outcome = stream::read_into(&slot.socket, &mut buffers.input, usize::MAX);
        buffers.input.clear();
        match outcome {
            ReadOutcome::Blocked => {}
            ReadOutcome::Bytes(count) if count < slot.linger_left_bytes => {
                slot.linger_left_bytes -= count;
            }
            _ => self.finish(token),
        }
    }

    /// Closes the socket and frees the slot.
    pub(crate) fn finish(&mut self, token: u64) {
        match self.slots.remove(token) {
            Some(slot) if slot.is_outgoing => self.handle.release_outgoing(),
            Some(_) => self.shared.release_one(),
            None => {}
        }
    }

    /// Stops accepting, and gives each connection a last turn for bytes that have arrived.
    pub(crate) fn stop(&mut self, at_ns: Ns) {
        self.acceptor = None;
        self.stop_at_ns = Some(at_ns);
        for mut endpoint in self.endpoints.drain(..) {
            endpoint.drain(self.now_ns, &self.shared.counters[self.index]);
        }
        for token in self.slots.tokens() {
            if self.slot(token).connection.is_some() && self.slot(token).output.is_none() {
                self.queue(token);
            }
        }
    }

    /// Closes one at once that is not needed any more, or has had its time.
    pub(crate) fn close_at_stop(&mut self, token: u64) {
        let slot = self.slot(token);
        let resets = |one: &C| one.resets_at_stop() && !one.has_pending();
        if slot.output.is_none() && slot.connection.as_ref().is_some_and(resets) {
            slot.socket.reset_at_close();
        }
        self.close(token, Closed::Stopping);
    }

    /// Closes the connections that are left at the end of the drain.
    pub(crate) fn end(mut self) {
        for token in self.slots.tokens() {
            self.close_at_stop(token);
        }
        for message in self.mailbox().close() {
            if matches!(message, Message::Socket(_)) {
                self.shared.release_one();
            }
        }
        debug_assert!(
            self.shared.current.load(SeqCst) < usize::MAX / 2,
            "a connection was released twice"
        );
    }
}
