//! memcached's text protocol, as a load generator speaks it: every byte of every answer is
//! compared. Data plane: nothing is allocated per request after warm-up, except for findings.

use std::collections::VecDeque;
use std::sync::Arc;

use memchr::memchr;
use wire::{Fault, Input, Ns, Output};
use workload::{Dialect, Done, Events, Finding, Floor, Op, Tag, Truth, Write};

use super::{DELETE, MG, MGET, ROOM, SET};
use crate::protocol::MOST_LINE_BYTES;
use crate::protocol::text::answer::{DELETED, END, LINE_END, NOT_FOUND, STORED, put_number};
use crate::protocol::text::{Answer, read_answer};

/// The answer to a meta get of what isn't there.
const META_MISS: &[u8] = b"EN\r\n";

/// A data block that is not the expected one may claim to be at most this long.
const MOST_SKIPPED_BYTES: usize = 1 << 30;

/// How a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `VALUE` for each key that is there, then `END`.
    Values,
    /// `VA` or `EN`.
    Meta,
    /// `STORED`.
    Store,
    /// `DELETED` or `NOT_FOUND`.
    Delete,
}

/// An outstanding request.
#[derive(Clone, Copy, Debug)]
struct Request {
    tag: Tag,
    form: Form,
    /// Which of the room's operations.
    operation: u8,
    /// Keys not yet answered.
    keys_left: u32,
    /// The engine has given up on it: its answer is read and not reported.
    is_expired: bool,
}

/// What was known of a key when its request was sent.
#[derive(Clone, Copy, Debug)]
enum Sent {
    Read(Floor),
    Write(Write),
    Prepare,
    Delete,
}

/// What reading an answer has come to.
enum Step {
    /// So many bytes are understood; the request is not fully answered.
    Part(usize),
    /// So many bytes are understood; the request is answered.
    Done(usize),
    /// More bytes are needed.
    More,
    /// These bytes are no answer to this request.
    Broken,
}

/// The client side of one connection.
#[derive(Debug)]
pub struct Memcached {
    truth: Arc<Truth>,
    requests: VecDeque<Request>,
    /// The keys of all outstanding requests, in order, without those already answered.
    keys: VecDeque<(u64, Sent)>,
    /// What has been found about the oldest request so far.
    done: Done,
    /// Bytes of a wrong data block that are still to come.
    skip: usize,
    /// The expected head of a value.
    head: Vec<u8>,
}

impl Memcached {
    /// A connection whose answers are held against `truth`.
    pub fn new(truth: &Arc<Truth>) -> Self {
        Self {
            truth: Arc::clone(truth),
            requests: VecDeque::new(),
            keys: VecDeque::new(),
            done: Done::default(),
            skip: 0,
            head: Vec::new(),
        }
    }

    #[inline]
    fn send(&mut self, tag: Tag, operation: usize, keys: usize) {
        let form = match operation {
            SET => Form::Store,
            DELETE => Form::Delete,
            MG => Form::Meta,
            _ => Form::Values,
        };
        let (operation, keys_left) = (operation as u8, keys as u32);
        self.requests.push_back(Request { tag, form, operation, keys_left, is_expired: false });
    }

    #[inline]
    fn put_set(&self, key: u64, version: u32, into: &mut Vec<u8>) {
        into.extend_from_slice(b"set ");
        self.truth.keys.put(key, into);
        into.extend_from_slice(b" 0 0 ");
        put_number(self.truth.values.len(key) as u64, into);
        into.extend_from_slice(LINE_END);
        self.truth.values.put(key, version, into);
        into.extend_from_slice(LINE_END);
    }

    /// Reads one step of the answer to the oldest request.
    #[inline]
    fn step(&mut self, form: Form, bytes: &[u8], events: &mut Events) -> Step {
        match form {
            Form::Values => self.step_values(bytes, events),
            Form::Meta => self.step_meta(bytes, events),
            Form::Store if bytes.starts_with(STORED) => {
                if let (key, Sent::Write(write)) = self.answered() {
                    self.truth.end_write(key, write);
                }
                Step::Done(STORED.len())
            }
            Form::Delete if bytes.starts_with(DELETED) => {
                self.answered();
                Step::Done(DELETED.len())
            }
            Form::Delete if bytes.starts_with(NOT_FOUND) => {
                self.miss(NOT_FOUND, events);
                Step::Done(NOT_FOUND.len())
            }
            Form::Store | Form::Delete => self.step_refusal(form, bytes, events),
        }
    }

