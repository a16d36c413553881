//! The client side of one connection: one request, its answer, and the end. Data plane.
//!
//! Where several requests are under way, the later ones wait: the connection is made again after
//! each answer, which is part of their latency. So it is between the requests of one operation.

use std::collections::VecDeque;
use std::sync::Arc;

use load::{Dialect, Done, Events, Finding, Op, Tag};
use wire::{Input, Ns, Output, ProtocolError};

use super::made::{Made, sync};
use super::operations::{OPERATIONS, PING};
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
    /// Which of the operation's requests is under way, or comes next.
    place: usize,
    /// What is known of the operation, from its first request on.
    known: Option<Sent>,
    /// Whether it waits for its connection.
    waits: bool,
}

impl Asked {
    fn new(tag: Tag, op: Option<Op>) -> Self {
        Self { tag: Some(tag), op, place: 0, known: None, waits: true }
    }
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
        let Some(first) = self.asked.front_mut().filter(|first| first.waits) else { return };
        first.waits = false;
        let Some(op) = first.op else {
            first.known = Some(Sent::Nothing);
            return out.share(self.made.prepare.clone());
        };
        let number = match first.known {
            Some(_) => 0,
            None => {
                let (known, number) = self.target.begin(op.operation, op.what);
                first.known = Some(known);
                number
            }
        };
        match first.known {
            Some(Sent::Follow(_, numbers)) => sync(numbers, out),
            _ => {
                let request = (op.operation, first.place);
                self.made.send(request, (&self.target.keys, op.what), number, out);
            }
        }
    }

    /// What the answer to a request is worth.
    fn judge(&self, asked: &Asked, document: &[u8]) -> Judged {
        let (operation, key) = asked.op.map_or((PING, 0), |op| (op.operation, op.what));
        if let Some(Sent::Follow(floor, numbers)) = asked.known {
            let followed = self.target.follow(key, (floor, numbers), document);
            return match (followed, read_answer(document)) {
                (Ok(()), _) => Judged::Right,
                (Err(_), Ok(Answer::Error(why))) => Judged::Refused(why.into_owned()),
                (Err(why), _) => Judged::Wrong(why),
            };
        }
        let is_last = asked.op.is_none() || asked.place + 1 == self.made.requests(operation);
        let answer = read_answer(document);
        match (&answer, asked.known) {
            (Ok(Answer::Error(why)), _) => Judged::Refused(why.clone().into_owned()),
            (Ok(Answer::Standard(0)), Some(_)) if !is_last => Judged::GoOn,
            (Ok(Answer::Standard(0)), Some(Sent::Nothing)) => Judged::Right,
            (Ok(Answer::Standard(0)), Some(Sent::Write(write))) => {
                self.target.end(operation, key, write);
                Judged::Right
            }
            (Ok(Answer::Text(text)), Some(Sent::Run(run))) => {
                let ended = self.target.end_run(operation, key, run, text);
                ended.map_or_else(Judged::Wrong, |()| Judged::Right)
            }
            (Ok(Answer::Text(text) | Answer::Definition(text)), Some(Sent::Read(floor))) => {
                let checked = self.target.check(operation, key, floor, text);
                checked.map_or_else(|why| Judged::Wrong(why.to_string()), |()| Judged::Right)
            }
            (Ok(_), _) => Judged::Wrong("an answer to another kind of request".to_owned()),
            (Err(why), _) => Judged::Wrong(why.to_string()),
        }
    }

    /// Reports the answer to a request, unless another one of its operation follows.
    fn settle(&mut self, asked: Asked, document: &[u8], events: &mut Events) {
        let judged = self.judge(&asked, document);
        if matches!(judged, Judged::GoOn) && asked.tag.is_some() {
            return self.asked.push_front(Asked { place: asked.place + 1, waits: true, ..asked });
        }
        let (operation, key) = asked.op.map_or((None, 0), |op| (Some(op.operation), op.what));
        let Some(tag) = asked.tag else { return };
        let right = Done::right(tag);
        let (done, note) = match judged {
            Judged::Right | Judged::GoOn => return events.done.push(right),
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
    /// Right, and another request of the operation follows.
    GoOn,
    Refused(String),
    Wrong(String),
}

impl Dialect for EcFlow {
    #[inline]
    fn request(&mut self, _now: Ns, tag: Tag, op: Op, out: &mut Output) {
        self.asked.push_back(Asked::new(tag, Some(op)));
        self.send(out);
    }

    fn prepare(&mut self, _now: Ns, tag: Tag, _part: u64, out: &mut Output) {
        self.asked.push_back(Asked::new(tag, None));
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
        let is_under_way = self.asked.front().is_some_and(|first| !first.waits);
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
        self.asked.iter().any(|one| one.tag == Some(tag) && one.waits)
    }

    fn repeat(&mut self, out: &mut Output) {
        self.asked.retain(|one| one.tag.is_some() && one.waits);
        self.send(out);
    }

    fn expire(&mut self, tag: Tag) {
        if let Some(one) = self.asked.iter_mut().find(|one| one.tag == Some(tag)) {
            one.tag = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use load::kv::Keys;

    use super::*;
    use crate::load::{INIT_COMPLETE, LABEL, METER, QUERY_LABEL};
    use crate::protocol::Reply;

    fn client() -> EcFlow {
        let keys = Keys::new(4, 8).expect("keys");
        let made = Arc::new(Made::new(&keys, None));
        let target = Target::of(keys, &[LABEL, METER, INIT_COMPLETE]);
        EcFlow::new(made, Arc::new(target))
    }

    /// What one request comes to that is answered so.
    fn answered(client: &mut EcFlow, operation: usize, reply: &Reply) -> (Done, Vec<String>) {
        let (mut out, mut events) = (Output::new(1 << 20), Events::default());
        client.request(0, 7, Op { operation, what: 2 }, &mut out);
        assert!(!out.is_empty());
        let mut answer = Vec::new();
        reply.write(&mut answer);
        let mut input = Input::new();
        for byte in answer {
            assert_eq!(events.done, []);
            input.append(&[byte]);
            client.receive(0, &mut input, &mut events, &mut out).expect("an answer");
        }
        assert!(events.close && input.is_empty());
        let notes = events.findings.iter().map(|one| one.note.clone()).collect();
        (*events.done.first().expect("an answer"), notes)
    }

    #[test]
    fn a_server_that_acknowledges_and_changes_nothing_is_found() {
        let text = |text: &str| Reply::Text(text.to_owned());
        let mut client = client();
        assert_eq!(answered(&mut client, PING, &Reply::OK).0, Done::right(7));
        let first = text("k0000002 0000000001");
        assert_eq!(answered(&mut client, QUERY_LABEL, &first).0, Done::right(7));
        assert_eq!(answered(&mut client, LABEL, &Reply::OK).0, Done::right(7));
        let (done, notes) = answered(&mut client, QUERY_LABEL, &first);
        assert_eq!((done.wrong, notes.len()), (1, 1));
        assert!(notes.concat().contains("replaced"), "{notes:?}");
        let second = text("k0000002 0000000002");
        assert_eq!(answered(&mut client, QUERY_LABEL, &second).0, Done::right(7));
        for reply in [text("k0000001 0000000002"), text("k0000002 0000000003"), Reply::OK] {
            assert_eq!(answered(&mut client, QUERY_LABEL, &reply).0.wrong, 1, "{reply:?}");
        }
        for reply in [text("done"), Reply::Suites(Vec::new())] {
            assert_eq!(answered(&mut client, PING, &reply).0.wrong, 1, "{reply:?}");
        }
        let (done, notes) = answered(&mut client, LABEL, &Reply::error("no such node"));
        assert_eq!((done.refused, done.wrong), (1, 0));
        assert_eq!(notes, ["no such node"]);
    }

    #[test]
    fn a_task_is_run_by_three_requests_of_one_operation() {
        let run = |last: &Reply| {
            let (mut client, mut out) = (client(), Output::new(1 << 20));
            let mut events = Events::default();
            client.request(0, 7, Op { operation: INIT_COMPLETE, what: 2 }, &mut out);
            let mut requests = Vec::new();
            for reply in [&Reply::OK, &Reply::OK, last] {
                assert_eq!(events.done, []);
                requests.push(String::from_utf8_lossy(&out.take()).into_owned());
                let mut answer = Vec::new();
                reply.write(&mut answer);
                let mut input = Input::of(&answer);
                client.receive(0, &mut input, &mut events, &mut out).expect("an answer");
                assert!(events.close);
                events.close = false;
                if events.done.is_empty() {
                    assert!(client.may_repeat(7));
                    client.repeat(&mut out);
                }
            }
            for (request, said) in requests.iter().zip(["InitCmd", "CompleteCmd", "QueryCmd"]) {
                assert!(request.contains(said) && request.contains("/load/tasks/k0000002"));
            }
            events.done.first().copied().expect("an answer")
        };
        assert_eq!(run(&Reply::Text("complete".to_owned())), Done::right(7));
        assert_eq!(run(&Reply::Text("active".to_owned())), Done::wrong(7));
        assert_eq!(run(&Reply::error("no such node")).refused, 1);
    }

    #[test]
    fn a_second_request_waits_for_a_connection_of_its_own() {
        let (mut client, mut out, mut events) = (client(), Output::new(1 << 20), Events::default());
        let op = Op { operation: PING, what: 0 };
        client.request(0, 1, op, &mut out);
        let one = out.take();
        client.request(0, 2, op, &mut out);
        assert!(out.is_empty() && !client.may_repeat(1) && client.may_repeat(2));
        client.closed(0, &mut events).expect_err("a request is not answered");
        let mut answer = Vec::new();
        Reply::OK.write(&mut answer);
        let mut input = Input::of(&answer);
        client.receive(0, &mut input, &mut events, &mut out).expect("an answer");
        assert!(events.close);
        client.repeat(&mut out);
        assert_eq!(out.take(), one);
        assert!(!client.may_repeat(2));
    }

    #[test]
    fn what_is_no_answer_ends_the_connection() {
        for bytes in [&b"GET / HTTP/1.1"[..], b"ffffffff", b"       2{}"] {
            let (mut client, mut out) = (client(), Output::new(1 << 20));
            let mut events = Events::default();
            let result = client.receive(0, &mut Input::of(bytes), &mut events, &mut out);
            assert!(result.is_err() && events.done.is_empty());
        }
    }
}
