//! The dialect `grpc`: the workload's calls over one connection of HTTP/2, each answer checked.
//! Data plane: nothing is allocated per call after warm-up, except for findings.

use std::collections::VecDeque;
use std::sync::Arc;

use load::{Dialect, Done, Events, Finding, Op, Tag};
use wire::{Input, Ns, Output, ProtocolError};

use super::answers::{Answers, Said};
use super::call::{Call, number_message};
use super::made::{Made, Piece};
use super::operations::{ADD, BIDI, CLIENT_STREAM, OPERATIONS, PATHS};
use super::totals::Totals;
use crate::protocol::http2::frame::{code, code_name};
use crate::protocol::http2::{Client, Streams};

/// A piece of at least this many bytes is sent where it lies; a smaller one is copied.
const SHARED_AT_LEAST_BYTES: usize = 4096;

/// The tag of the first call of a connection, before the engine has any.
const OWN: Tag = 0;

/// What all connections to one target share.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) made: Arc<Made>,
    pub(super) totals: Arc<Totals>,
    /// Whether totals are asked for.
    pub(super) adds: bool,
}

/// The client side of one connection.
#[derive(Debug)]
pub struct Grpc {
    authority: String,
    http2: Client,
    calls: Calls,
    /// Calls that are not begun: the server takes no more streams at once.
    waiting: VecDeque<Tag>,
    /// Calls that have more to say than the windows have room.
    blocked: VecDeque<Tag>,
}

/// The calls of one connection, by tag.
#[derive(Debug)]
struct Calls {
    target: Target,
    calls: Vec<Call>,
    answers: Answers,
    /// Conversations in which something was answered.
    due: Vec<Tag>,
    /// Calls that the server has not begun, to be asked again.
    refused: Vec<Tag>,
    /// The first call is over, with this result.
    opened: Option<Result<(), ProtocolError>>,
}

/// The calls while answers are read.
struct Hearing<'a> {
    calls: &'a mut Calls,
    events: &'a mut Events,
}

impl Grpc {
    pub(super) fn new(authority: String, target: Target) -> Self {
        let http2 = Client::new(&authority, &PATHS);
        let calls = Calls {
            target,
            calls: Vec::new(),
            answers: Answers::default(),
            due: Vec::new(),
            refused: Vec::new(),
            opened: None,
        };
        Self { authority, http2, calls, waiting: VecDeque::new(), blocked: VecDeque::new() }
    }

    /// Begins a call, or has it wait for its turn.
    #[inline]
    fn ask(&mut self, tag: Tag, call: Call, out: &mut Output) {
        let index = tag as usize;
        if index >= self.calls.calls.len() {
            self.calls.calls.resize(index + 1, Call::default());
        }
        self.calls.calls[index] = call;
        if self.waiting.is_empty() && self.http2.may_begin() {
            self.begin(tag, out);
        } else {
            self.waiting.push_back(tag);
        }
    }

    #[inline]
    fn begin(&mut self, tag: Tag, out: &mut Output) {
        let call = &mut self.calls.calls[tag as usize];
        call.is_begun = true;
        if call.operation == ADD && !call.is_own && call.least.is_none() {
            call.least = Some(self.calls.target.totals.begin(call.number));
        }
        self.http2.begin(tag, call.operation, out);
        self.say(tag, out);
    }

    /// Says of a call what it has to say and there is room for.
    #[inline]
    fn say(&mut self, tag: Tag, out: &mut Output) {
        let (Calls { target: Target { made, .. }, calls, .. }, http2) =
            (&mut self.calls, &mut self.http2);
        let Some(call) = calls.get_mut(tag as usize).filter(|call| call.is_begun) else { return };
        let (may_say, total) = (call.may_say(made), call.total(made));
        while call.said < may_say {
            let len = http2.room(tag).min(may_say - call.said);
            if len == 0 {
                if !std::mem::replace(&mut call.is_queued, true) {
                    self.blocked.push_back(tag);
                }
                return;
            }
            let end = call.said + len;
            http2.data(tag, len, end == total, out);
            while call.said < end {
                call.said += put(call.piece(made), end - call.said, out);
            }
        }
    }

    /// Says what was held back and what is due, as far as there is room now.
    #[inline]
    fn go_on(&mut self, out: &mut Output) {
        while let Some(tag) = self.calls.due.pop() {
            self.say(tag, out);
        }
        while let Some(tag) = self.calls.refused.pop() {
            self.waiting.push_front(tag);
        }
        if !self.http2.take_has_room() {
            return;
        }
        for _ in 0..self.blocked.len() {
            let Some(tag) = self.blocked.pop_front() else { break };
            if let Some(call) = self.calls.calls.get_mut(tag as usize) {
                call.is_queued = false;
            }
            self.say(tag, out);
        }
        while self.http2.may_begin() {
            let Some(tag) = self.waiting.pop_front() else { break };
            self.begin(tag, out);
        }
    }

    /// The server's settings have come: asks for the total, where that has to be known.
    fn greet(&mut self, events: &mut Events, out: &mut Output) {
        let Target { totals, adds, .. } = &self.calls.target;
        if !adds || totals.has_base() {
            events.ready = true;
            return;
        }
        self.ask(OWN, Call::own(), out);
    }
}

