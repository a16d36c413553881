//! The data plane: keeps connections loaded, checks every answer, and counts.
//!
//! A [`Session`] holds one target's connections through a round, as threads that wait for commands
//! between two runs of load. Within a run a thread allocates nothing per operation, takes no lock,
//! and reads the clock once per batch of answers. The dialect is called through a trait
//! object: two indirect calls per batch are lost in the cost of its system calls.
//!
//! There are three engines: the event loop (`worker`); `caller`, for calls that block; and `busy`,
//! for calls that are too short for the clock. All have the same checks and histograms. `program`
//! starts a program of the suite's that loads the target instead, and reads what it prints.
//! `live_stats` publishes, once a second, what a slice has shown so far.

mod arrivals;
pub mod batch;
mod busy;
mod caller;
mod clients;
mod config;
mod interval;
mod lasting;
mod live_stats;
mod once;
mod overhead;
mod plain;
pub mod program;
mod recorder;
mod result;
mod schedule;
mod session;
mod slot;
mod slowest;
mod streams;
mod stretches;
mod tally;
mod timed;
mod transport;
mod worker;

pub use arrivals::{Arrivals, Schedule, Spacing, Stretch};
pub(crate) use busy::{CASES, SampleTimer};
pub use clients::Clients;
pub use interval::{Figure, Interval};
pub use lasting::Waited;
pub use live_stats::{LiveStats, Second};
pub use once::once_main;
pub use overhead::overhead;
pub use result::{Counts, LoadResult, WrongAnswer};
pub use session::{DriveError, Session, SessionConfig};
pub use slowest::{Slow, Slowest};
pub use streams::StreamSum;
pub(crate) use streams::{add as add_streams, fairness};
pub(crate) use stretches::add_slice;
pub use stretches::{Outcomes, StretchSum};
pub use tally::{Counted, empty_histogram};
pub use timed::Pressure;
