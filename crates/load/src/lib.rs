//! The interface of a load: between services, which know what their operations mean, and the lab,
//! which knows when they are sent.
//!
//! | file | what it holds |
//! |---|---|
//! | `service`, `speaks` | the row by which a service makes itself known, and its dialects |
//! | `workload`, `operation` | a service's workload: operations, preparation, and what slots draw |
//! | `dialect`, `caller`, `busy` | the client side: bytes, calls that block, calls of nanoseconds |
//! | `part`, `scenario` | what a suite's `[workload]` says, the service's part and everyone's |
//! | `mix`, `stream` | which operation comes next, and the operations of one slot |
//! | `counters` | how a service is asked for its own counters |
//! | `advisor` | what a target says of its statements and waits, and what would help |
//! | [`tls`] | encryption below a dialect, and whom it trusts, with the feature `tls` |
//! | [`kv`] | keys, values and versions, for services that keep values by key |
//! | [`null`] | a service with nothing in it |
//!
//! Nothing here opens a socket, and nothing but certificates reads a file or a clock. What is
//! called per operation ([`Stream`], [`Dialect`], [`kv::Oracle`], [`Events`]) allocates nothing
//! after warm-up.

mod advisor;
mod busy;
mod caller;
mod counters;
mod dialect;
pub mod kv;
mod mix;
pub mod null;
mod operation;
mod part;
mod scenario;
mod service;
mod speaks;
mod stream;
#[cfg(feature = "tls")]
pub mod tls;
mod workload;

pub use advisor::{Advice, Advisor, Conclusion, MAX_STATEMENTS, Statement};
pub use busy::Busy;
pub use caller::{Caller, Cost, Outcome, Stopwatch, Took};
pub use counters::{Counter, CounterKind, Counters, MAX_COUNTERS, MAX_COUNTERS_BYTES};
pub use dialect::{Dialect, Done, Events, Finding, Tag, Update};
pub use mix::{Mix, Ops, Random, scramble};
pub use operation::{Kind, Operation};
pub use part::{Part, SpecError, read_table};
pub use scenario::{Scenario, WorkloadSpec};
pub use service::{ReadWorkload, Service};
pub use speaks::{DialectRow, Reach, Speaks};
pub use stream::Stream;
pub use workload::{Draw, Op, Preparation, UniformDraw, Workload};
