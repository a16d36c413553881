//! The client side of one connection: one request, its answer, and the end. Data plane.
//!
//! Where several requests are under way, the later ones wait: the connection is made again after
//! each answer, which is part of their latency.

use std::collections::VecDeque;
use std::sync::Arc;

use load::{Dialect, Done, Events, Finding, Op, Tag};
use wire::{Input, Ns, Output, ProtocolError};

use super::made::Made;
use super::operations::OPERATIONS;
use super::target::{Sent, Target};
use crate::protocol::frame::{HEAD_BYTES, length};
use crate::protocol::{Answer, read_answer};

/// The longest answer.
const MAX_ANSWER_BYTES: u64 = 1 << 30;

/// A request.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// `None` once the engine has given up on it.
    tag: Option<Tag>,
    /// `None` for the preparation.
    op: Option<Op>,
    /// What is known of it; `None` while it waits for its connection.
    sent: Option<Sent>,
}

/// The client side of one connection.
#[derive(Debug)]
pub struct EcFlow {
    made: Arc<Made>,
    target: Arc<Target>,
    /// The first is under way; the others wait.
    asked: VecDeque<Asked>,
}

impl EcFlow {
    pub(super) fn new(made: Arc<Made>, target: Arc<Target>) -> Self {
        Self { made, target, asked: VecDeque::new() }
    }

    /// Sends the first request, unless it is under way.
    #[inline]
    fn send(&mut self, out: &mut Output) {
        let Some(first) = self.asked.front_mut().filter(|first| first.sent.is_none()) else {
            return;
        };
        let Some(op) = first.op else {
            first.sent = Some(Sent::Nothing);
            return out.share(self.made.prepare.clone());
        };
        let (sent, number) = self.target.begin(op.operation, op.what);
        first.sent = Some(sent);
        self.made.send(op.operation, (&self.target.keys, op.what), number, out);
    }

    /// Reports the answer to the first request.
    fn settle(&self, asked: Asked, document: &[u8], events: &mut Events) {
        let (operation, key) = asked.op.map_or((None, 0), |op| (Some(op.operation), op.what));
        let answer = read_answer(document);
        let judged = match (&answer, asked.sent) {
            (Ok(Answer::Error(why)), _) => Judged::Refused(why.clone().into_owned()),
            (Ok(Answer::Standard(0)), Some(Sent::Nothing)) => Judged::Right,
            (Ok(Answer::Standard(0)), Some(Sent::Write(write))) => {
                if let Some(operation) = operation {
                    self.target.end(operation, key, write);
                }
                Judged::Right
            }
            (Ok(Answer::Text(text) | Answer::Definition(text)), Some(Sent::Read(floor))) => {
                let checked = self.target.check(operation.unwrap_or(0), key, floor, text);
                checked.map_or_else(|why| Judged::Wrong(why.to_string()), |()| Judged::Right)
            }
            (Ok(_), _) => Judged::Wrong("an answer to another kind of request".to_owned()),
            (Err(why), _) => Judged::Wrong(why.to_string()),
        };
        let Some(tag) = asked.tag else { return };
        let right = Done::right(tag);
        let (done, note) = match judged {
            Judged::Right => return events.done.push(right),
            Judged::Refused(why) => (Done { refused: 1, ..right }, why),
            Judged::Wrong(why) => (Done::wrong(tag), why),
        };
        events.done.push(done);
        events.found(|| {
            let mut name = Vec::new();
            if operation.is_some() {
                self.target.keys.put(key, &mut name);
            }
            let operation = operation.and_then(|one| OPERATIONS.get(one));
            Finding {
                operation: operation.map_or("prepare".into(), |one| one.name.clone()),
                key: name,
                expected: b"StcCmd 0, or the value that was written last".to_vec(),
                received: document[..document.len().min(4096)].to_vec(),
                note,
            }
        });
    }
}

/// What an answer is worth.
enum Judged {
    Right,
    Refused(String),
    Wrong(String),
}

impl Dialect for EcFlow {
    #[inline]
    fn request(&mut self, _now: Ns, tag: Tag, op: Op, out: &mut Output) {
        self.asked.push_back(Asked { tag: Some(tag), op: Some(op), sent: None });
        self.send(out);
    }

    fn prepare(&mut self, _now: Ns, tag: Tag, _part: u64, out: &mut Output) {
        self.asked.push_back(Asked { tag: Some(tag), op: None, sent: None });
        self.send(out);
    }

    fn receive(
        &mut self,
        _now: Ns,
        input: &mut Input,
        events: &mut Events,
        _out: &mut Output,
    ) -> Result<(), ProtocolError> {
        let bytes = input.bytes();
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else { return Ok(()) };
        let length = length(*head, MAX_ANSWER_BYTES)
            .map_err(|why| ProtocolError::new(format!("an answer's head: {why}")))?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some(document) = rest.get(..length) else { return Ok(()) };
        let is_under_way = self.asked.front().is_some_and(|first| first.sent.is_some());
        let Some(asked) = self.asked.pop_front().filter(|_| is_under_way) else {
            return Err(ProtocolError::new("an answer came that no request asked for"));
        };
        self.settle(asked, document, events);
        input.consume(HEAD_BYTES + length);
        if !input.is_empty() {
            return Err(ProtocolError::new("bytes came behind the answer"));
        }
        events.close = true;
        Ok(())
    }

    /// Only a request that wasn't sent.
    fn may_repeat(&self, tag: Tag) -> bool {
        self.asked.iter().any(|one| one.tag == Some(tag) && one.sent.is_none())
    }

    fn repeat(&mut self, out: &mut Output) {
        self.asked.retain(|one| one.tag.is_some() && one.sent.is_none());
        self.send(out);
    }

    fn expire(&mut self, tag: Tag) {
        if let Some(one) = self.asked.iter_mut().find(|one| one.tag == Some(tag)) {
            one.tag = None;
        }
    }
}
