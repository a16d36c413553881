//! The `cache` service: a multi-threaded key–value cache that speaks memcached's protocol.
//!
//! [`protocol`] is bytes to types and back, [`model`] the store; neither does I/O. [`server`] puts
//! them behind the loop of `wire`, [`client`] is the small client of `loadline cache`, and
//! [`load`] is the service as the lab sees it. README.md says what it speaks and its limits.

#![deny(unsafe_code)]

pub mod client;
pub mod load;
pub mod model;
pub mod protocol;
pub mod server;

mod sync;

/// The version that the service reports: that of the memcached whose answers it gives, and its own.
/// Clients read the number at its start (libmemcached refuses one that is 0 or none).
pub const VERSION: &str = concat!("1.6.18-loadline-", env!("CARGO_PKG_VERSION"));
