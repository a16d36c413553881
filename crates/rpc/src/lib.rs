//! The `rpc` service: typed messages and remote calls over gRPC, and why a call takes its time.
//!
//! [`protocol`] is the bytes of messages and frames, [`model`] the functions that can be called;
//! neither does I/O. [`server`] serves them, [`load`] is the workload and dialect of the lab.

#![deny(unsafe_code)]

pub mod load;
pub mod model;
pub mod protocol;
pub mod server;
