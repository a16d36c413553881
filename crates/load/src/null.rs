//! A service with nothing in it: eight bytes there and back. It measures the lab itself, and what
//! is planted in its server on purpose: a known service time, a known cost. Data plane.

use std::collections::VecDeque;
use std::sync::Arc;

use wire::{Input, Ns, Output, ProtocolError};

use crate::{
    Dialect, DialectRow, Done, Draw, Events, Finding, Kind, Op, Operation, Part, Reach, Service,
    Speaks, SpecError, Tag, UniformDraw, Workload,
};

/// How long a request and its answer are.
pub const MESSAGE_BYTES: usize = 8;

/// The service. Its requests are numbers, counted up on each connection; the right answer is the
/// same number.
pub static SERVICE: Service = Service {
    name: "null",
    doc: "Eight bytes there and back: what the lab itself costs, and loads with a known answer.",
    read,
    dialects: &[DIALECT],
};

/// Its only dialect.
pub static DIALECT: DialectRow =
    DialectRow::new("null", "Eight bytes, which come back as they are.", Reach::Stream);

static OPERATIONS: [Operation; 1] =
    [Operation::new("ask", Kind::Read, "sends a number, wants it back")];

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

fn read(part: &Part<'_>) -> Result<Arc<dyn Workload>, SpecError> {
    part.read::<Nothing>()?;
    Ok(Arc::new(Asking))
}

/// The workload: there is nothing to know of it.
#[derive(Debug)]
struct Asking;

impl Workload for Asking {
    fn operations(&self) -> &[Operation] {
        &OPERATIONS
    }

    fn begin(self: Arc<Self>, _: &[usize]) -> Arc<dyn Workload> {
        self
    }

    fn draw(&self, _: u64) -> Box<dyn Draw> {
        Box::new(UniformDraw { below: 1 })
    }

    fn dialect(self: Arc<Self>, _: &Speaks) -> Result<Box<dyn Dialect>, ProtocolError> {
        Ok(Box::new(Null::default()))
    }
}

/// The client side of one connection.
#[derive(Debug, Default)]
pub struct Null {
    next: u64,
    oldest: u64,
    /// Requests under way, oldest first; one that was given up has no tag any more.
    in_flight: VecDeque<Option<Tag>>,
}

impl Dialect for Null {
    #[inline]
    fn request(&mut self, _: Ns, tag: Tag, _: Op, out: &mut Output) {
        out.put(&self.next.to_le_bytes());
        self.next += 1;
        self.in_flight.push_back(Some(tag));
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
            let Some(tag) = self.in_flight.pop_front() else {
                return Err(ProtocolError::new("an answer to no request"));
            };
            let Some(tag) = tag else { continue };
            let wrong = u32::from(answer != expected);
            if wrong > 0 {
                events.found(|| Finding {
                    operation: OPERATIONS[0].name.clone(),
                    key: Vec::new(),
                    expected: expected.to_vec(),
                    received: answer.to_vec(),
                    note: "not the number that was sent".to_owned(),
                });
            }
            events.done.push(Done { wrong, ..Done::right(tag) });
        }
        input.consume(used);
        Ok(())
    }

    fn expire(&mut self, tag: Tag) {
        if let Some(place) = self.in_flight.iter_mut().find(|asked| **asked == Some(tag)) {
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
            null.request(0, tag, Op::default(), &mut out);
        }
        null.expire(8);
        let mut answers = out.take();
        assert_eq!(answers.len(), 3 * MESSAGE_BYTES);
        answers[16] ^= 1;
        let mut events = Events::default();
        let mut input = Input::of(&answers[..20]);
        null.receive(0, &mut input, &mut events, &mut out).unwrap();
        assert_eq!(events.done, [Done::right(7)]);
        input.append(&answers[20..]);
        null.receive(0, &mut input, &mut events, &mut out).unwrap();
        assert_eq!(events.done[1], Done::wrong(9));
        assert_eq!(events.findings.len(), 1);
        input.append(&[0; 8]);
        assert!(null.receive(0, &mut input, &mut events, &mut out).is_err());
    }
}
