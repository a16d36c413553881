//! The `rpc` service: typed messages and remote calls over gRPC and own frames.
//!
//! [`protocol`] is the bytes of messages and frames, [`model`] the functions that can be called;
//! neither does I/O. [`server`] serves them, [`client`] calls them over [`carriers`], and those of
//! any server of gRPC; [`codecs`] turns messages into bytes in several ways, [`load`] is the
//! workload and dialect of the lab; [`SERVICE`] holds the two commands, `serve rpc` and `rpc`.
//! README.md lists what is spoken, what isn't, and the limits.
//!
//! gRPC, served and called, and codecs are there with the feature `grpc`; own frames always are.

#![deny(unsafe_code)]

pub mod carriers;
pub mod client;
pub mod codecs;
mod duplex;
pub mod load;
pub mod model;
mod mpi;
pub mod protocol;
pub mod server;
pub mod shm;

mod command;
#[cfg(not(feature = "grpc"))]
mod left_out;
mod parts;
mod serve;
pub mod waiting;
pub mod writes;

use ::service::{Service, Subcommand};

/// The service's row.
pub static SERVICE: Service = Service {
    name: serve::NAME,
    doc: "Typed messages and remote calls, over gRPC and own frames",
    is_hidden: false,
    serve: Subcommand::of::<serve::RpcArgs>(),
    command: Some((
        "Call functions of any server of gRPC: call, list, describe, health; and ping",
        Subcommand::of::<command::RpcArgs>(),
    )),
};
