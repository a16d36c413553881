//! The dialect `grpc`: the workload's calls over one connection of HTTP/2, each answer checked.
//! Data plane: nothing is allocated per call after warm-up, except for findings.

use std::collections::VecDeque;

use load::tls::Spoken;
use load::{Dialect, Events, Op, Tag};
use wire::{Input, Ns, Output, ProtocolError};

use super::answers::{Answers, Said};
use super::any::{Learning, REFLECTION};
use super::call::Call;
use super::calls::{Calls, MAX_ANSWER_BYTES, OWN, Target, put};
use super::operations::{ADD, BIDI, PATHS};
use super::options::GrpcOptions;
use crate::protocol::http2::frame::{code, code_name};
use crate::protocol::http2::{Asks, Client, Path, Streams};

/// How long the server may take for what is asked before the load, as it is sent: the load's own
/// deadline may be shorter than what only opens a connection takes.
const OPENING_TIMEOUT: &str = "10S";

/// The client side of one connection.
#[derive(Debug)]
pub struct Grpc {
    asks: Asks,
    /// As the load's calls send it.
    timeout: Option<String>,
    http2: Client,
    calls: Calls,
    after: After,
    answers: Answers,
    /// Calls that are not begun: the server takes no more streams at once.
    waiting: VecDeque<Tag>,
    /// Calls that have more to say than the windows have room.
    blocked: VecDeque<Tag>,
    /// What is asked of the server's reflection, before anything else.
    learning: Option<Question>,
}

/// A question to the server's reflection.
struct Question {
    learning: Box<dyn Learning>,
    answer: Vec<u8>,
    /// What its last call came to: how it failed, and with which status.
    ended: Option<Result<(), (u32, String)>>,
}

/// What there is to do for calls once the answers are read.
#[derive(Debug, Default)]
struct After {
    /// Conversations in which something was answered.
    due: Vec<Tag>,
    /// Calls that the server has not begun, to be asked again.
    refused: Vec<Tag>,
}

/// The calls while answers are read.
struct Hearing<'a> {
    calls: &'a mut Calls,
    after: &'a mut After,
    answers: &'a mut Answers,
    events: &'a mut Events,
    learning: Option<&'a mut Question>,
}

impl Grpc {
    pub(super) fn new(options: &GrpcOptions, target: Target) -> Self {
        let asks = Asks {
            authority: options.authority.clone(),
            is_encrypted: options.is_encrypted(),
            fields: options.fields(),
        };
        let timeout = options.timeout();
        Self {
            http2: Client::new(&asks, &paths(&target, timeout.as_deref())),
            asks,
            timeout,
            calls: Calls::new(target),
            after: After::default(),
            answers: Answers::default(),
            waiting: VecDeque::new(),
            blocked: VecDeque::new(),
            learning: None,
        }
    }

    /// Begins a call, or has it wait for its turn.
    #[inline]
    fn ask(&mut self, tag: Tag, call: Call, out: &mut Output) {
        self.calls.put(tag, call);
        if self.waiting.is_empty() && self.http2.may_begin() {
            self.begin(tag, out);
        } else {
            self.waiting.push_back(tag);
        }
    }

    #[inline]
    fn begin(&mut self, tag: Tag, out: &mut Output) {
        let Some(&mut Call { is_own, operation, .. }) = self.calls.begin(tag) else { return };
        // Its first call is behind those of the operations.
        let path = if is_own { self.calls.target.made.paths().len() } else { operation };
        self.http2.begin(tag, path, out);
        self.say(tag, out);
    }

    /// Says of a call what it has to say and there is room for.
    #[inline]
    fn say(&mut self, tag: Tag, out: &mut Output) {
        let http2 = &mut self.http2;
        let Some((call, made)) = self.calls.with_made(tag) else { return };
        if !call.is_begun {
            return;
        }
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
        while let Some(tag) = self.after.due.pop() {
            self.say(tag, out);
        }
        while let Some(tag) = self.after.refused.pop() {
            self.waiting.push_front(tag);
        }
        if !self.http2.take_has_room() {
            return;
        }
        for _ in 0..self.blocked.len() {
            let Some(tag) = self.blocked.pop_front() else { break };
            if let Some(call) = self.calls.get(tag) {
                call.is_queued = false;
            }
            self.say(tag, out);
        }
        while self.http2.may_begin() {
            let Some(tag) = self.waiting.pop_front() else { break };
            self.begin(tag, out);
        }
    }

    /// The server's settings have come: asks for what has to be known.
    fn greet(&mut self, events: &mut Events, out: &mut Output) -> Result<(), ProtocolError> {
        if let Some(learn) = self.calls.target.learns() {
            let learning = learn.begin();
            self.learning = Some(Question { learning, answer: Vec::new(), ended: None });
            return self.question(out);
        }
        if self.calls.target.lacks_base() {
            self.ask(OWN, Call::own(), out);
        } else {
            events.ready = true;
        }
        Ok(())
    }
}

impl Grpc {
    /// Asks the server's reflection.
    fn question(&mut self, out: &mut Output) -> Result<(), ProtocolError> {
        let Some(question) = &self.learning else { return Ok(()) };
        let (name, message) = question.learning.question();
        let paths = paths(&self.calls.target, self.timeout.as_deref());
        let number = paths.iter().position(|path| path.name == name).unwrap_or(0);
        if !self.http2.may_begin() {
            return Err(self.unlearnt("the server takes no call"));
        }
        self.calls.put(OWN, Call::own());
        self.http2.begin(OWN, number, out);
        // A name: most servers have room for it.
        if self.http2.room(OWN) < message.len() {
            return Err(self.unlearnt("the server has no room for the question"));
        }
        self.http2.data(OWN, message.len(), true, out);
        out.put(&message);
        Ok(())
    }

