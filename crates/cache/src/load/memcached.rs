//! memcached's text protocol, as a load generator speaks it: every byte of every answer is
//! compared. Data plane: nothing is allocated per request after warm-up, except for findings.

use std::sync::Arc;

use load::kv::Oracle;
use load::{Dialect, Events, Op, Tag};
use memchr::memchr;
use wire::{Input, Ns, Output, ProtocolError};

use super::in_flight::{Form, InFlight};
use super::in_turn::{self, InTurn, Step};
use super::operations::{ASIDE, DELETE, MG, MGET, SET};
use crate::protocol::MAX_LINE_BYTES;
use crate::protocol::text::answer::{DELETED, END, LINE_END, NOT_FOUND, STORED, put_number};
use crate::protocol::text::{Answer, read_answer};

/// The end of a command line that is not answered.
const QUIET_END: &[u8] = b" noreply\r\n";

/// The answer to a meta get of what isn't there.
const META_MISS: &[u8] = b"EN\r\n";

/// A data block that is not the expected one may claim to be at most this long.
const MAX_SKIPPED_BYTES: usize = 1 << 30;

/// The client side of one connection.
#[derive(Debug)]
pub struct Memcached {
    in_flight: InFlight,
    /// The keys of the request that is written.
    keys: Vec<u64>,
    /// Bytes of a wrong data block that are still to come.
    skip: usize,
    /// How the heads of values of the last length end, and begin where no key stands in them.
    tail: Line,
    meta_head: Line,
}

/// The part of a line with a value's length. Most values are as long as the last one.
#[derive(Debug)]
struct Line {
    before: &'static [u8],
    value_bytes: usize,
    text: Vec<u8>,
}

impl Line {
    fn new(before: &'static [u8]) -> Self {
        let mut line = Self { before, value_bytes: 0, text: Vec::new() };
        line.write();
        line
    }

    #[inline]
    fn of(&mut self, value_bytes: usize) -> &[u8] {
        if self.value_bytes != value_bytes {
            self.value_bytes = value_bytes;
            self.write();
        }
        &self.text
    }

    fn write(&mut self) {
        self.text.clear();
        self.text.extend_from_slice(self.before);
        put_number(self.value_bytes as u64, &mut self.text);
        self.text.extend_from_slice(LINE_END);
    }
}

/// How the head of a value begins, before its key …
const HEAD: &[u8] = b"VALUE ";

/// … and goes on, before its length.
const FLAGS: &[u8] = b" 0 ";

/// How the head of a value begins in an answer to a meta get.
const META_HEAD: &[u8] = b"VA ";

/// A right answer about `key`.
fn example(oracle: &Oracle, form: Form, key: u64) -> Vec<u8> {
    let mut answer = Vec::new();
    match form {
        Form::Store => return STORED.to_vec(),
        Form::Delete => return DELETED.to_vec(),
        Form::Values => {
            answer.extend_from_slice(HEAD);
            oracle.keys.put(key, &mut answer);
            answer.extend_from_slice(Line::new(FLAGS).of(oracle.values.len(key)));
        }
        Form::Meta | Form::Aside => {
            answer.extend_from_slice(Line::new(META_HEAD).of(oracle.values.len(key)))
        }
    }
    answer.extend(oracle.example(key));
    answer.extend_from_slice(LINE_END);
    answer
}

impl Memcached {
    /// A connection whose answers `oracle` checks.
    pub fn new(oracle: &Arc<Oracle>) -> Self {
        let (tail, meta_head) = (Line::new(FLAGS), Line::new(META_HEAD));
        Self {
            in_flight: InFlight::new(oracle, example),
            keys: Vec::new(),
            skip: 0,
            tail,
            meta_head,
        }
    }

    /// Forgets the requests in flight, so that this can be used again.
    pub(super) fn clear(&mut self) {
        self.in_flight.clear();
        self.skip = 0;
    }

    /// Whether an answer is still awaited.
    pub(super) fn is_awaited(&self) -> bool {
        self.in_flight.is_awaited()
    }

    /// Gives up on a request; whether it is one of these.
    pub(super) fn give_up(&mut self, tag: Tag) -> bool {
        self.in_flight.expire(tag)
    }

