//! The operations of a workload of tasks.

use load::{Kind, Operation};

/// The operation `ping`, as an index into the workload's operations.
pub const PING: usize = 0;
/// The operation `label`.
pub const LABEL: usize = 1;
/// The operation `query-label`.
pub const QUERY_LABEL: usize = 2;
/// The operation `meter`.
pub const METER: usize = 3;
/// The operation `query-meter`.
pub const QUERY_METER: usize = 4;
/// The operation `event`.
pub const EVENT: usize = 5;
/// The operation `sync-full`.
pub const SYNC_FULL: usize = 6;
/// The operation `get`.
pub const GET: usize = 7;
/// The operation `sync`.
pub const SYNC: usize = 8;
/// The operation `init-complete`.
pub const INIT_COMPLETE: usize = 9;
/// The operation `requeue`.
pub const REQUEUE: usize = 10;
/// The operation `child-label`.
pub const CHILD_LABEL: usize = 11;

/// All of them, in this order.
pub(super) static OPERATIONS: [Operation; 12] = [
    Operation::new("ping", Kind::Read, "Asks whether the server is there."),
    Operation::new("label", Kind::Write, "Gives a task's label its next value, as a user does."),
    Operation::new("query-label", Kind::Read, "Asks for the value of a task's label."),
    Operation::new("meter", Kind::Write, "Gives a task's meter its next value, as its job does."),
    Operation::new("query-meter", Kind::Read, "Asks for the value of a task's meter."),
    Operation::new("event", Kind::Write, "Sets a task's event, as its job does."),
    Operation::new(
        "sync-full",
        Kind::Read,
        "Takes the whole definition; the label of the drawn task has to be right in it.",
    ),
    Operation::new("get", Kind::Read, "The same, as a client that doesn't follow."),
    Operation::new(
        "sync",
        Kind::Read,
        "Takes what has changed since the last sync; the drawn task's label has to be right then.",
    ),
    Operation::new(
        "init-complete",
        Kind::Write,
        "Begins and ends a task, as its job does, and asks for its state: three requests.",
    ),
    Operation::new("requeue", Kind::Write, "Queues a task anew, and asks for its state."),
    Operation::new(
        "child-label",
        Kind::Write,
        "Gives a task's label its next value, as its job does.",
    ),
];
