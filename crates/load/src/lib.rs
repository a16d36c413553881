//! What a load is: operations, mixes, keys, reproducible values and what a right answer is.
//!
//! The same seeded stream of operations goes to every target; a [`Dialect`] says them in one
//! protocol and turns the answers into [`Events`]. Nothing here opens a socket or reads a clock.
//! The data-plane parts ([`Stream`], [`Oracle`], [`Keys`], [`Values`], [`Events`]) allocate nothing
//! per operation after warm-up.

mod caller;
mod counters;
mod data;
mod dialect;
pub mod http;
mod in_process;
mod keys;
pub mod null;
mod oracle;
mod sampler;
mod service;
mod spec;
mod stream;
mod values;

pub use base::{FileError, read_bytes, read_text, units};
pub use caller::{Caller, Cost, Outcome};
pub use counters::{Counter, CounterKind, Counters, MOST_COUNTERS, MOST_COUNTERS_BYTES};
pub use data::{DistributionName, KeysSpec, LogNormalSpec, ValueSpec, WeightedSpec};
pub use dialect::{Dialect, Done, Events, Finding, Op, Tag, Update};
pub use in_process::InProcess;
pub use keys::Keys;
pub use oracle::{Floor, Mismatch, Oracle, Write};
pub use sampler::{Distribution, Popularity, Sampler};
pub use service::{
    Client, DialectRow, Kind, MakeCaller, MakeDialect, MakeInProcess, Operation, Service,
};
pub use spec::{Misses, SpecError, Workload, WorkloadSpec, WrittenBy};
pub use stream::Stream;
pub use values::{Sizes, Values};
