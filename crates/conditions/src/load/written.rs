//! What a slot inserts, and the outcomes of its calls.

use std::ops::Range;

use load::{Finding, Op, Operation, Outcome, Took};

use super::operations::OPERATIONS;

/// The objects that a slot inserts: one after another in a channel of its own, the n-th in
/// [n, n + 1).
#[derive(Debug)]
pub(super) struct Written {
    pub(super) channel: u32,
    /// How many it has sent.
    sent: u64,
    /// The one that was acknowledged last.
    last: Option<u64>,
}

impl Written {
    pub(super) fn new(channel: u32) -> Self {
        Self { channel, sent: 0, last: None }
    }

    /// The next objects. Whatever comes of them, those after them are others.
    pub(super) fn next(&mut self, count: u32) -> Range<u64> {
        let first = self.sent;
        self.sent += u64::from(count);
        first..self.sent
    }

    /// These are inserted: as many answers as objects.
    pub(super) fn acknowledged(&mut self, numbers: &Range<u64>) -> Outcome {
        self.last = numbers.end.checked_sub(1);
        let answers = (numbers.end - numbers.start) as u32;
        Outcome { answers, ..Outcome::default() }
    }

    /// The object that was acknowledged last.
    pub(super) fn last(&self) -> Option<u64> {
        self.last
    }

    /// The value of the object of this number, which a float keeps whole.
    pub(super) fn value(&self, number: u64) -> f32 {
        (number % (1 << 20)) as f32 + (self.channel % 2) as f32 / 2.0
    }
}

/// The figure of how long a server took by its own clock.
const SERVER_TIME: &str = "server_time_ns";

/// A slice of an interval, with what is wrong of it.
pub(super) fn read(op: Op, interval: u32, wrong: Option<String>, took: Took) -> Outcome {
    let outcome = match wrong {
        None => Outcome::right(),
        Some(why) => wrong_answer(op, &format!("interval {interval}"), "its values", &why),
    };
    Outcome { took: Some(took), ..outcome }
}

/// The same with how long the server took by its own clock, where it says so.
pub(super) fn with_server_time(mut outcome: Outcome, server_ns: Option<f64>) -> Outcome {
    outcome.figures.extend(server_ns.map(|ns| (SERVER_TIME.to_owned(), ns)));
    outcome
}

/// The outcome of a call before which something took a while, which counts.
fn after(outcome: Outcome, before: Took) -> Outcome {
    let both = |mut took: Took| {
        took.add(before);
        took
    };
    Outcome { took: outcome.took.map(both), ..outcome }
}

/// The outcome of a call that has connected first.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(super) fn with_connecting(outcome: Outcome, connecting: Took) -> Outcome {
    after(outcome, connecting)
}

/// The figure of how many bytes on the disk what was loaded takes.
const DISK: &str = "disk_bytes";

/// The outcome of a read of what was loaded before: how long both took, and the bytes on the disk.
pub(super) fn loaded(read: Outcome, loading: Took, disk_bytes: f64) -> Outcome {
    let figures = vec![(DISK.to_owned(), disk_bytes)];
    Outcome { figures, ..after(read, loading) }
}

pub(super) fn wrong_answer(op: Op, key: &str, expected: &str, received: &str) -> Outcome {
    Outcome::wrong(Finding {
        operation: OPERATIONS[op.operation].name.clone(),
        key: key.as_bytes().to_vec(),
        expected: expected.as_bytes().to_vec(),
        received: received.as_bytes().to_vec(),
        note: "not what the seed and the slot's own insertions lead to".to_owned(),
    })
}

/// The outcome of a call of several operations that is answered with an error: a refusal where the
/// server may do the same at another time, else wrong.
pub(super) fn not_done(
    operation: &Operation,
    operations: u32,
    is_refusal: bool,
    received: String,
) -> Outcome {
    let finding = Finding {
        operation: operation.name.clone(),
        key: Vec::new(),
        expected: b"that it is done".to_vec(),
        note: received.clone(),
        received: received.into_bytes(),
    };
    let (refused, wrong) = if is_refusal { (operations, 0) } else { (0, operations) };
    let finding = Some(finding);
    Outcome { answers: operations, refused, wrong, finding, ..Outcome::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_is_not_looked_for() {
        let mut written = Written::new(1);
        let refused = written.next(1);
        assert_eq!((refused, written.last()), (0..1, None));
        let taken = written.next(3);
        assert_eq!(written.acknowledged(&taken).answers, 3);
        let _refused = written.next(2);
        assert_eq!(written.last(), Some(3));
    }

    #[test]
    fn an_error_counts_as_many_operations_as_a_right_answer() {
        let bulk = |is_refusal| not_done(&OPERATIONS[3], 1_000, is_refusal, "503".to_owned());
        let (refused, wrong) = (bulk(true), bulk(false));
        assert_eq!((refused.answers, refused.refused, refused.wrong), (1_000, 1_000, 0));
        assert_eq!((wrong.answers, wrong.refused, wrong.wrong), (1_000, 0, 1_000));
        assert_eq!(refused.finding.map(|finding| finding.note).as_deref(), Some("503"));
    }
}