    #[inline]
    fn step_values(&mut self, bytes: &[u8], events: &mut Events) -> Step {
        let mut used = 0;
        while let Some((key, _)) = self.expected_key() {
            let value_bytes = self.put_head(key);
            let rest = &bytes[used..];
            if !rest.starts_with(&self.head) {
                break;
            }
            let Some(data) = rest[self.head.len()..].get(..value_bytes + LINE_END.len()) else {
                return if used > 0 { Step::Part(used) } else { Step::More };
            };
            let (value, end) = data.split_at(value_bytes);
            if end != LINE_END {
                return self.broken(rest, events);
            }
            used += self.head.len() + data.len();
            self.check(value, events);
        }
        let rest = &bytes[used..];
        if rest.starts_with(END) {
            for _ in 0..self.keys_left() {
                self.miss(END, events);
            }
            return Step::Done(used + END.len());
        }
        if used > 0 {
            return Step::Part(used);
        }
        self.step_other_value(rest, events)
    }

    /// A line that is neither the next key's expected one nor the end.
    #[cold]
    fn step_other_value(&mut self, bytes: &[u8], events: &mut Events) -> Step {
        let Some((line, used)) = whole_line(bytes) else { return self.unfinished(bytes, events) };
        let Answer::Value { key, value_bytes, .. } = read_answer(line) else {
            return self.step_refusal(Form::Values, bytes, events);
        };
        if value_bytes > MOST_SKIPPED_BYTES {
            return self.broken(bytes, events);
        }
        // Keys that are passed over were not there.
        let missing = self.position_of(key).unwrap_or(0);
        if missing > 0 {
            for _ in 0..missing {
                self.miss(line, events);
            }
            return Step::Part(0);
        }
        let shown = &bytes[..bytes.len().min(used + value_bytes + LINE_END.len())];
        let note = "another key, length or flags than expected";
        self.wrong(shown, note, events);
        self.skip = value_bytes + LINE_END.len();
        Step::Part(used)
    }

    /// Where among the keys still expected from this request `text` is.
    fn position_of(&self, text: &[u8]) -> Option<usize> {
        let mut written = Vec::new();
        self.keys.iter().take(self.keys_left()).position(|(key, _)| {
            written.clear();
            self.truth.keys.put(*key, &mut written);
            written == text
        })
    }

    #[inline]
    fn step_meta(&mut self, bytes: &[u8], events: &mut Events) -> Step {
        let Some((key, _)) = self.expected_key() else { return self.broken(bytes, events) };
        let value_bytes = self.truth.values.len(key);
        self.head.clear();
        self.head.extend_from_slice(b"VA ");
        put_number(value_bytes as u64, &mut self.head);
        self.head.extend_from_slice(LINE_END);
        if bytes.starts_with(&self.head) {
            let Some(data) = bytes[self.head.len()..].get(..value_bytes + LINE_END.len()) else {
                return Step::More;
            };
            let (value, end) = data.split_at(value_bytes);
            if end != LINE_END {
                return self.broken(bytes, events);
            }
            self.check(value, events);
            return Step::Done(self.head.len() + data.len());
        }
        if bytes.starts_with(META_MISS) {
            self.miss(META_MISS, events);
            return Step::Done(META_MISS.len());
        }
        self.step_refusal(Form::Meta, bytes, events)
    }

