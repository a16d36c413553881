//! A service with nothing in it: eight bytes there and back. It measures the lab itself, and what
//! is planted in its server on purpose: a known service time, a known cost. Data plane.

use std::collections::VecDeque;

use wire::{Input, Ns, Output, ProtocolError};

use crate::{
    Client, Dialect, DialectRow, Done, Events, Finding, Kind, Op, Operation, Service, Tag,
};

/// How long a request and its answer are.
pub const MESSAGE_BYTES: usize = 8;

/// The service. Its requests are numbers, counted up on each connection; the right answer is the
/// same number.
pub static SERVICE: Service = Service {
    name: "null",
    doc: "Eight bytes there and back: what the lab itself costs, and loads with a known answer.",
    operations: &[Operation {
        name: "ask",
        kind: Kind::Read,
        doc: "sends a number, wants it back",
    }],
    dialects: &[DIALECT],
    longest_key_bytes: 250,
    longest_value_bytes: 0,
    prepares: false,
};

/// How it is spoken.
pub static DIALECT: DialectRow = DialectRow {
    name: "null",
    doc: "Eight bytes, which come back as they are.",
    client: Client::Stream(|_| Box::new(Null::default())),
    counters: None,
};

/// The client side of one connection.
#[derive(Debug, Default)]
pub struct Null {
    next: u64,
    oldest: u64,
    /// Requests under way, oldest first; one that was given up has no tag any more.
    asked: VecDeque<Option<Tag>>,
}

impl Dialect for Null {
    #[inline]
    fn request(&mut self, _: Ns, tag: Tag, _: &Op<'_>, out: &mut Output) {
        out.put(&self.next.to_le_bytes());
        self.next += 1;
        self.asked.push_back(Some(tag));
    }

    fn prepare(&mut self, now: Ns, tag: Tag, key: u64, out: &mut Output) {
        self.request(now, tag, &Op { operation: 0, keys: &[key] }, out);
    }

    #[inline]
    fn receive(
        &mut self,
        _: Ns,
        input: &mut Input,
        events: &mut Events,
        _: &mut Output,
    ) -> Result<(), ProtocolError> {
        let mut used = 0;
        for answer in input.bytes().chunks_exact(MESSAGE_BYTES) {
            used += MESSAGE_BYTES;
            let expected = self.oldest.to_le_bytes();
            self.oldest += 1;
            let Some(tag) = self.asked.pop_front() else {
                return Err(ProtocolError::new("an answer came that nobody asked for"));
            };
            let Some(tag) = tag else { continue };
            let wrong = u32::from(answer != expected);
            if wrong > 0 {
                events.found(|| Finding {
                    operation: SERVICE.operations[0].name,
                    key: Vec::new(),
                    expected: expected.to_vec(),
                    received: answer.to_vec(),
                    note: "not the number that was sent".to_owned(),
                });
            }
            events.done.push(Done { tag, keys: 1, misses: 0, wrong });
        }
        input.consume(used);
        Ok(())
    }

    fn expire(&mut self, tag: Tag) {
        if let Some(place) = self.asked.iter_mut().find(|asked| **asked == Some(tag)) {
            *place = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_in_order_and_another_one_is_wrong() {
        let mut null = Null::default();
        let mut out = Output::new(1 << 20);
        for tag in [7, 8, 9] {
            null.request(0, tag, &Op { operation: 0, keys: &[] }, &mut out);
        }
        null.expire(8);
        let mut answers = out.take();
        assert_eq!(answers.len(), 3 * MESSAGE_BYTES);
        answers[16] ^= 1;
        let mut events = Events::default();
        let mut input = Input::of(&answers[..20]);
        null.receive(0, &mut input, &mut events, &mut out).unwrap();
        assert_eq!(events.done, [Done { tag: 7, keys: 1, misses: 0, wrong: 0 }]);
        input.append(&answers[20..]);
        null.receive(0, &mut input, &mut events, &mut out).unwrap();
        assert_eq!(events.done[1], Done { tag: 9, keys: 1, misses: 0, wrong: 1 });
        assert_eq!(events.findings.len(), 1);
        input.append(&[0; 8]);
        assert!(null.receive(0, &mut input, &mut events, &mut out).is_err());
    }
}
