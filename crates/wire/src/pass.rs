//! What one connection does in one turn: calls of its protocol and the writes that follow them.
//!
//! Knows the socket and the buffers, and nothing of other connections, timers or polling.

use rustix::fd::BorrowedFd;

use crate::link::Link;
use crate::stream::{FlushOutcome, ReadOutcome};
use crate::{Closed, Connection, Flow, Input, Ns, Output, ProtocolError, Wake};

/// Hands the input to a protocol as a loop does: what of it belongs into the
/// [place](Connection::place) that the protocol names is moved there. Does no I/O, so that tests
/// and fuzzers drive a protocol with it just as a server does.
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
        if flow == Flow::Close || input.is_empty() || out.is_full() {
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

/// What the loop has to do for a connection after its turn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Wait for bytes.
    Idle,
    /// Nothing was there to read: wait for bytes.
    Quiet,
    /// It has more to do than one turn allows: go on in the next.
    Again,
    /// Wait until the peer takes what is unsent.
    Blocked,
    /// Wait for what is waited for already.
    Stay,
    /// All is sent: close for the reason that was noted.
    Close,
    /// The socket is of no use any more.
    Gone(Closed),
}

/// One connection's turn.
pub(crate) struct Pass<'a, C> {
    pub(crate) connection: &'a mut C,
    pub(crate) socket: BorrowedFd<'a>,
    pub(crate) link: &'a mut Link,
    pub(crate) input: &'a mut Input,
    pub(crate) output: &'a mut Output,
    pub(crate) closing: &'a mut Option<Closed>,
    pub(crate) owed: &'a mut bool,
    pub(crate) now_ns: Ns,
    /// How many bytes may still be sent in this turn.
    pub(crate) budget_bytes: usize,
    /// How many bytes were read between two sendings.
    pub(crate) heard_bytes: usize,
}

/// Between two sendings so much of what the peer says is read.
const HEARD_MOST_BYTES: usize = 16 * 1024;

impl<C: Connection> Pass<'_, C> {
    #[inline]
    pub(crate) fn receive(&mut self) -> Result<Flow, ProtocolError> {
        deliver(self.connection, self.now_ns, self.input, self.output)
    }

    /// Whether all that is left of the turn is to send an answer of at most `most` bytes, so that
    /// it may be sent with those of others.
    #[inline]
    pub(crate) fn may_wait(&self, result: &Result<Flow, ProtocolError>, most: usize) -> bool {
        if most == 0 {
            return false;
        }
        let is_over = *result == Ok(Flow::Continue) && self.closing.is_none() && !*self.owed;
        let is_due = !self.output.is_empty() && !self.output.is_full();
        is_over && is_due && self.output.plain().is_some_and(|bytes| bytes.len() <= most)
    }

    /// Sends what the protocol has answered, and calls it again for as long as all can be sent at
    /// once and it had to pause for that.
    #[inline]
    pub(crate) fn run(&mut self, result: Result<Flow, ProtocolError>) -> After {
        self.note(result);
        loop {
            let drained_due = *self.owed || self.output.is_full();
            match self.flush() {
                FlushOutcome::Failed(kind) => return After::Gone(Closed::Socket(kind)),
                FlushOutcome::Done if self.closing.is_some() => return After::Close,
                FlushOutcome::Done if !drained_due => return After::Idle,
                FlushOutcome::Done if self.budget_bytes > 0 => {
                    *self.owed = false;
                    let result = self.drained();
                    self.note(result);
                }
                FlushOutcome::Done | FlushOutcome::More => {
                    *self.owed = true;
                    return After::Again;
                }
                FlushOutcome::Blocked => {
                    *self.owed = true;
                    return After::Blocked;
                }
            }
        }
    }

    /// Resumes the protocol. When earlier output still waits, nothing is sent: the socket would
    /// not take it, or it isn't this connection's turn.
    pub(crate) fn resume(&mut self, why: Wake) -> After {
        let waiting = *self.owed || !self.output.is_empty();
        let mut result = self.connection.resume(self.now_ns, why, self.output);
        if waiting {
            self.note(result);
            return After::Stay;
        }
        if result == Ok(Flow::Continue) && !self.input.is_empty() && !self.output.is_full() {
            result = self.receive();
        }
        self.run(result)
    }

    fn drained(&mut self) -> Result<Flow, ProtocolError> {
        // What the peer has said meanwhile comes first: one to whom is pushed without end could
        // otherwise never ask for an end of it.
        if self.input.len() < HEARD_MOST_BYTES
            && let ReadOutcome::Bytes(count) =
                self.link.read_into(self.socket, self.input, HEARD_MOST_BYTES)
        {
            self.heard_bytes += count;
            let flow = self.receive()?;
            if flow == Flow::Close || self.output.is_full() {
                return Ok(flow);
            }
        }
        let flow = self.connection.resume(self.now_ns, Wake::Drained, self.output)?;
        if flow == Flow::Close || self.input.is_empty() || self.output.is_full() {
            return Ok(flow);
        }
        self.receive()
    }

    #[inline]
    fn flush(&mut self) -> FlushOutcome {
        let before = self.output.len();
        let outcome = self.link.flush(self.socket, self.output, self.budget_bytes);
        self.budget_bytes -= before - self.output.len();
        outcome
    }

    /// Keeps the first reason to close: what follows it is only its consequence.
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