    /// A line that answers the request, but not as it should.
    #[cold]
    fn step_refusal(&mut self, form: Form, bytes: &[u8], events: &mut Events) -> Step {
        let Some((line, used)) = whole_line(bytes) else { return self.unfinished(bytes, events) };
        let is_error = line == b"ERROR"
            || line.starts_with(b"ERROR ")
            || line.starts_with(b"CLIENT_ERROR ")
            || line.starts_with(b"SERVER_ERROR ");
        let is_answer =
            form == Form::Store && matches!(line, b"NOT_STORED" | b"EXISTS" | b"NOT_FOUND");
        if form == Form::Meta
            && let Some(value_bytes) = meta_value_bytes(line)
        {
            self.wrong(&bytes[..used], "another length or flags than expected", events);
            self.skip = value_bytes + LINE_END.len();
            return Step::Done(used);
        }
        if !is_error && !is_answer {
            return self.broken(bytes, events);
        }
        for _ in 0..self.keys_left().max(1) {
            self.wrong(&bytes[..used], "the server refused", events);
        }
        Step::Done(used)
    }

    /// The end of the line has not come. It will not come any more once there is too much of it.
    #[cold]
    fn unfinished(&mut self, bytes: &[u8], events: &mut Events) -> Step {
        if bytes.len() > MOST_LINE_BYTES { self.broken(bytes, events) } else { Step::More }
    }

    #[inline]
    fn keys_left(&self) -> usize {
        self.requests.front().map_or(0, |request| request.keys_left as usize)
    }

    /// The key that the oldest request waits for next.
    #[inline]
    fn expected_key(&self) -> Option<(u64, Sent)> {
        if self.keys_left() == 0 {
            return None;
        }
        self.keys.front().copied()
    }

    /// Builds the expected head of the value of `key` and gives the expected length of the value.
    #[inline]
    fn put_head(&mut self, key: u64) -> usize {
        let value_bytes = self.truth.values.len(key);
        self.head.clear();
        self.head.extend_from_slice(b"VALUE ");
        self.truth.keys.put(key, &mut self.head);
        self.head.extend_from_slice(b" 0 ");
        put_number(value_bytes as u64, &mut self.head);
        self.head.extend_from_slice(LINE_END);
        value_bytes
    }

    /// Counts the next expected key as answered.
    #[inline]
    fn answered(&mut self) -> (u64, Sent) {
        if let Some(request) = self.requests.front_mut() {
            request.keys_left = request.keys_left.saturating_sub(1);
        }
        self.done.keys += 1;
        self.keys.pop_front().unwrap_or((0, Sent::Delete))
    }

    #[inline]
    fn check(&mut self, value: &[u8], events: &mut Events) {
        let (key, sent) = self.answered();
        let Sent::Read(floor) = sent else { return };
        if let Err(mismatch) = self.truth.check(key, floor, value) {
            self.done.wrong += 1;
            events.found(|| self.finding(key, value, &mismatch.to_string()));
        }
    }

    #[inline]
    fn miss(&mut self, received: &[u8], events: &mut Events) {
        let (key, _) = self.answered();
        self.done.misses += 1;
        if !self.truth.misses_allowed {
            self.done.wrong += 1;
            events.found(|| self.finding(key, received, "the key is not there"));
        }
    }

    /// Counts the next expected key, if there is one, as wrongly answered.
    #[cold]
    fn wrong(&mut self, received: &[u8], note: &str, events: &mut Events) {
        self.done.wrong += 1;
        if self.keys_left() > 0 {
            let (key, _) = self.answered();
            events.found(|| self.finding(key, received, note));
        } else {
            events.found(|| Finding {
                operation: self.operation_name(),
                key: Vec::new(),
                expected: END.to_vec(),
                received: received.to_vec(),
                note: note.to_owned(),
            });
        }
    }

    #[cold]
    fn broken(&mut self, received: &[u8], events: &mut Events) -> Step {
        self.wrong(received, "this is no answer to the request", events);
        Step::Broken
    }

