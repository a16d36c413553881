//! The dialect `frames`: the workload's calls over one connection of own frames, each answer
//! checked. Data plane: nothing is allocated per call after warm-up, except for findings.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use load::{Dialect, Events, Op, Tag};
use wire::{Input, Ns, Output, ProtocolError};

use super::answers::refusal;
use super::call::Call;
use super::calls::{Calls, OWN, Target, put};
use super::made::PREFIX_BYTES;
use crate::protocol::native::fields;
use crate::protocol::native::frame::{HEADER_BYTES, Header, Kind};
use crate::protocol::native::greeting::{ClientGreeting, Method, ServerGreeting};

/// The client side of one connection.
#[derive(Debug)]
pub struct Frames {
    token: Bytes,
    calls: Calls,
    /// What the server's greeting says; `None` until it has come.
    server: Option<Server>,
    /// Of each tag its call's number; 0 where none is under way.
    numbers: Vec<u64>,
    /// The number of the next call, above its tag.
    next: u64,
    /// How many calls are outstanding, those included whose answers are waited for no longer.
    outstanding: usize,
    /// Calls that are not begun: the server takes no more at once.
    waiting: VecDeque<Tag>,
    /// An answer of which a part has come, and how much of it is to come.
    partial: Option<(Header, usize)>,
}

/// What is known of the server.
#[derive(Debug)]
struct Server {
    /// The number of each operation's method.
    methods: Vec<Option<u32>>,
    max_calls: usize,
}

#[cold]
fn broken(what: impl std::fmt::Display) -> ProtocolError {
    ProtocolError::new(format!("own frames: {what}"))
}

impl Frames {
    pub(super) fn new(token: Bytes, target: Target) -> Self {
        Self {
            token,
            calls: Calls::new(target),
            server: None,
            numbers: Vec::new(),
            next: 1,
            outstanding: 0,
            waiting: VecDeque::new(),
            partial: None,
        }
    }

    /// Begins a call, or has it wait for its turn.
    #[inline]
    fn ask(&mut self, tag: Tag, call: Call, out: &mut Output) {
        self.calls.put(tag, call);
        let most = self.server.as_ref().map_or(0, |server| server.max_calls);
        if self.waiting.is_empty() && self.outstanding < most {
            self.begin(tag, out);
        } else {
            self.waiting.push_back(tag);
        }
    }

    #[inline]
    fn begin(&mut self, tag: Tag, out: &mut Output) {
        let (Some(server), Some(call)) = (&self.server, self.calls.begin(tag)) else { return };
        // What comes before a message over HTTP/2 is in the header here.
        call.said = PREFIX_BYTES;
        // Both were looked at when the greeting came.
        let method = server.methods.get(call.operation).copied().flatten().unwrap_or(u32::MAX);
        let Some((call, made)) = self.calls.with_made(tag) else { return };
        let total = call.total(made);
        let length = (total - PREFIX_BYTES) as u32;
        let index = tag as usize;
        if index >= self.numbers.len() {
            self.numbers.resize(index + 1, 0);
        }
        // The tag is part of the number, so that an answer finds its call.
        let id = self.next << 32 | u64::from(tag);
        self.next += 1;
        self.numbers[index] = id;
        self.outstanding += 1;
        out.put(&Header { length, method, ..Header::of(Kind::Call, id) }.encode());
        while call.said < total {
            call.said += put(call.piece(made), total - call.said, out);
        }
    }

    /// The server's greeting, once all of it has come.
    fn greet(&mut self, input: &mut Input) -> Result<bool, ProtocolError> {
        let mut buffer = BytesMut::from(input.bytes());
        let Some(greeting) = ServerGreeting::decode(&mut buffer).map_err(broken)? else {
            return Ok(false);
        };
        input.consume(input.len() - buffer.len());
        let number = |path: &str| {
            let is_it = |method: &Method| method.is_unary() && method.name == path;
            let row = greeting.methods.iter().position(is_it);
            row.and_then(|row| u32::try_from(row).ok())
        };
        let Target { made, operations, .. } = &self.calls.target;
        let paths = made.paths();
        let methods: Vec<_> = paths.iter().map(|path| number(path)).collect();
        for operation in operations.iter().copied() {
            if methods.get(operation).copied().flatten().is_none() {
                return Err(broken(format!("the server has no unary method {}", paths[operation])));
            }
            let length = Call::new(operation, 0).total(made) - PREFIX_BYTES;
            if length > greeting.max_message as usize {
                return Err(broken(format!(
                    "a message of {length} bytes is over the server's limit, {}: start it with a \
                     larger --max-message",
                    greeting.max_message
                )));
            }
        }
        self.server = Some(Server { methods, max_calls: greeting.max_calls as usize });
        Ok(true)
    }

