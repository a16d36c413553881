//! One connection's turn: calls of its protocol and the writes that follow them. Data plane.
//!
//! Knows the socket and the buffers, and nothing of other connections, timers or polling.

use crate::stream::{FlushOutcome, ReadOutcome, Socket};
use crate::transport::Transport;
use crate::{Closed, Connection, Flow, Input, Ns, Output, ProtocolError, Wake};

/// Delivers the input to a protocol as the loop does: bytes that belong into the
/// [place](Connection::place) that the protocol names are copied there. Does no I/O, so that tests
/// and fuzzers drive a protocol exactly as a server does.
///
/// # Errors
/// The protocol's own [`ProtocolError`].
#[inline]
pub fn deliver<C: Connection>(
    connection: &mut C,
    now: Ns,
    input: &mut Input,
    out: &mut Output,
) -> Result<Flow, ProtocolError> {
    loop {
        let flow = connection.receive(now, input, out)?;
        if flow == Flow::Close || input.is_empty() || out.is_full() || !connection.wants_input() {
            return Ok(flow);
        }
        match connection.place() {
            Some(place) if !place.is_empty() => {
                let count = place.len().min(input.len());
                place[..count].copy_from_slice(&input.bytes()[..count]);
                input.consume(count);
                connection.placed(count);
            }
            _ => return Ok(flow),
        }
    }
}

/// How a turn has ended, and with it what the loop does for the connection next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    /// All is sent: wait for readability.
    Done,
    /// The socket had nothing to read: wait for readability.
    NothingRead,
    /// The turn's byte budget is spent: continue in the next turn of the loop.
    Yielded,
    /// The peer takes no more bytes: wait for writability.
    Blocked,
    /// Nothing was sent: keep waiting for the same event.
    Unchanged,
    /// All is sent: close for the noted reason.
    Close,
    /// The socket has failed or the peer has closed: close at once.
    Ended(Closed),
}

/// One connection's turn.
pub(crate) struct Turn<'a, C, K> {
    pub(crate) connection: &'a mut C,
    pub(crate) socket: &'a K,
    pub(crate) transport: &'a mut Transport,
    pub(crate) input: &'a mut Input,
    pub(crate) output: &'a mut Output,
    pub(crate) closing: &'a mut Option<Closed>,
    pub(crate) drained_due: &'a mut bool,
    pub(crate) now_ns: Ns,
    /// Bytes that may still be sent in this turn.
    pub(crate) budget_bytes: usize,
    /// Bytes read between two writes of this turn.
    pub(crate) interleaved_read_bytes: usize,
}

/// Between two writes of one turn, input is read up to this size.
const MAX_INTERLEAVED_READ_BYTES: usize = 16 * 1024;

impl<C: Connection, K: Socket> Turn<'_, C, K> {
    #[inline]
    pub(crate) fn receive(&mut self) -> Result<Flow, ProtocolError> {
        deliver(self.connection, self.now_ns, self.input, self.output)
    }

    /// Whether only an answer of at most `max_bytes` copied bytes is left to be sent, so that one
    /// io_uring submission can send it with those of other connections.
    #[inline]
    pub(crate) fn can_defer_send(
        &self,
        result: &Result<Flow, ProtocolError>,
        max_bytes: usize,
    ) -> bool {
        if max_bytes == 0 {
            return false;
        }
        let is_over = *result == Ok(Flow::Continue) && self.closing.is_none() && !*self.drained_due;
        let is_due = !self.output.is_empty() && !self.output.is_full();
        is_over && is_due && self.output.plain().is_some_and(|bytes| bytes.len() <= max_bytes)
    }

    /// Sends the protocol's answers. A protocol that paused on a full output is called again for
    /// as long as the socket takes everything at once and the budget lasts.
    #[inline]
    pub(crate) fn run(&mut self, result: Result<Flow, ProtocolError>) -> TurnEnd {
        self.note(result);
        loop {
            let drained_due = *self.drained_due || self.output.is_full();
            match self.flush() {
                FlushOutcome::Failed(kind) => return TurnEnd::Ended(Closed::Socket(kind)),
                FlushOutcome::Done if self.closing.is_some() => return TurnEnd::Close,
                FlushOutcome::Done if !drained_due => return TurnEnd::Done,
                FlushOutcome::Done if self.budget_bytes > 0 => {
                    *self.drained_due = false;
                    let result = self.drained();
                    self.note(result);
                }
                FlushOutcome::Done | FlushOutcome::More => {
                    *self.drained_due = true;
                    return TurnEnd::Yielded;
                }
                FlushOutcome::Blocked => {
                    *self.drained_due = true;
                    return TurnEnd::Blocked;
                }
            }
        }
    }

    /// Resumes the protocol. While earlier output waits, nothing is sent: the socket is blocked,
    /// or the connection is queued for its next turn.
    pub(crate) fn resume(&mut self, why: Wake) -> TurnEnd {
        let waiting = *self.drained_due || !self.output.is_empty();
        let mut result = self.connection.resume(self.now_ns, why, self.output);
        if waiting {
            self.note(result);
            return TurnEnd::Unchanged;
        }
        if result == Ok(Flow::Continue) && self.may_receive() {
            result = self.receive();
        }
        self.run(result)
    }

    fn drained(&mut self) -> Result<Flow, ProtocolError> {
        // Input comes first: a peer that is pushed to without pause could otherwise never ask
        // the protocol to stop.
        if self.input.len() < MAX_INTERLEAVED_READ_BYTES
            && self.connection.wants_input()
            && let ReadOutcome::Bytes(count) =
                self.transport.read_into(self.socket, self.input, MAX_INTERLEAVED_READ_BYTES)
        {
            self.interleaved_read_bytes += count;
            let flow = self.receive()?;
            if flow == Flow::Close || self.output.is_full() {
                return Ok(flow);
            }
        }
        let flow = self.connection.resume(self.now_ns, Wake::Drained, self.output)?;
        if flow == Flow::Close || !self.may_receive() {
            return Ok(flow);
        }
        self.receive()
    }

    /// Whether input waits that the protocol takes, and there is room for its answers.
    fn may_receive(&self) -> bool {
        !self.input.is_empty() && !self.output.is_full() && self.connection.wants_input()
    }

    #[inline]
    fn flush(&mut self) -> FlushOutcome {
        let before = self.output.len();
        let outcome = self.transport.flush(self.socket, self.output, self.budget_bytes);
        self.budget_bytes -= before - self.output.len();
        outcome
    }

    /// Keeps the first reason to close; later ones are its consequences.
    #[inline]
    fn note(&mut self, result: Result<Flow, ProtocolError>) {
        let why = match result {
            Ok(Flow::Continue) => return,
            Ok(Flow::Close) => Closed::ByUs,
            Err(fault) => Closed::ProtocolError(fault),
        };
        self.closing.get_or_insert(why);
    }
}
