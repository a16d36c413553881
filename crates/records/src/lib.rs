//! The `records` service: live records of typed values and big arrays, over EPICS pvAccess.
//!
//! [`protocol`] is bytes to types and back, [`model`] the records; neither does I/O.
//! [`server`] serves them with the loop of `wire`, [`client`] is the client of `loadline records`,
//! [`load`] the workload and dialect of the lab; [`SERVICE`] holds the two commands,
//! `serve records` and `records`. README.md lists the protocol's parts and limits.

#![deny(unsafe_code)]

pub mod client;
pub mod environment;
pub mod load;
pub mod model;
pub mod protocol;
pub mod server;

mod command;
mod serve;
mod shared;

use ::service::{Service, Subcommand};

/// The service's row.
pub static SERVICE: Service = Service {
    name: "records",
    doc: "Live records of typed values and big arrays, over EPICS pvAccess",
    is_hidden: false,
    serve: Subcommand::of::<serve::RecordsArgs>(),
    command: Some((
        "Talk to a pvAccess server: get, put, monitor, info, list, call",
        Subcommand::of::<command::RecordsArgs>(),
    )),
};