    /// Reflection has not shown how the method is called.
    #[cold]
    fn unlearnt(&self, why: &str) -> ProtocolError {
        let method = self.calls.target.made.paths().pop().unwrap_or_default();
        ProtocolError::new(format!(
            "{method}, asked of the server's reflection: {why}; where it has none, say \
             proto = \"FILE\""
        ))
    }

    /// Its answer is there, or there will be none.
    #[cold]
    fn learn(&mut self, events: &mut Events, out: &mut Output) -> Result<(), ProtocolError> {
        let Some(question) = &mut self.learning else { return Ok(()) };
        let Some(ended) = question.ended.take() else { return Ok(()) };
        let known = match ended {
            Ok(()) => question.learning.answered(&std::mem::take(&mut question.answer)),
            Err((status, _)) if question.learning.refused(status) => Ok(None),
            Err((_, why)) => Err(why),
        };
        match known.map_err(|why| self.unlearnt(&why))? {
            Some(any) => {
                self.calls.target.made.learn(any.into());
                self.learning = None;
                self.greet(events, out)
            }
            None => self.question(out),
        }
    }
}

/// The paths that a connection asks: those of the operations, by their numbers; the one of its
/// first call, and of reflection.
fn paths<'a>(target: &'a Target, timeout: Option<&'a str>) -> Vec<Path<'a>> {
    let own = target.made.paths().into_iter().map(|name| Path { name, timeout });
    let reflection = REFLECTION.into_iter().filter(|_| target.made.is_learnt());
    let opening = std::iter::once(PATHS[ADD]).chain(reflection);
    own.chain(opening.map(|name| Path { name, timeout: Some(OPENING_TIMEOUT) })).collect()
}

impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Question").field("ended", &self.ended).finish_non_exhaustive()
    }
}

impl Hearing<'_> {
    /// An answer of reflection goes on.
    #[cold]
    fn heard(&mut self, said: Said) {
        let Some(question) = &mut self.learning else { return };
        question.ended = match said {
            Said::Begun | Said::Interim => return,
            Said::Over => Some(Ok(())),
            Said::Refused(code, why) => Some(Err((code, why))),
            Said::Wrong(why) => Some(Err((u32::MAX, why))),
        };
    }
}

impl Streams for Hearing<'_> {
    #[inline]
    fn headers(&mut self, tag: u32, block: &[u8], ends: bool) {
        let Some(call) = self.calls.get(tag) else { return };
        let said = self.answers.read(block, !call.is_answered, ends);
        if self.learning.is_some() {
            call.is_answered = true;
            return self.heard(said);
        }
        match said {
            Said::Begun => call.is_answered = true,
            Said::Interim => {}
            Said::Over => self.calls.over(tag, self.events),
            Said::Refused(_, why) => self.calls.failed(tag, &why, true, self.events),
            Said::Wrong(why) if ends => self.calls.failed(tag, &why, false, self.events),
            Said::Wrong(why) => {
                call.is_answered = true;
                self.calls.goes_wrong(tag, &why, self.events);
            }
        }
    }

    #[inline]
    fn data(&mut self, tag: u32, bytes: &[u8], ends: bool) {
        if let Some(question) = &mut self.learning {
            if question.answer.len() + bytes.len() > MAX_ANSWER_BYTES {
                let why = "an answer of more than 64 MiB".to_owned();
                question.ended = Some(Err((u32::MAX, why)));
            } else {
                question.answer.extend_from_slice(bytes);
            }
            return;
        }
        let is_right = self.calls.hear(tag, bytes, self.events);
        if is_right && self.calls.get(tag).is_some_and(|call| call.operation == BIDI) {
            self.after.due.push(tag);
        }
        if ends {
            self.calls.failed(tag, "the answer ends without a status", false, self.events);
        }
    }

    fn reset(&mut self, tag: u32, code: u32) {
        if code == code::REFUSED_STREAM && self.learning.is_none() {
            if let Some(call) = self.calls.get(tag) {
                call.again();
            }
            self.after.refused.push(tag);
            return;
        }
        let note = format!("the stream was reset: {}", code_name(code));
        if self.learning.is_some() {
            return self.heard(Said::Wrong(note));
        }
        self.calls.failed(tag, &note, true, self.events);
    }
}

impl Spoken for Grpc {
    /// The windows bound what is sent and not answered.
    fn check_unsent(&self, _: usize) -> Result<(), ProtocolError> {
        Ok(())
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
        let Self { calls, after, answers, learning, .. } = self;
        let learning = learning.as_mut();
        let mut hearing = Hearing { calls, after, answers, events, learning };
        self.http2.receive(input, &mut hearing, out)?;
        if !was_ready && self.http2.is_ready() {
            self.greet(events, out)?;
        }
        if self.learning.is_some() {
            self.learn(events, out)?;
            if self.learning.is_some() {
                return Ok(());
            }
        }
        self.go_on(out);
        if let Some(opened) = self.calls.take_opened() {
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
        let paths = paths(&self.calls.target, self.timeout.as_deref());
        self.http2 = Client::new(&self.asks, &paths);
        self.blocked.clear();
    }

    fn expire(&mut self, tag: Tag) {
        self.calls.expire(tag);
        self.waiting.retain(|waiting| *waiting != tag);
        self.http2.leave(tag);
    }
}

#[cfg(test)]
mod tests;
