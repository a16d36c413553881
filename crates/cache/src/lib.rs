//! The `cache` service: a multi-threaded key–value cache that speaks memcached's protocol.
//!
//! [`protocol`] is bytes to types and back, [`model`] the store; neither does I/O. [`server`] puts
//! them behind the loop of `wire`, [`client`] is the small client of `loadline cache`, and
//! [`load`] is the service as the lab sees it. [`SERVICE`] holds its two commands, `serve cache`
//! and `cache`. README.md says what it speaks and its limits.

#![deny(unsafe_code)]

pub mod client;
pub mod load;
pub mod model;
pub mod protocol;
pub mod server;

mod command;
mod serve;

mod sync;

use service::{Service, Subcommand};

/// The service's row.
pub static SERVICE: Service = Service {
    name: "cache",
    doc: "A key-value cache that speaks memcached's protocol",
    is_hidden: false,
    serve: Subcommand::of::<serve::CacheArgs>(),
    command: Some((
        "Talk to a cache: get, set, delete, touch, incr, stats, dump, watch, …",
        Subcommand::of::<command::CacheArgs>(),
    )),
};

/// The version that the service reports: that of the memcached whose answers it gives, and its own.
/// Clients read the number at its start (libmemcached refuses one that is 0 or none).
pub const VERSION: &str = concat!("1.6.18-loadline-", env!("CARGO_PKG_VERSION"));
