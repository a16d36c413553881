//! The `conditions` service: values with intervals of validity, by folder, channel and tag.
//!
//! [`model`] holds folders, objects and tags, and answers of any revision; [`protocol`] is the
//! interface over HTTP as types; neither does I/O. [`server`] serves them from a data directory,
//! [`client`] asks, [`load`] is the workload of the lab; [`SERVICE`] holds the two commands,
//! `serve conditions` and `conditions`. README.md lists what it does and its limits.

#![deny(unsafe_code)]

pub mod client;
pub mod load;
pub mod model;
pub mod nopayload;
pub mod protocol;
pub mod server;

mod command;
mod serve;

use ::service::{Service, Subcommand};

/// The service's row.
pub static SERVICE: Service = Service {
    name: server::NAME,
    doc: "Values with intervals of validity, by folder, channel and tag, over HTTP",
    is_hidden: false,
    serve: Subcommand::of::<serve::ConditionsArgs>(),
    command: Some((
        "Talk to a server of conditions: create, insert, get, browse, slice, tag",
        Subcommand::of::<command::ConditionsArgs>(),
    )),
};