    /// The tag of a call that is waited for; `None` where its user has left it.
    #[inline]
    fn tag_of(&self, header: &Header) -> Result<Option<Tag>, ProtocolError> {
        let tag = header.id as u32;
        if self.numbers.get(tag as usize) == Some(&header.id) {
            return Ok(Some(tag));
        }
        match (1..self.next).contains(&(header.id >> 32)) && self.outstanding > 0 {
            true => Ok(None),
            false => Err(broken(format!("an answer to call {}, which was not made", header.id))),
        }
    }

    /// A frame, or the first part of an answer, with what has come of it.
    #[inline]
    fn take(
        &mut self,
        header: Header,
        payload: &[u8],
        left: usize,
        events: &mut Events,
    ) -> Result<(), ProtocolError> {
        match header.kind {
            Kind::Answer if header.flags == 0 => {
                let tag = self.tag_of(&header)?;
                if let Some(tag) = tag {
                    let [a, b, c, d] = header.length.to_be_bytes();
                    self.calls.hear(tag, &[0, a, b, c, d], events);
                }
                self.go_on_with(header, payload, left, events)
            }
            Kind::Failure => {
                let tag = self.tag_of(&header)?;
                self.ended(tag);
                if let Some(tag) = tag {
                    let mut payload = Bytes::copy_from_slice(payload);
                    fields::take(&header, &mut payload).map_err(broken)?;
                    let status = fields::status(&header, payload).map_err(broken)?;
                    let words = refusal(header.method, &status.message);
                    self.calls.failed(tag, &words, true, events);
                }
                Ok(())
            }
            Kind::Goodbye => {
                let text = String::from_utf8_lossy(payload);
                Err(broken(format!("the server ends the connection: {text}")))
            }
            kind => Err(broken(format!("a frame of the kind \"{}\"", kind.name()))),
        }
    }

    /// More of an answer.
    #[inline]
    fn go_on_with(
        &mut self,
        header: Header,
        part: &[u8],
        left: usize,
        events: &mut Events,
    ) -> Result<(), ProtocolError> {
        let tag = self.tag_of(&header)?;
        if let Some(tag) = tag {
            self.calls.hear(tag, part, events);
        }
        self.partial = (left > 0).then_some((header, left));
        if left == 0 {
            self.ended(tag);
            if let Some(tag) = tag {
                self.calls.over(tag, events);
            }
        }
        Ok(())
    }

    #[inline]
    fn ended(&mut self, tag: Option<Tag>) {
        self.outstanding = self.outstanding.saturating_sub(1);
        if let Some(number) = tag.and_then(|tag| self.numbers.get_mut(tag as usize)) {
            *number = 0;
        }
    }

    /// Takes every frame that has come, of a long answer a part.
    #[inline]
    fn take_all(&mut self, input: &mut Input, events: &mut Events) -> Result<(), ProtocolError> {
        let bytes = input.bytes();
        let mut used = 0;
        let outcome = loop {
            let rest = &bytes[used..];
            if let Some((header, left)) = self.partial.take() {
                let part = rest.len().min(left);
                used += part;
                if let Err(error) = self.go_on_with(header, &rest[..part], left - part, events) {
                    break Err(error);
                }
                if part < left {
                    break Ok(());
                }
                continue;
            }
            let Some((head, rest)) = rest.split_first_chunk::<HEADER_BYTES>() else {
                break Ok(());
            };
            let header = match Header::decode(head) {
                Ok(header) => header,
                Err(fault) => break Err(broken(fault)),
            };
            let length = header.length as usize;
            let there = rest.len().min(length);
            if there < length && header.kind != Kind::Answer {
                break Ok(());
            }
            used += HEADER_BYTES + there;
            if let Err(error) = self.take(header, &rest[..there], length - there, events) {
                break Err(error);
            }
        };
        input.consume(used);
        outcome
    }
}

impl Dialect for Frames {
    fn opened(&mut self, _: Ns, _: &mut Events, out: &mut Output) -> Result<(), ProtocolError> {
        let mut greeting = BytesMut::new();
        let token = self.token.clone();
        ClientGreeting { max_message: u32::MAX, token }.encode(&mut greeting);
        out.put(&greeting);
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
        if self.server.is_none() {
            if !self.greet(input)? {
                return Ok(());
            }
            if self.calls.target.lacks_base() {
                self.ask(OWN, Call::own(), out);
            } else {
                events.ready = true;
            }
        }
        self.take_all(input, events)?;
        let most = self.server.as_ref().map_or(0, |server| server.max_calls);
        while self.outstanding < most {
            let Some(tag) = self.waiting.pop_front() else { break };
            self.begin(tag, out);
        }
        if let Some(opened) = self.calls.take_opened() {
            opened?;
            events.ready = true;
        }
        Ok(())
    }

    fn expire(&mut self, tag: Tag) {
        self.calls.expire(tag);
        self.waiting.retain(|waiting| *waiting != tag);
        if let Some(number) = self.numbers.get_mut(tag as usize) {
            *number = 0;
        }
    }
}

#[cfg(test)]
mod tests;
