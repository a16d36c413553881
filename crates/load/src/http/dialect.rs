//! The client side of one HTTP/1.1 connection under load: every answer is checked. Data plane:
//! nothing is allocated per request after warm-up, except for findings.

use std::collections::VecDeque;
use std::sync::Arc;

use wire::http::{Body, Ending, Part, Responses};
use wire::{Input, Ns, Output, ProtocolError};

use super::MOST_BODY_BYTES;
use super::answer::Answer;
use super::request::Request;
use crate::{Dialect, Done, Events, Op, Oracle, Tag};

/// A request that is not answered yet.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// `None` once the engine has given up on it: its answer is read and not reported.
    tag: Option<Tag>,
    operation: usize,
    key: u64,
}

/// The client side of one connection.
#[derive(Debug)]
pub struct Http {
    oracle: Arc<Oracle>,
    /// Oldest first: answers come in the order of their requests.
    asked: VecDeque<Asked>,
    responses: Responses,
    answer: Answer,
}

impl Http {
    /// A connection that says the requests of `oracle` and holds their answers against them.
    pub fn new(oracle: &Arc<Oracle>) -> Self {
        Self {
            oracle: Arc::clone(oracle),
            asked: VecDeque::new(),
            responses: Responses::new(),
            answer: Answer::default(),
        }
    }

    /// Reports the oldest request, whose answer is whole or given up on.
    #[inline]
    fn finish(&mut self, is_right: bool, events: &mut Events) {
        if let Some(Asked { tag: Some(tag), operation, key }) = self.asked.pop_front() {
            if !is_right && let Some(request) = self.oracle.requests.get(operation) {
                events.found(|| self.answer.finding(request, &self.oracle.keys, key));
            }
            let (misses, wrong) = (u32::from(self.answer.is_missing()), u32::from(!is_right));
            events.done.push(Done { tag, keys: 1, misses, wrong });
        }
        self.answer.clear();
    }

    /// The oldest request's answer can't be read to its end: it is wrong, and nothing that follows
    /// it can be understood.
    #[cold]
    fn give_up(
        &mut self,
        fault: ProtocolError,
        rest: &[u8],
        events: &mut Events,
    ) -> Result<(), ProtocolError> {
        self.answer.give_up(&fault.to_string(), rest);
        self.finish(false, events);
        Err(fault)
    }

    /// Reads the next part of the oldest request's answer and says how many bytes it has used;
    /// `None` when more have to come or nothing more will.
    #[inline]
    fn step(&mut self, bytes: &[u8], events: &mut Events) -> Result<(usize, bool), ProtocolError> {
        let oldest = self.asked.front();
        let request: Option<(&Asked, &Request)> =
            oldest.and_then(|asked| Some((asked, self.oracle.requests.get(asked.operation)?)));
        let Some((asked, request)) = request else {
            if bytes.is_empty() {
                return Ok((0, false));
            }
            return Err(ProtocolError::new("bytes came that nobody asked for"));
        };
        let (used, part) = match self.responses.read(bytes, request.is_head) {
            Ok(read) => read,
            Err(fault) => {
                self.give_up(fault, bytes, events)?;
                return Ok((0, false));
            }
        };
        let mut goes_on = true;
        match part {
            Part::Head(head) => {
                self.answer.begin(request, &self.oracle.keys, asked.key, &head);
                if matches!(head.body, Body::Length(bytes) if bytes > MOST_BODY_BYTES) {
                    self.give_up(too_large(), head.bytes, events)?;
                }
            }
            Part::Body(piece) => {
                if !self.answer.body(request, piece) {
                    self.give_up(too_large(), piece, events)?;
                }
            }
            Part::End { closes } => {
                let is_right = self.answer.end(request);
                self.finish(is_right, events);
                events.close |= closes;
                goes_on = !closes;
            }
            Part::More => goes_on = false,
        }
        Ok((used, goes_on))
    }
}

#[cold]
fn too_large() -> ProtocolError {
    ProtocolError::new(format!("the answer's body is larger than {} GiB", MOST_BODY_BYTES >> 30))
}

impl Dialect for Http {
    #[inline]
    fn request(&mut self, _now: Ns, tag: Tag, op: &Op<'_>, out: &mut Output) {
        let Some(request) = self.oracle.requests.get(op.operation) else { return };
        let key = op.keys.first().copied().unwrap_or(0);
        request.bytes.send(&self.oracle.keys, key, out);
        self.asked.push_back(Asked { tag: Some(tag), operation: op.operation, key });
    }

    /// Never called: the service prepares nothing.
    fn prepare(&mut self, _now: Ns, _tag: Tag, _key: u64, _out: &mut Output) {}

    fn receive(
        &mut self,
        _now: Ns,
        input: &mut Input,
        events: &mut Events,
        _out: &mut Output,
    ) -> Result<(), ProtocolError> {
        loop {
            let (used, goes_on) = self.step(input.bytes(), events)?;
            input.consume(used);
            if !goes_on {
                return Ok(());
            }
        }
    }

    fn closed(&mut self, _now: Ns, events: &mut Events) -> Result<(), ProtocolError> {
        let awaited = self.asked.iter().any(|asked| asked.tag.is_some());
        match self.responses.closed() {
            Ending::Whole => {
                let oldest = self.asked.front().map(|asked| asked.operation);
                let request = oldest.and_then(|operation| self.oracle.requests.get(operation));
                let is_right = request.is_some_and(|request| self.answer.end(request));
                self.finish(is_right, events);
                Ok(())
            }
            // A server may close a connection that nothing is asked on.
            Ending::Between | Ending::Cut if !awaited => Ok(()),
            Ending::Between => Err(ProtocolError::new("the target closed the connection")),
            Ending::Cut => Err(ProtocolError::new(
                "the target closed the connection in the middle of an answer",
            )),
        }
    }

    fn may_repeat(&self, tag: Tag) -> bool {
        let asked = self.asked.iter().find(|asked| asked.tag == Some(tag));
        let request = asked.and_then(|asked| self.oracle.requests.get(asked.operation));
        request.is_some_and(|request| request.is_idempotent)
    }

    fn repeat(&mut self, out: &mut Output) {
        self.asked.retain(|asked| asked.tag.is_some());
        self.responses = Responses::new();
        self.answer.clear();
        for asked in &self.asked {
            if let Some(request) = self.oracle.requests.get(asked.operation) {
                request.bytes.send(&self.oracle.keys, asked.key, out);
            }
        }
    }

    fn expire(&mut self, tag: Tag) {
        if let Some(asked) = self.asked.iter_mut().find(|asked| asked.tag == Some(tag)) {
            asked.tag = None;
        }
    }
}