    /// The answer is not whole, and no more of it will come.
    pub(super) fn cut_off(&mut self, received: &[u8], events: &mut Events) {
        while self.in_flight.form().is_some() {
            self.in_flight.wrong(received, "the answer is cut off", events);
            self.in_flight.finish(events);
        }
        self.clear();
    }

    /// Writes a get of `keys`.
    #[inline]
    pub fn get(&mut self, tag: Tag, operation: usize, keys: &[u64], out: &mut Output) {
        let (into, in_flight) = (out.tail(), &mut self.in_flight);
        into.extend_from_slice(b"get");
        for key in keys {
            into.push(b' ');
            in_flight.oracle.keys.put(*key, into);
            in_flight.read(*key);
        }
        into.extend_from_slice(LINE_END);
        in_flight.send(tag, operation, keys.len());
    }

    #[inline]
    fn put_set(&self, key: u64, version: u32, end: &[u8], into: &mut Vec<u8>) {
        into.extend_from_slice(b"set ");
        self.in_flight.oracle.keys.put(key, into);
        into.extend_from_slice(b" 0 0 ");
        put_number(self.in_flight.oracle.values.len(key) as u64, into);
        into.extend_from_slice(end);
        self.in_flight.oracle.values.put(key, version, into);
        into.extend_from_slice(LINE_END);
    }

    #[inline]
    fn step_values(&mut self, bytes: &[u8], events: &mut Events) -> Step {
        let mut used = 0;
        while let Some(key) = self.in_flight.expected_key() {
            let value_bytes = self.in_flight.oracle.values.len(key);
            let rest = &bytes[used..];
            let keys = &self.in_flight.oracle.keys;
            let tail = self.tail.of(value_bytes);
            let name = HEAD.len()..HEAD.len() + keys.bytes();
            let head_bytes = name.end + tail.len();
            let is_expected = rest.len() >= head_bytes
                && rest.starts_with(HEAD)
                && keys.is(key, &rest[name.clone()])
                && rest[name.end..].starts_with(tail);
            if !is_expected {
                break;
            }
            let Some(data) = rest[head_bytes..].get(..value_bytes + LINE_END.len()) else {
                return if used > 0 { Step::Part(used) } else { Step::More };
            };
            let (value, end) = data.split_at(value_bytes);
            if end != LINE_END {
                return self.broken(rest, events);
            }
            used += head_bytes + data.len();
            self.in_flight.check(value, events);
        }
        let rest = &bytes[used..];
        if rest.starts_with(END) {
            for _ in 0..self.in_flight.keys_left() {
                self.in_flight.miss(END, events);
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
        if value_bytes > MAX_SKIPPED_BYTES {
            return self.broken(bytes, events);
        }
        // Keys that are passed over were not there.
        let missing = self.in_flight.position_of(key).unwrap_or(0);
        if missing > 0 {
            for _ in 0..missing {
                self.in_flight.miss(line, events);
            }
            return Step::Part(0);
        }
        let shown = &bytes[..bytes.len().min(used + value_bytes + LINE_END.len())];
        let note = "another key, length or flags than expected";
        self.in_flight.wrong(shown, note, events);
        self.skip = value_bytes + LINE_END.len();
        Step::Part(used)
    }

    #[inline]
    fn step_meta(&mut self, form: Form, bytes: &[u8], events: &mut Events) -> Step {
        let Some(key) = self.in_flight.expected_key() else { return self.broken(bytes, events) };
        let value_bytes = self.in_flight.oracle.values.len(key);
        let head = self.meta_head.of(value_bytes);
        if bytes.starts_with(head) {
            let head_bytes = head.len();
            let Some(data) = bytes[head_bytes..].get(..value_bytes + LINE_END.len()) else {
                return Step::More;
            };
            let (value, end) = data.split_at(value_bytes);
            if end != LINE_END {
                return self.broken(bytes, events);
            }
            self.in_flight.check(value, events);
            return Step::Done(head_bytes + data.len());
        }
        if bytes.starts_with(META_MISS) {
            self.in_flight.miss(META_MISS, events);
            return Step::Done(META_MISS.len());
        }
        self.step_refusal(form, bytes, events)
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
        if matches!(form, Form::Meta | Form::Aside)
            && let Some(value_bytes) = meta_value_bytes(line)
        {
            self.in_flight.wrong(&bytes[..used], "another length or flags than expected", events);
            self.skip = value_bytes + LINE_END.len();
            return Step::Done(used);
        }
        if !is_error && !is_answer {
            return self.broken(bytes, events);
        }
        let is_refusal = line.starts_with(b"SERVER_ERROR ");
        self.in_flight.fails(&bytes[..used], is_refusal, events);
        Step::Done(used)
    }

    /// The end of the line has not come. A line that is too long is broken.
    #[cold]
    fn unfinished(&mut self, bytes: &[u8], events: &mut Events) -> Step {
        if bytes.len() > MAX_LINE_BYTES { self.broken(bytes, events) } else { Step::More }
    }
}

/// The first line of `bytes`, without its end, and how long it is with it.
fn whole_line(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let end = memchr(b'\n', &bytes[..bytes.len().min(MAX_LINE_BYTES)])?;
    Some((bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]), end + 1))
}

