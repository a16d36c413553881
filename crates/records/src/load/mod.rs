//! The service as the lab sees it: its operations and the ways to say them.
//!
//! Values are 64-bit numbers, or arrays of them whose elements are all alike. They count: a write
//! by the lab gives its record the next version, and a target that writes by itself counts up by
//! one. So a value that is stale shows, and what is left out can be counted.

mod elements;
mod incoming;
mod layout;
mod operations;
mod pvaccess;

pub use pvaccess::{PvAccess, Updates};

use load::{Client, DialectRow, Kind, Operation, Service};

/// The operation `get`, as an index into [`SERVICE`]'s operations.
pub const GET: usize = 0;
/// The operation `put`.
pub const PUT: usize = 1;
/// The operation `monitor`.
pub const MONITOR: usize = 2;
/// The operation `rpc`.
pub const RPC: usize = 3;
/// The operation `connect`.
pub const CONNECT: usize = 4;

/// The service.
pub static SERVICE: Service = Service {
    name: "records",
    doc: "Live records of typed values and big arrays, over EPICS pvAccess.",
    operations: &[
        Operation {
            name: "get",
            kind: Kind::Read,
            doc: "Reads a record, by an operation that is made once and executed again.",
        },
        Operation {
            name: "put",
            kind: Kind::Write,
            doc: "Writes a record, by an operation that is made once and executed again.",
        },
        Operation { name: "monitor", kind: Kind::Stream, doc: "Subscribes to a record." },
        Operation {
            name: "rpc",
            kind: Kind::Read,
            doc: "Asks the server by a call which records it has; the drawn one has to be there.",
        },
        Operation { name: "connect", kind: Kind::Read, doc: "Makes a channel and destroys it." },
    ],
    dialects: &[
        DialectRow::new(
            "pvaccess",
            "pvAccess over TCP; monitors with the usual queue of 4.",
            Client::Stream(|oracle| Box::new(PvAccess::new(oracle, Updates::Plain))),
        ),
        DialectRow::new(
            "pvaccess-pipeline",
            "The same with monitors whose updates are acknowledged.",
            Client::Stream(|oracle| Box::new(PvAccess::new(oracle, Updates::Acknowledged))),
        ),
        DialectRow::new(
            "pvaccess-shared",
            "The same with monitors that look at arrays in memory which the server shares: at both \
             ends and once at each page.",
            Client::Stream(|oracle| Box::new(PvAccess::new(oracle, Updates::Shared))),
        ),
    ],
    longest_key_bytes: crate::protocol::MOST_NAME_BYTES,
    longest_value_bytes: 0,
    prepares: true,
};
