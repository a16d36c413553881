//! What a slot inserts, and the outcomes of its calls.

use std::ops::Range;

use load::{Finding, Op, Outcome, Took};

use super::operations::OPERATIONS;

/// The objects that a slot inserts: one after another in a channel of its own, the n-th in
/// [n, n + 1).
#[derive(Debug)]
pub(super) struct Written {
    pub(super) channel: u32,
    /// How many it has inserted.
    inserted: u64,
}

impl Written {
    pub(super) fn new(channel: u32) -> Self {
        Self { channel, inserted: 0 }
    }

    /// The next objects. Whatever comes of them, those after them are others.
    pub(super) fn next(&mut self, count: u32) -> Range<u64> {
        let first = self.inserted;
        self.inserted += u64::from(count);
        first..self.inserted
    }

    /// The object that was inserted last.
    pub(super) fn last(&self) -> Option<u64> {
        self.inserted.checked_sub(1)
    }

    /// The value of the object of this number, which a float keeps whole.
    pub(super) fn value(&self, number: u64) -> f32 {
        (number % (1 << 20)) as f32 + (self.channel % 2) as f32 / 2.0
    }
}

/// The figure of how long a server took by its own clock.
const SERVER_TIME: &str = "server_time_ns";

/// Answers: as many as objects.
pub(super) fn right(objects: u32) -> Outcome {
    Outcome { answers: objects, ..Outcome::default() }
}

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

/// A refusal is an answer.
pub(super) fn refused() -> Outcome {
    Outcome { answers: 1, refused: 1, ..Outcome::default() }
}