/// The length in a `VA` line of any form.
fn meta_value_bytes(line: &[u8]) -> Option<usize> {
    let rest = line.strip_prefix(b"VA ")?;
    let digits = rest.split(|byte| *byte == b' ').next()?;
    let length: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (length <= MAX_SKIPPED_BYTES).then_some(length)
}

impl InTurn for Memcached {
    #[inline]
    fn in_flight(&mut self) -> &mut InFlight {
        &mut self.in_flight
    }

    #[inline]
    fn skip(&mut self) -> &mut usize {
        &mut self.skip
    }

    fn put_missed(&self, key: u64, out: &mut Output) {
        self.put_set(key, self.in_flight.oracle.prepared_version(), QUIET_END, out.tail());
    }

    #[inline]
    fn step(&mut self, form: Form, bytes: &[u8], events: &mut Events) -> Step {
        match form {
            Form::Values => self.step_values(bytes, events),
            Form::Meta | Form::Aside => self.step_meta(form, bytes, events),
            Form::Store if bytes.starts_with(STORED) => {
                self.in_flight.written();
                Step::Done(STORED.len())
            }
            Form::Delete if bytes.starts_with(DELETED) => {
                self.in_flight.written();
                Step::Done(DELETED.len())
            }
            Form::Delete if bytes.starts_with(NOT_FOUND) => {
                self.in_flight.nothing_removed(NOT_FOUND, events);
                Step::Done(NOT_FOUND.len())
            }
            Form::Store | Form::Delete => self.step_refusal(form, bytes, events),
        }
    }
}

impl Dialect for Memcached {
    #[inline]
    fn request(&mut self, _now: Ns, tag: Tag, op: Op, out: &mut Output) {
        let key = op.what;
        let into = out.tail();
        let in_flight = &mut self.in_flight;
        match op.operation {
            SET => {
                let version = in_flight.write(key);
                in_flight.send(tag, SET, 1);
                self.put_set(key, version, LINE_END, into);
            }
            DELETE => {
                in_flight.write(key);
                into.extend_from_slice(b"delete ");
                in_flight.oracle.keys.put(key, into);
                into.extend_from_slice(LINE_END);
                in_flight.send(tag, DELETE, 1);
            }
            MG | ASIDE => {
                into.extend_from_slice(b"mg ");
                in_flight.oracle.keys.put(key, into);
                into.extend_from_slice(b" v\r\n");
                in_flight.read(key);
                in_flight.send(tag, op.operation, 1);
            }
            MGET => {
                let mut keys = std::mem::take(&mut self.keys);
                keys.clear();
                self.in_flight.oracle.expand(op.what, &mut keys);
                self.get(tag, MGET, &keys, out);
                self.keys = keys;
            }
            operation => self.get(tag, operation, &[key], out),
        }
    }

    fn prepare(&mut self, _now: Ns, tag: Tag, key: u64, out: &mut Output) {
        let version = self.in_flight.prepare(key);
        self.put_set(key, version, LINE_END, out.tail());
        self.in_flight.send(tag, SET, 1);
    }

    fn receive(
        &mut self,
        _now: Ns,
        input: &mut Input,
        events: &mut Events,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        in_turn::receive(self, input, events, out)
    }

    fn expire(&mut self, tag: Tag) {
        self.in_flight.expire(tag);
    }
}
