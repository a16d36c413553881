//! Answers that come in the order of their requests: the loop that reads them, whatever the
//! protocol. Data plane.

use load::Events;
use wire::{Input, Output, ProtocolError};

use super::in_flight::{Form, InFlight};

/// The outcome of reading an answer.
pub(super) enum Step {
    /// This many bytes are parsed; the request is not fully answered.
    Part(usize),
    /// This many bytes are parsed; the request is answered.
    Done(usize),
    /// More bytes are needed.
    More,
    /// These bytes are no answer to this request.
    Broken,
}

/// One protocol's way to read answers.
pub(super) trait InTurn {
    /// The requests in flight.
    fn in_flight(&mut self) -> &mut InFlight;

    /// How many bytes of a wrong value are still to come and are passed over.
    fn skip(&mut self) -> &mut usize;

    /// Reads the next part of the answer to the oldest request.
    fn step(&mut self, form: Form, bytes: &[u8], events: &mut Events) -> Step;

    /// Stores a key that was not there, without an answer: whether it was stored, later reads show.
    fn put_missed(&self, key: u64, out: &mut Output);

    /// The oldest request is answered.
    #[inline]
    fn answered(&mut self) {}

    /// These bytes answer nothing.
    #[cold]
    fn broken(&mut self, received: &[u8], events: &mut Events) -> Step {
        self.in_flight().wrong(received, "this is no answer to the request", events);
        Step::Broken
    }
}

/// Consumes every whole answer of `input`.
#[inline]
pub(super) fn receive(
    client: &mut impl InTurn,
    input: &mut Input,
    events: &mut Events,
    out: &mut Output,
) -> Result<(), ProtocolError> {
    let bytes = input.bytes();
    let mut used = 0;
    let outcome = loop {
        let skipped = (*client.skip()).min(bytes.len() - used);
        *client.skip() -= skipped;
        used += skipped;
        let rest = &bytes[used..];
        if rest.is_empty() {
            break Ok(());
        }
        let Some(form) = client.in_flight().form() else {
            client.broken(rest, events);
            client.in_flight().forget_done();
            break Err(ProtocolError::new("bytes came that no request asked for"));
        };
        match client.step(form, rest, events) {
            Step::Part(count) => used += count,
            Step::Done(count) => {
                used += count;
                client.answered();
                client.in_flight().finish(events);
            }
            Step::More => break Ok(()),
            Step::Broken => {
                client.in_flight().finish(events);
                break Err(ProtocolError::new("the answer does not belong to the request"));
            }
        }
    };
    input.consume(used);
    while let Some(key) = client.in_flight().next_missed() {
        client.put_missed(key, out);
    }
    outcome
}
