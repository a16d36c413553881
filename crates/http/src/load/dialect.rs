//! The client side of one HTTP/1.1 connection under load: every answer is checked. Data plane:
//! nothing is allocated per request after warm-up, except for findings.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::protocol::{Body, Ending, Part, Responses};
use wire::{Input, Ns, Output, ProtocolError};

use ::load::tls::Spoken;
use ::load::{Dialect, Events, Op, Tag};

use super::answer::{Answer, too_large};
use super::limits::MAX_BODY_BYTES;
use super::request::Request;
use super::requests::Requests;

/// A request that is not answered yet.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    /// `None` once the engine has given up on it: its answer is read and not reported.
    tag: Option<Tag>,
    operation: usize,
    key: u64,
}

/// The client side of one connection.
#[derive(Debug)]
pub struct Http {
    requests: Arc<Requests>,
    /// Oldest first: answers come in the order of their requests.
    in_flight: VecDeque<InFlight>,
    responses: Responses,
    answer: Answer,
}

impl Http {
    /// A connection that writes `requests` and compares their answers.
    pub fn new(requests: &Arc<Requests>) -> Self {
        Self {
            requests: Arc::clone(requests),
            in_flight: VecDeque::new(),
            responses: Responses::new(),
            answer: Answer::default(),
        }
    }

    /// Reports the oldest request, whose answer is whole or given up on.
    #[inline]
    fn finish(&mut self, is_right: bool, events: &mut Events) {
        if let Some(InFlight { tag: Some(tag), operation, key }) = self.in_flight.pop_front()
            && let Some(request) = self.requests.requests.get(operation)
        {
            self.answer.report(tag, is_right, (request, &self.requests.keys, key), events);
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

    /// Reads the next part of the oldest request's answer. Returns the number of bytes used;
    /// `None` when more have to come or no more will.
    #[inline]
    fn step(&mut self, bytes: &[u8], events: &mut Events) -> Result<(usize, bool), ProtocolError> {
        let oldest = self.in_flight.front();
        let request: Option<(&InFlight, &Request)> = oldest.and_then(|in_flight| {
            Some((in_flight, self.requests.requests.get(in_flight.operation)?))
        });
        let Some((in_flight, request)) = request else {
            if bytes.is_empty() {
                return Ok((0, false));
            }
            return Err(ProtocolError::new("bytes came that no request asked for"));
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
                self.answer.begin(request, &self.requests.keys, in_flight.key, &head);
                if matches!(head.body, Body::Length(bytes) if bytes > MAX_BODY_BYTES) {
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

impl Spoken for Http {
    /// Only requests are written, of which the engine bounds the number.
    fn check_unsent(&self, _bytes: usize) -> Result<(), ProtocolError> {
        Ok(())
    }
}

impl Dialect for Http {
    #[inline]
    fn request(&mut self, _now: Ns, tag: Tag, op: Op, out: &mut Output) {
        let Some(request) = self.requests.requests.get(op.operation) else { return };
        let key = op.what;
        request.bytes.send(&self.requests.keys, key, out);
        self.in_flight.push_back(InFlight { tag: Some(tag), operation: op.operation, key });
    }

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
        let awaited = self.in_flight.iter().any(|in_flight| in_flight.tag.is_some());
        match self.responses.closed() {
            Ending::Whole => {
                let oldest = self.in_flight.front().map(|in_flight| in_flight.operation);
                let request = oldest.and_then(|operation| self.requests.requests.get(operation));
                let is_right = request.is_some_and(|request| self.answer.end(request));
                self.finish(is_right, events);
                Ok(())
            }
            // A server may close a connection on which nothing is under way.
            Ending::Between | Ending::Cut if !awaited => Ok(()),
            Ending::Between => Err(ProtocolError::new("the target closed the connection")),
            Ending::Cut => Err(ProtocolError::new(
                "the target closed the connection in the middle of an answer",
            )),
        }
    }

    fn may_repeat(&self, tag: Tag) -> bool {
        let in_flight = self.in_flight.iter().find(|in_flight| in_flight.tag == Some(tag));
        let request =
            in_flight.and_then(|in_flight| self.requests.requests.get(in_flight.operation));
        request.is_some_and(|request| request.is_idempotent)
    }

    fn repeat(&mut self, out: &mut Output) {
        self.in_flight.retain(|in_flight| in_flight.tag.is_some());
        self.responses = Responses::new();
        self.answer.clear();
        for in_flight in &self.in_flight {
            if let Some(request) = self.requests.requests.get(in_flight.operation) {
                request.bytes.send(&self.requests.keys, in_flight.key, out);
            }
        }
    }

    fn expire(&mut self, tag: Tag) {
        if let Some(in_flight) =
            self.in_flight.iter_mut().find(|in_flight| in_flight.tag == Some(tag))
        {
            in_flight.tag = None;
        }
    }
}
