//! The data plane: keeps connections loaded, checks every answer, and counts.
//!
//! A [`Session`] holds one target's connections through a round, as threads that wait for orders
//! between two pieces of work. Within a piece a thread allocates nothing per operation, takes no
//! lock, and reads the clock once per batch of answers. The dialect is called through a trait
//! object: two indirect calls per batch are lost in the cost of its system calls.
//!
//! `in_process` evaluates what needs no socket; `program` has a program of the suite's load the
//! target instead, and reads what it says.
//! `seconds` tells who looks on, once a second, what a slice has shown so far.
//! `caller` is the second engine, for what blocks: the same schedule, checks and histograms.

pub mod batch;
mod caller;
mod in_process;
mod once;
mod overhead;
pub mod program;
mod record;
mod schedule;
mod seconds;
mod session;
mod slot;
mod streams;
mod tally;
mod timed;
mod transport;
mod worker;

pub use in_process::{Assignment, CountAllocations, in_process_main};
pub use once::once_main;
pub use overhead::overhead;
pub use record::{Counts, Figure, Found, Interval, Piece, Slow, Slowest, empty_histogram};
pub use seconds::{Second, Seconds};
pub use session::{DriveError, Load, Session};
pub use streams::StreamSum;
pub(crate) use streams::{add as add_streams, fairness};
pub use tally::Counted;
pub use timed::Pressure;
