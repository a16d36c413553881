//! The operations of a workload of records.

use load::{Kind, Operation};

/// The operation `get`, as an index into the workload's operations.
pub const GET: usize = 0;
/// The operation `put`.
pub const PUT: usize = 1;
/// The operation `monitor`.
pub const MONITOR: usize = 2;
/// The operation `rpc`.
pub const RPC: usize = 3;
/// The operation `connect`.
pub const CONNECT: usize = 4;

/// All of them, in this order.
pub(super) static OPERATIONS: [Operation; 5] = [
    Operation::new(
        "get",
        Kind::Read,
        "Reads a record, by an operation that is made once and executed again.",
    ),
    Operation::new(
        "put",
        Kind::Write,
        "Writes a record, by an operation that is made once and executed again.",
    ),
    Operation::new("monitor", Kind::Stream, "Subscribes to a record."),
    Operation::new(
        "rpc",
        Kind::Read,
        "Asks the server by a call which records it has; the drawn one has to be there.",
    ),
    Operation::new("connect", Kind::Read, "Makes a channel and destroys it."),
];
