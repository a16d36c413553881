//! The calls of one connection by their tags, whatever carries them: what they have said, what has
//! come, and whether that is right. Data plane: nothing is allocated per call after warm-up, except
//! for findings.

use std::sync::Arc;

use load::{Done, Events, Finding, Tag};
use wire::{Output, ProtocolError};

use super::any::{Checked, Learn};
use super::call::{Call, number_message};
use super::made::{Made, Piece};
use super::operations::{ADD, CALL, CLIENT_STREAM, OPERATIONS, PATHS};
use super::totals::Totals;

/// A piece of at least this many bytes is sent where it lies; a smaller one is copied.
const SHARED_AT_LEAST_BYTES: usize = 4096;

/// The most bytes of an answer to the operation `call`.
pub(super) const MAX_ANSWER_BYTES: usize = 64 << 20;

/// What is kept of the room for an answer.
const KEPT_BYTES: usize = 64 << 10;

/// The tag of the first call of a connection, before the engine has any.
pub(super) const OWN: Tag = 0;

/// What all connections to one target share.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) made: Arc<Made>,
    pub(super) totals: Arc<Totals>,
    /// The operations that are asked for.
    pub(super) operations: Arc<[usize]>,
}

impl Target {
    /// How the operation `call` is learnt, where a connection has to do that first.
    pub(super) fn learns(&self) -> Option<&dyn Learn> {
        self.made.learns().filter(|_| self.operations.contains(&CALL))
    }

    /// Whether a connection has to ask for the total first.
    pub(super) fn lacks_base(&self) -> bool {
        self.operations.contains(&ADD) && !self.totals.has_base()
    }
}

/// The calls of one connection.
#[derive(Debug)]
pub(super) struct Calls {
    pub(super) target: Target,
    calls: Vec<Call>,
    /// Of each tag what has come, where it is compared as a whole.
    bodies: Vec<Vec<u8>>,
    /// The first call is over, with this result.
    opened: Option<Result<(), ProtocolError>>,
}

impl Calls {
    pub(super) fn new(target: Target) -> Self {
        Self { target, calls: Vec::new(), bodies: Vec::new(), opened: None }
    }

    /// A tag is this call from now on.
    #[inline]
    pub(super) fn put(&mut self, tag: Tag, call: Call) {
        let index = tag as usize;
        if index >= self.calls.len() {
            self.calls.resize(index + 1, Call::default());
        }
        self.calls[index] = call;
    }

    /// The call of a tag.
    #[inline]
    pub(super) fn get(&mut self, tag: Tag) -> Option<&mut Call> {
        self.calls.get_mut(tag as usize)
    }

    /// The call of a tag, with what it is made of.
    #[inline]
    pub(super) fn with_made(&mut self, tag: Tag) -> Option<(&mut Call, &Made)> {
        Some((self.calls.get_mut(tag as usize)?, &self.target.made))
    }

    /// The server is asked.
    #[inline]
    pub(super) fn begin(&mut self, tag: Tag) -> Option<&mut Call> {
        let call = self.calls.get_mut(tag as usize)?;
        call.is_begun = true;
        if call.operation == ADD && !call.is_own && call.least.is_none() {
            call.least = Some(self.target.totals.begin(call.number));
        }
        Some(call)
    }

    /// The result of the first call, once it is over.
    #[inline]
    pub(super) fn take_opened(&mut self) -> Option<Result<(), ProtocolError>> {
        self.opened.take()
    }

    /// Bytes of an answer have come; whether they are right.
    #[inline]
    pub(super) fn hear(&mut self, tag: Tag, bytes: &[u8], events: &mut Events) -> bool {
        let Some(call) = self.calls.get_mut(tag as usize) else { return false };
        let (operation, what) = (call.operation, call.what);
        if operation == CALL {
            return self.keep(tag, bytes, events);
        }
        let Err(difference) = call.hear(bytes, &self.target.made) else { return true };
        let call = Call::new(operation, what);
        events.found(|| finding(&call, difference.expected, difference.received, difference.note));
        false
    }

    /// Keeps bytes of an answer that is compared once it is whole.
    fn keep(&mut self, tag: Tag, bytes: &[u8], events: &mut Events) -> bool {
        let index = tag as usize;
        if index >= self.bodies.len() {
            self.bodies.resize(index + 1, Vec::new());
        }
        let body = &mut self.bodies[index];
        if body.len() + bytes.len() > MAX_ANSWER_BYTES {
            if !self.calls[index].is_wrong {
                self.goes_wrong(tag, "an answer of more than 64 MiB", events);
            }
            return false;
        }
        body.extend_from_slice(bytes);
        true
    }

    /// An answer that is compared as a whole is there.
    fn compare(&mut self, tag: Tag, events: &mut Events) {
        let index = tag as usize;
        let (Some(call), Some(any)) = (self.calls.get(index), self.target.made.any()) else {
            return;
        };
        let body = self.bodies.get_mut(index).map(std::mem::take).unwrap_or_default();
        let request = self.target.made.request(call.what).map_or(0, |(number, _)| number);
        let is_wrong = call.is_wrong
            || match any.check.check(request, &body) {
                Checked::Right => false,
                Checked::Unchecked => {
                    events.unchecked += 1;
                    false
                }
                Checked::Wrong(expected, note) => {
                    events.found(|| finding(call, &expected, &body, &note));
                    true
                }
            };
        events.done.push(Done { wrong: u32::from(is_wrong), ..Done::right(tag) });
        if let Some(kept) = self.bodies.get_mut(index).filter(|_| body.capacity() <= KEPT_BYTES) {
            *kept = body;
            kept.clear();
        }
    }

