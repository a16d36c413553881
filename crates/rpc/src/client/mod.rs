//! A client of own frames ([`native`]) and, with the feature `grpc`, one of any server of gRPC, for
//! people and scripts. Control plane.

#[cfg(feature = "grpc")]
mod address;
#[cfg(feature = "grpc")]
mod call;
#[cfg(feature = "grpc")]
mod connect;
#[cfg(feature = "grpc")]
mod metered;
pub mod native;
#[cfg(feature = "grpc")]
mod opening;
mod options;
#[cfg(feature = "grpc")]
mod schema;

pub use options::CallOptions;
#[cfg(feature = "grpc")]
pub(crate) use schema::{Files, add_files, first_missing, split};
#[cfg(feature = "grpc")]
pub use {
    address::{BadAddress, ServerAddress},
    call::{Receiver, Sender},
    connect::{Client, Encryption},
    schema::{Schema, SchemaError},
};