/// Appends at most `most` bytes of a piece. Returns how many.
#[inline]
fn put(piece: Piece<'_>, most: usize, out: &mut Output) -> usize {
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

impl Hearing<'_> {
    /// A call is over as it should be: checks what an answer has as a whole.
    #[inline]
    fn over(&mut self, tag: Tag) {
        let Calls { target: Target { made, totals, .. }, calls, opened, .. } = &mut *self.calls;
        let call = &mut calls[tag as usize];
        call.is_begun = false;
        if call.is_own {
            *opened = Some(match call.answered_number() {
                Some(total) => {
                    totals.set_base(total);
                    Ok(())
                }
                None => Err(unopened("its answer is no Number")),
            });
            return;
        }
        let mut wrong = |call: &Call, expected: &[u8], note: &str| {
            self.events.found(|| finding(call, expected, call.answer(), note));
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
        if call.operation == ADD && number.is_none() {
            totals.give_up();
        }
        if !is_wrong && made.asked(call.operation).is_some() {
            self.events.elements += made.messages as u64;
            self.events.payload_bytes += (made.messages * made.bytes) as u64;
        }
        self.events.done.push(Done { wrong: u32::from(is_wrong), ..Done::right(tag) });
    }

    /// A call is over and has failed.
    #[cold]
    fn failed(&mut self, tag: Tag, note: &str, is_refusal: bool) {
        let Calls { target: Target { totals, .. }, calls, opened, .. } = &mut *self.calls;
        let call = &mut calls[tag as usize];
        call.is_begun = false;
        if call.is_own {
            *opened = Some(Err(unopened(note)));
            return;
        }
        if call.operation == ADD {
            totals.give_up();
        }
        self.events.found(|| finding(call, &[], note.as_bytes(), note));
        let (wrong, refused) = (u32::from(!is_refusal), u32::from(is_refusal));
        self.events.done.push(Done { wrong, refused, ..Done::right(tag) });
    }
}

#[cold]
fn unopened(why: &str) -> ProtocolError {
    let method = PATHS[ADD];
    ProtocolError::new(format!("{method}, asked for the total before the load: {why}"))
}

impl Streams for Hearing<'_> {
    #[inline]
    fn headers(&mut self, tag: u32, block: &[u8], ends: bool) {
        let call = &mut self.calls.calls[tag as usize];
        match self.calls.answers.read(block, !call.is_answered, ends) {
            Said::Begun => call.is_answered = true,
            Said::Interim => {}
            Said::Over => self.over(tag),
            Said::Refused(why) => self.failed(tag, &why, true),
            Said::Wrong(why) if ends => self.failed(tag, &why, false),
            Said::Wrong(why) => {
                (call.is_answered, call.is_wrong) = (true, true);
                let call = *call;
                self.events.found(|| finding(&call, &[], why.as_bytes(), &why));
            }
        }
    }

    #[inline]
    fn data(&mut self, tag: u32, bytes: &[u8], ends: bool) {
        let Calls { target: Target { made, .. }, calls, due, .. } = &mut *self.calls;
        let call = &mut calls[tag as usize];
        let what = (call.operation, call.what);
        if let Err(difference) = call.hear(bytes, made) {
            let (call, made) = (Call::new(what.0, what.1), difference);
            self.events.found(|| finding(&call, made.expected, made.received, made.note));
        } else if call.operation == BIDI {
            due.push(tag);
        }
        if ends {
            self.failed(tag, "the answer ends without a status", false);
        }
    }

    fn reset(&mut self, tag: u32, code: u32) {
        if code == code::REFUSED_STREAM {
            self.calls.calls[tag as usize].again();
            self.calls.refused.push(tag);
            return;
        }
        let note = format!("the stream was reset: {}", code_name(code));
        self.failed(tag, &note, true);
    }
}

impl Dialect for Grpc {
    fn opened(&mut self, _: Ns, _: &mut Events, out: &mut Output) -> Result<(), ProtocolError> {
        self.http2.open(out);
        Ok(())
    }

    #[inline]
    fn request(&mut self, _: Ns, tag: Tag, op: Op, out: &mut Output) {
        self.ask(tag, Call::new(op.operation, op.what), out);
    }

    #[inline]
    fn receive(
        &mut self,
        _: Ns,
        input: &mut Input,
        events: &mut Events,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        let was_ready = self.http2.is_ready();
        let mut hearing = Hearing { calls: &mut self.calls, events };
        self.http2.receive(input, &mut hearing, out)?;
        if !was_ready && self.http2.is_ready() {
            self.greet(events, out);
        }
        self.go_on(out);
        if let Some(opened) = self.calls.opened.take() {
            opened?;
            events.ready = true;
        }
        events.close = self.http2.is_over();
        Ok(())
    }

    fn closed(&mut self, _: Ns, _: &mut Events) -> Result<(), ProtocolError> {
        if self.http2.is_over() {
            return Ok(());
        }
        Err(ProtocolError::new("the target closed the connection"))
    }

    fn may_repeat(&self, tag: Tag) -> bool {
        self.waiting.contains(&tag)
    }

    fn repeat(&mut self, _: &mut Output) {
        self.http2 = Client::new(&self.authority, &PATHS);
        self.blocked.clear();
    }

    fn expire(&mut self, tag: Tag) {
        let Some(call) = self.calls.calls.get_mut(tag as usize) else { return };
        if call.operation == ADD && call.least.is_some() {
            self.calls.target.totals.give_up();
        }
        *call = Call::default();
        self.waiting.retain(|waiting| *waiting != tag);
        self.http2.leave(tag);
    }
}

#[cfg(test)]
mod tests;