    /// A call is over as it should be: checks what an answer has as a whole.
    #[inline]
    pub(super) fn over(&mut self, tag: Tag, events: &mut Events) {
        let Target { made, totals, .. } = &self.target;
        let Some(call) = self.calls.get_mut(tag as usize) else { return };
        call.is_begun = false;
        if call.operation == CALL {
            return self.compare(tag, events);
        }
        if call.is_own {
            self.opened = Some(match call.answered_number() {
                Some(total) => {
                    totals.set_base(total);
                    Ok(())
                }
                None => Err(unopened("its answer is no Number")),
            });
            return;
        }
        let mut wrong = |call: &Call, expected: &[u8], note: &str| {
            events.found(|| finding(call, expected, call.answer(), note));
            true
        };
        let number = call.answered_number();
        let is_wrong = match (call.operation, number) {
            _ if call.is_wrong => true,
            (ADD, Some(total)) => match totals.end(call.number, call.least.unwrap_or(0), total) {
                Ok(()) => false,
                Err(mismatch) => {
                    let (least, most) = (mismatch.least, mismatch.most);
                    let note = format!("{total}, not {least} to {most}: {}", mismatch.note);
                    wrong(call, &number_message(least), &note)
                }
            },
            (CLIENT_STREAM, Some(size)) => {
                let right = (made.bytes * made.messages) as i64;
                size != right && {
                    wrong(call, &number_message(right), "not the size of all messages")
                }
            }
            (ADD | CLIENT_STREAM, None) => wrong(call, &[], "no message with one number"),
            _ if call.said < call.total(made) => wrong(call, &[], "answered before it was asked"),
            _ if call.is_whole(made) => false,
            _ => wrong(call, &[], "the answer ends early"),
        };
        if call.operation == ADD && (call.is_wrong || number.is_none()) {
            totals.give_up();
        }
        if !is_wrong && made.asked(call.operation).is_some() {
            events.elements += made.messages as u64;
            events.payload_bytes += (made.messages * made.bytes) as u64;
        }
        events.done.push(Done { wrong: u32::from(is_wrong), ..Done::right(tag) });
    }

    /// A call is over and has failed.
    #[cold]
    pub(super) fn failed(&mut self, tag: Tag, note: &str, is_refusal: bool, events: &mut Events) {
        let Some(call) = self.calls.get_mut(tag as usize) else { return };
        call.is_begun = false;
        if call.is_own {
            self.opened = Some(Err(unopened(note)));
            return;
        }
        if call.operation == ADD {
            self.target.totals.give_up();
        }
        self.bodies.get_mut(tag as usize).map(Vec::clear);
        events.found(|| finding(call, &[], note.as_bytes(), note));
        let (wrong, refused) = (u32::from(!is_refusal), u32::from(is_refusal));
        events.done.push(Done { wrong, refused, ..Done::right(tag) });
    }

    /// An answer is wrong before it is over, in this way.
    #[cold]
    pub(super) fn goes_wrong(&mut self, tag: Tag, why: &str, events: &mut Events) {
        let Some(call) = self.calls.get_mut(tag as usize) else { return };
        call.is_wrong = true;
        events.found(|| finding(call, &[], why.as_bytes(), why));
    }

    /// The engine waits for a call no longer.
    pub(super) fn expire(&mut self, tag: Tag) {
        let Some(call) = self.calls.get_mut(tag as usize) else { return };
        if call.operation == ADD && call.least.is_some() {
            self.target.totals.give_up();
        }
        *call = Call::default();
        self.bodies.get_mut(tag as usize).map(Vec::clear);
    }
}

/// Appends at most `most` bytes of a piece. Returns how many.
#[inline]
pub(super) fn put(piece: Piece<'_>, most: usize, out: &mut Output) -> usize {
    match piece {
        Piece::Large(bytes, range) if range.len().min(most) >= SHARED_AT_LEAST_BYTES => {
            let len = range.len().min(most);
            out.share(bytes.slice(range.start..range.start + len));
            len
        }
        Piece::Large(bytes, range) => put(Piece::Small(&bytes[range]), most, out),
        Piece::Small(bytes) => {
            let len = bytes.len().min(most);
            out.put(&bytes[..len]);
            len
        }
    }
}

fn finding(call: &Call, expected: &[u8], received: &[u8], note: &str) -> Finding {
    Finding {
        operation: OPERATIONS[call.operation].name.clone(),
        key: call.what.to_string().into_bytes(),
        expected: expected.to_vec(),
        received: received.to_vec(),
        note: note.to_owned(),
    }
}

#[cold]
fn unopened(why: &str) -> ProtocolError {
    let method = PATHS[ADD];
    ProtocolError::new(format!("{method}, asked for the total before the load: {why}"))
}