    /// The name of the oldest request's operation; empty when there is none.
    fn operation_name(&self) -> &'static str {
        let row = self.requests.front().and_then(|one| ROOM.operations.get(one.operation as usize));
        row.map_or("", |row| row.name)
    }

    #[cold]
    fn finding(&self, key: u64, received: &[u8], note: &str) -> Finding {
        let mut text = Vec::new();
        self.truth.keys.put(key, &mut text);
        Finding {
            operation: self.operation_name(),
            key: text,
            expected: self.truth.example(key),
            received: received.to_vec(),
            note: note.to_owned(),
        }
    }

    /// Reports the oldest request, unless the engine has given up on it.
    #[inline]
    fn finish(&mut self, events: &mut Events) {
        let done = std::mem::take(&mut self.done);
        if let Some(request) = self.requests.pop_front() {
            // Keys that a broken answer has left unanswered are gone with it.
            self.keys.drain(..(request.keys_left as usize).min(self.keys.len()));
            if !request.is_expired {
                events.done.push(Done { tag: request.tag, ..done });
            }
        }
    }
}

/// The first line of `bytes`, without its end, and how long it is with it.
fn whole_line(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let end = memchr(b'\n', &bytes[..bytes.len().min(MOST_LINE_BYTES)])?;
    Some((bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]), end + 1))
}

/// The length in a `VA` line of any form.
fn meta_value_bytes(line: &[u8]) -> Option<usize> {
    let rest = line.strip_prefix(b"VA ")?;
    let digits = rest.split(|byte| *byte == b' ').next()?;
    let length: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (length <= MOST_SKIPPED_BYTES).then_some(length)
}

impl Dialect for Memcached {
    #[inline]
    fn request(&mut self, _now: Ns, tag: Tag, op: &Op<'_>, out: &mut Output) {
        let Some(&key) = op.keys.first() else { return };
        let into = out.tail();
        match op.operation {
            SET => {
                let write = self.truth.begin_write(key);
                self.put_set(key, write.version, into);
                self.keys.push_back((key, Sent::Write(write)));
                return self.send(tag, SET, 1);
            }
            DELETE => {
                into.extend_from_slice(b"delete ");
                self.truth.keys.put(key, into);
                into.extend_from_slice(LINE_END);
                self.keys.push_back((key, Sent::Delete));
                return self.send(tag, DELETE, 1);
            }
            MG => {
                into.extend_from_slice(b"mg ");
                self.truth.keys.put(key, into);
                into.extend_from_slice(b" v\r\n");
                self.keys.push_back((key, Sent::Read(self.truth.begin_read(key))));
                return self.send(tag, MG, 1);
            }
            _ => {}
        }
        let keys = if op.operation == MGET { op.keys } else { &op.keys[..1] };
        into.extend_from_slice(b"get");
        for key in keys {
            into.push(b' ');
            self.truth.keys.put(*key, into);
            self.keys.push_back((*key, Sent::Read(self.truth.begin_read(*key))));
        }
        into.extend_from_slice(LINE_END);
        self.send(tag, op.operation, keys.len());
    }

    fn prepare(&mut self, _now: Ns, tag: Tag, key: u64, out: &mut Output) {
        self.put_set(key, self.truth.prepared_version(), out.tail());
        self.keys.push_back((key, Sent::Prepare));
        self.send(tag, SET, 1);
    }

    fn receive(
        &mut self,
        _now: Ns,
        input: &mut Input,
        events: &mut Events,
        _out: &mut Output,
    ) -> Result<(), Fault> {
        let bytes = input.bytes();
        let mut used = 0;
        let outcome = loop {
            let skipped = self.skip.min(bytes.len() - used);
            self.skip -= skipped;
            used += skipped;
            let rest = &bytes[used..];
            if rest.is_empty() {
                break Ok(());
            }
            let Some(form) = self.requests.front().map(|request| request.form) else {
                self.broken(rest, events);
                self.done = Done::default();
                break Err(Fault::new("bytes came that nobody asked for"));
            };
            match self.step(form, rest, events) {
                Step::Part(count) => used += count,
                Step::Done(count) => {
                    used += count;
                    self.finish(events);
                }
                Step::More => break Ok(()),
                Step::Broken => {
                    self.finish(events);
                    break Err(Fault::new("the answer does not belong to the request"));
                }
            }
        };
        input.consume(used);
        outcome
    }

    fn expire(&mut self, tag: Tag) {
        let mut live = self.requests.iter_mut().filter(|request| !request.is_expired);
        if let Some(request) = live.find(|request| request.tag == tag) {
            request.is_expired = true;
        }
    }
}
