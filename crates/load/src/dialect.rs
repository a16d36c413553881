//! The client side of a connection under load: a workload's operations in one protocol.

use std::borrow::Cow;

use wire::{Input, Ns, Output, ProtocolError};

use crate::mix::Op;

/// Names an outstanding request of one connection. The engine chooses it and may use it again once
/// the request is done or expired.
pub type Tag = u32;

/// An answered request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Which request.
    pub tag: Tag,
    /// How many answers it brought, right or wrong: the unit of throughput. One, or the number of
    /// keys that a request of many asked for.
    pub answers: u32,
    /// How many of them say that there is no such thing.
    pub misses: u32,
    /// How many of them are wrong.
    pub wrong: u32,
    /// How many of them say in good order that the operation is not done: the server has too much
    /// to do, or no room. They are no wrong answers; a refusal that is right is not counted here.
    pub refused: u32,
}

impl Done {
    /// One right answer.
    pub const fn right(tag: Tag) -> Self {
        Self { tag, answers: 1, misses: 0, wrong: 0, refused: 0 }
    }

    /// One wrong answer.
    pub const fn wrong(tag: Tag) -> Self {
        Self { wrong: 1, ..Self::right(tag) }
    }

    /// One refusal.
    pub const fn refused(tag: Tag) -> Self {
        Self { refused: 1, ..Self::right(tag) }
    }
}

/// A new value that a stream has brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// Which stream: the tag of the request that began it.
    pub stream: Tag,
    /// How many values the target had in between that did not come, by the count that they carry.
    pub missed: u64,
    /// Those of them that the target itself says it has left out.
    pub merged: u64,
    /// Whether it is wrong: a value that does not go on from the last one, or not one value.
    pub wrong: bool,
    /// When the value was made, in nanoseconds since the Unix epoch, where the update says it.
    pub made_unix_ns: Option<u64>,
}

/// A wrong answer or a refusal with its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The operation that asked, by its name in suites.
    pub operation: Cow<'static, str>,
    /// What it was about, as it is written in the protocol; empty when the answer is to nothing.
    pub key: Vec<u8>,
    /// What a right answer looks like.
    pub expected: Vec<u8>,
    /// What came.
    pub received: Vec<u8>,
    /// In what way it is wrong, or how it refuses.
    pub note: String,
}

/// What a dialect has understood in a call, for the engine to act on.
#[derive(Debug, Default)]
pub struct Events {
    /// The connection may be used from now on.
    pub ready: bool,
    /// Answered requests, in the order of their answers.
    pub done: Vec<Done>,
    /// What streams have brought, in its order.
    pub updates: Vec<Update>,
    /// Elements of the values in `done` and `updates`, where values have elements.
    pub elements: u64,
    /// The bytes of these elements. They are held against what the sockets have carried.
    pub payload_bytes: u64,
    /// Of the answers in `done`, those of which it isn't known what is right.
    pub unchecked: u64,
    /// The first wrong answers' and refusals' bytes; [`Done::wrong`] and [`Done::refused`] count
    /// all of them.
    pub findings: Vec<Finding>,
    /// The server closes after this answer: the connection has to be made again.
    pub close: bool,
}

/// At most this many wrong answers keep their bytes between two calls of [`Events::clear`].
const MAX_FINDINGS: usize = 16;

/// A finding keeps at most this many bytes of each side.
const MAX_FINDING_BYTES: usize = 4096;

impl Events {
    /// Keeps a wrong answer's bytes, cut to 4 KiB a side, unless there are enough already. `make`
    /// is only called when they are kept.
    pub fn found(&mut self, make: impl FnOnce() -> Finding) {
        if self.findings.len() < MAX_FINDINGS {
            let mut finding = make();
            finding.expected.truncate(MAX_FINDING_BYTES);
            finding.received.truncate(MAX_FINDING_BYTES);
            self.findings.push(finding);
        }
    }

    /// Forgets everything and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.ready = false;
        self.close = false;
        self.done.clear();
        self.updates.clear();
        self.elements = 0;
        self.payload_bytes = 0;
        self.unchecked = 0;
        self.findings.clear();
    }
}

/// Writes a workload's operations in one protocol, for one connection, and turns the answers into
/// [`Events`]. The engine decides when; it owns socket, buffers and clock.
pub trait Dialect: Send {
    /// The connection is made. Sets [`Events::ready`] at once unless the protocol greets first.
    ///
    /// # Errors
    /// A [`ProtocolError`] closes the connection.
    fn opened(
        &mut self,
        now: Ns,
        events: &mut Events,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        let _ = (now, out);
        events.ready = true;
        Ok(())
    }

    /// Writes one operation. One of the kind [`Stream`](crate::Kind::Stream) is answered by
    /// [`Events::updates`], until [`Dialect::cancel`] ends it; a [`Done`] says that it has ended
    /// by itself, or was refused.
    fn request(&mut self, now: Ns, tag: Tag, op: Op, out: &mut Output);

    /// Writes one part of the [preparation](crate::Preparation). Never called where there is none.
    fn prepare(&mut self, now: Ns, tag: Tag, part: u64, out: &mut Output) {
        let _ = (now, tag, part, out);
    }

    /// Bytes have come: consumes every whole answer, checks it, and says which requests are done.
    ///
    /// # Errors
    /// A [`ProtocolError`] when the stream can't be understood any more; the connection is closed
    /// and its outstanding requests are missing.
    fn receive(
        &mut self,
        now: Ns,
        input: &mut Input,
        events: &mut Events,
        out: &mut Output,
    ) -> Result<(), ProtocolError>;

    /// The server has closed the connection: says what that answers, and whether it may close
    /// now. The connection is then made again, and what is still outstanding on it is missing.
    ///
    /// # Errors
    /// A [`ProtocolError`] where it may not, which is always unless a protocol says otherwise: the
    /// connection has broken, which is counted, and all that was outstanding is missing.
    fn closed(&mut self, now: Ns, events: &mut Events) -> Result<(), ProtocolError> {
        let _ = (now, events);
        Err(ProtocolError::new("the target closed the connection"))
    }

    /// Whether the unanswered request `tag` may be said again on another connection, because its
    /// server closed this one in good order: one that does no harm when it is carried out twice.
    fn may_repeat(&self, tag: Tag) -> bool {
        let _ = tag;
        false
    }

    /// The connection is made again: forgets what was half read, and says every request again that
    /// is still under way. Called only where [`Dialect::may_repeat`] has said yes to all of them.
    fn repeat(&mut self, out: &mut Output) {
        let _ = out;
    }

    /// When [`Dialect::timer`] should be called, if at all.
    fn deadline(&self) -> Option<Ns> {
        None
    }

    /// The time that [`Dialect::deadline`] named has come.
    fn timer(&mut self, now: Ns, out: &mut Output) {
        let _ = (now, out);
    }

    /// The engine wants no more of the stream that the request `tag` began: says so to the server,
    /// and reports no update of it from now on. A [`Done`] follows once nothing more of it comes,
    /// so that its last bytes are not in the way of what is asked next.
    fn cancel(&mut self, tag: Tag, out: &mut Output) {
        let _ = (tag, out);
    }

    /// The engine has given up on `tag` and may use the name again: a late answer must be
    /// swallowed, not taken for the next request's.
    fn expire(&mut self, tag: Tag);
}
