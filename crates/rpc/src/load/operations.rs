//! The operations of a workload of calls.

use load::{Kind, Operation};

/// The operation `unary`, as an index into the workload's operations.
pub const UNARY: usize = 0;
/// The operation `add`.
pub const ADD: usize = 1;
/// The operation `server-stream`.
pub const SERVER_STREAM: usize = 2;
/// The operation `client-stream`.
pub const CLIENT_STREAM: usize = 3;
/// The operation `bidi`.
pub const BIDI: usize = 4;
/// The operation `call`, whose method a suite names.
pub const CALL: usize = 5;

/// All of them, in this order.
pub(super) static OPERATIONS: [Operation; 6] = [
    Operation::new(
        "unary",
        Kind::Read,
        "Calls Table/Echo with a Sample whose blob has `bytes` bytes, and wants the same back.",
    ),
    Operation::new(
        "add",
        Kind::Write,
        "Calls Table/Add with a number; the total has to be that of all calls before it.",
    ),
    Operation::new(
        "server-stream",
        Kind::Read,
        "Calls TestService/StreamingOutputCall, which answers with `messages` messages.",
    ),
    Operation::new(
        "client-stream",
        Kind::Read,
        "Calls TestService/StreamingInputCall with `messages` messages; their size comes back.",
    ),
    Operation::new(
        "bidi",
        Kind::Read,
        "Calls TestService/FullDuplexCall: `messages` messages, each once the last is answered.",
    ),
    Operation::new(
        "call",
        Kind::Read,
        "Calls `method`, of any server, with messages that are stated or made of its schema.",
    ),
];

/// The method that each operation but the last calls, in the same order.
pub(super) static PATHS: [&str; 5] = [
    "/loadline.rpc.v1.Table/Echo",
    "/loadline.rpc.v1.Table/Add",
    "/grpc.testing.TestService/StreamingOutputCall",
    "/grpc.testing.TestService/StreamingInputCall",
    "/grpc.testing.TestService/FullDuplexCall",
];
