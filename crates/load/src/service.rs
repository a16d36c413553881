//! How a service presents itself to the lab: one row each, registered in one table by the command.

use std::sync::Arc;

use wire::{Address, ProtocolError};

use crate::{Caller, Counters, Dialect, InProcess, Oracle};

/// What an operation does to the state behind its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads one key.
    Read,
    /// Reads several keys with one request.
    ReadMany,
    /// Writes a new version of one key.
    Write,
    /// Removes one key: a miss is a right answer afterwards.
    Remove,
    /// Subscribes to one key: updates come until the stream is cancelled.
    Stream,
}

/// One operation of a service's workload.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Its name in suites, e.g. `get`.
    pub name: &'static str,
    /// What it does.
    pub kind: Kind,
    /// One sentence for `--help` and error messages.
    pub doc: &'static str,
}

/// Makes the client side of one connection.
pub type MakeDialect = fn(&Arc<Oracle>) -> Box<dyn Dialect>;

/// Makes the client side of one slot, connected to the target at this address.
pub type MakeCaller = fn(&Address, &Arc<Oracle>) -> Result<Box<dyn Caller>, ProtocolError>;

/// Makes one implementation of operations without a socket.
pub type MakeInProcess = fn(&Arc<Oracle>) -> Box<dyn InProcess>;

/// How a dialect reaches its target.
#[derive(Clone, Copy)]
pub enum Client {
    /// Over a stream that the engine owns: TCP or a Unix socket.
    Stream(MakeDialect),
    /// Over datagrams that the engine sends: every request is one datagram, and so is every piece
    /// of an answer.
    Datagrams(MakeDialect),
    /// By calls that block: what exists only as a library or a program. Each slot is a thread.
    Calls(MakeCaller),
    /// Not at all: it is evaluated in a process of its own.
    InProcess(MakeInProcess),
}

/// One way to say a service's operations.
#[derive(Clone, Copy)]
pub struct DialectRow {
    /// Its name in `speaks = "…"`.
    pub name: &'static str,
    /// One sentence for `--help` and error messages.
    pub doc: &'static str,
    /// How it reaches its target.
    pub client: Client,
    /// How a service that speaks it is asked for its own counters, where the protocol has words
    /// for that.
    pub counters: Option<&'static dyn Counters>,
}

impl DialectRow {
    /// A dialect without words for a service's own counters.
    pub const fn new(name: &'static str, doc: &'static str, client: Client) -> Self {
        Self { name, doc, client, counters: None }
    }
}

impl std::fmt::Debug for DialectRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// A service as the lab sees it.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// Its name in `service = "…"` and `serve = "…"`.
    pub name: &'static str,
    /// One sentence for `--help` and error messages.
    pub doc: &'static str,
    /// Its operations; [`Op::operation`](crate::Op) is an index into them. A service without any
    /// gets them from the suite, which describes them as `[[workload.request]]`.
    pub operations: &'static [Operation],
    /// Its dialects; the first is the one its own server speaks.
    pub dialects: &'static [DialectRow],
    /// The longest key it takes, in bytes.
    pub longest_key_bytes: usize,
    /// The longest value it takes, in bytes. With 0 its values are numbers or arrays of them,
    /// whose elements `size` counts.
    pub longest_value_bytes: usize,
    /// Whether every key is written before it is asked for. A workload of a service that prepares
    /// nothing may do without keys and values.
    pub prepares: bool,
}

impl Service {
    /// The dialect called `name`.
    pub fn dialect(&self, name: &str) -> Option<&'static DialectRow> {
        self.dialects.iter().find(|row| row.name == name)
    }

    /// The index of the operation called `name`.
    pub fn operation(&self, name: &str) -> Option<usize> {
        self.operations.iter().position(|operation| operation.name == name)
    }
}
