//! A client of any server of gRPC, and one of own frames ([`native`]), for people and scripts.
//! Control plane.

mod address;
mod call;
mod connect;
pub mod native;
mod opening;
mod schema;

pub use address::{BadAddress, ServerAddress};
pub use call::{CallOptions, Receiver, Sender};
pub use connect::{Client, Encryption};
pub(crate) use schema::{Files, add_files, first_missing, split};
pub use schema::{Schema, SchemaError};
