//! The `records` service: live records of typed values and big arrays, over EPICS pvAccess.
//!
//! [`protocol`] is bytes to types and back, [`model`] the records; neither does I/O.
//! [`server`] puts them behind the loop of `wire`, [`client`] is the client of `loadline records`,
//! [`load`] what the lab loads servers with. README.md says what is spoken and its limits.

#![deny(unsafe_code)]

pub mod client;
pub mod environment;
pub mod load;
pub mod model;
pub mod protocol;
pub mod server;
mod shared;

/// The version that the service says it has.
pub const VERSION: &str = concat!("loadline-", env!("CARGO_PKG_VERSION"));
