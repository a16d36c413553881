//! Redis' protocol, as a load generator speaks it: every byte of every answer is compared. Data
//! plane: nothing is allocated per request after warm-up, except for findings.

use std::sync::Arc;

use load::kv::Oracle;
use load::{Dialect, Events, Op, Tag};
use wire::{Input, Ns, Output, ProtocolError};

use super::in_flight::{Form, InFlight};
use super::in_turn::{self, InTurn, Step};
use super::operations::{DELETE, MGET, SET};
use crate::protocol::resp::{LINE_END, Reply, put_command, put_word, read_reply};
use crate::protocol::text::answer::put_number;

/// A string that is not the expected one may claim to be at most this long.
const MAX_SKIPPED_BYTES: usize = 1 << 30;

/// How errors begin of a server that is well and has no room or time for this command.
const REFUSALS: [&[u8]; 5] = [b"OOM ", b"BUSY ", b"LOADING ", b"TRYAGAIN ", b"CLUSTERDOWN "];

/// The client side of one connection.
#[derive(Debug)]
pub struct Redis {
    in_flight: InFlight,
    /// The keys of the request that is written.
    keys: Vec<u64>,
    /// Whether the head of the oldest request's array has come.
    in_array: bool,
    /// Bytes of a wrong string that are still to come.
    skip: usize,
}

/// Has the next command go without a reply: `CLIENT REPLY SKIP`.
const SKIP_REPLY: &[u8] = b"*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$4\r\nSKIP\r\n";

/// A right answer about `key`.
fn example(oracle: &Oracle, form: Form, key: u64) -> Vec<u8> {
    match form {
        Form::Store => b"+OK\r\n".to_vec(),
        Form::Delete => b":1\r\n".to_vec(),
        Form::Values | Form::Meta | Form::Aside => {
            let mut answer = b"$".to_vec();
            put_number(oracle.values.len(key) as u64, &mut answer);
            answer.extend_from_slice(LINE_END);
            answer.extend(oracle.example(key));
            answer.extend_from_slice(LINE_END);
            answer
        }
    }
}

impl Redis {
    /// A connection whose answers `oracle` checks.
    pub fn new(oracle: &Arc<Oracle>) -> Self {
        Self {
            in_flight: InFlight::new(oracle, example),
            keys: Vec::new(),
            in_array: false,
            skip: 0,
        }
    }

    #[inline]
    fn put_key(&self, key: u64, into: &mut Vec<u8>) {
        let keys = &self.in_flight.oracle.keys;
        put_word(keys.bytes(), into, |into| keys.put(key, into));
    }

    fn put_set(&self, key: u64, version: u32, into: &mut Vec<u8>) {
        put_command(3, into);
        put_word(3, into, |into| into.extend_from_slice(b"SET"));
        self.put_key(key, into);
        let values = &self.in_flight.oracle.values;
        put_word(values.len(key), into, |into| values.put(key, version, into));
    }

    fn step_value(&mut self, count: usize, used: usize, bytes: &[u8], events: &mut Events) -> Step {
        let Some(key) = self.in_flight.expected_key() else { return self.broken(bytes, events) };
        if count != self.in_flight.oracle.values.len(key) {
            if count > MAX_SKIPPED_BYTES {
                return self.broken(bytes, events);
            }
            let shown = &bytes[..bytes.len().min(used + count + LINE_END.len())];
            self.in_flight.wrong(shown, "another length than expected", events);
            self.skip = count + LINE_END.len();
            return self.after_one(used);
        }
        let Some(data) = bytes[used..].get(..count + LINE_END.len()) else { return Step::More };
        let (value, end) = data.split_at(count);
        if end != LINE_END {
            return self.broken(bytes, events);
        }
        self.in_flight.check(value, events);
        self.after_one(used + data.len())
    }

    /// One key is answered; an array may hold more, a single string may not.
    #[inline]
    fn after_one(&mut self, used: usize) -> Step {
        if self.in_array { self.after(used) } else { Step::Done(used) }
    }

    #[inline]
    fn after(&mut self, used: usize) -> Step {
        if self.in_flight.keys_left() == 0 { Step::Done(used) } else { Step::Part(used) }
    }
}

impl InTurn for Redis {
    #[inline]
    fn in_flight(&mut self) -> &mut InFlight {
        &mut self.in_flight
    }

    #[inline]
    fn skip(&mut self) -> &mut usize {
        &mut self.skip
    }

    fn put_missed(&self, key: u64, out: &mut Output) {
        out.put(SKIP_REPLY);
        self.put_set(key, self.in_flight.oracle.prepared_version(), out.tail());
    }

    #[inline]
    fn step(&mut self, form: Form, bytes: &[u8], events: &mut Events) -> Step {
        let (reply, used) = match read_reply(bytes) {
            Ok(Some(read)) => read,
            Ok(None) => return Step::More,
            Err(_) => return self.broken(bytes, events),
        };
        let line = &bytes[..used];
        match (form, reply) {
            (Form::Values | Form::Meta | Form::Aside, Reply::Bulk(count)) => {
                return self.step_value(count, used, bytes, events);
            }
            (Form::Values | Form::Meta | Form::Aside, Reply::Nothing) => {
                self.in_flight.miss(line, events);
                return self.after_one(used);
            }
            (Form::Values, Reply::Array(count))
                if !self.in_array && count == self.in_flight.keys_left() =>
            {
                self.in_array = true;
                return self.after(used);
            }
            (Form::Store, Reply::Status(b"OK")) | (Form::Delete, Reply::Number(1)) => {
                self.in_flight.written();
            }
            (Form::Delete, Reply::Number(0)) => self.in_flight.nothing_removed(line, events),
            (_, Reply::Error(error)) => {
                let is_refusal = REFUSALS.iter().any(|code| error.starts_with(code));
                self.in_flight.fails(line, is_refusal, events);
            }
            _ => return self.broken(line, events),
        }
        Step::Done(used)
    }

    #[inline]
    fn answered(&mut self) {
        self.in_array = false;
    }
}

impl Dialect for Redis {
    #[inline]
    fn request(&mut self, _now: Ns, tag: Tag, op: Op, out: &mut Output) {
        let key = op.what;
        let into = out.tail();
        match op.operation {
            SET => {
                let version = self.in_flight.write(key);
                self.put_set(key, version, into);
                return self.in_flight.send(tag, SET, 1);
            }
            DELETE => {
                self.in_flight.write(key);
                put_command(2, into);
                put_word(3, into, |into| into.extend_from_slice(b"DEL"));
                self.put_key(key, into);
                return self.in_flight.send(tag, DELETE, 1);
            }
            _ => {}
        }
        let is_many = op.operation == MGET;
        self.keys.clear();
        match is_many {
            true => self.in_flight.oracle.expand(op.what, &mut self.keys),
            false => self.keys.push(key),
        }
        let keys = std::mem::take(&mut self.keys);
        let name: &[u8] = if is_many { b"MGET" } else { b"GET" };
        put_command(1 + keys.len(), into);
        put_word(name.len(), into, |into| into.extend_from_slice(name));
        for key in &keys {
            self.put_key(*key, into);
            self.in_flight.read(*key);
        }
        self.in_flight.send(tag, op.operation, keys.len());
        self.keys = keys;
    }

    fn prepare(&mut self, _now: Ns, tag: Tag, key: u64, out: &mut Output) {
        let version = self.in_flight.prepare(key);
        self.put_set(key, version, out.tail());
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
