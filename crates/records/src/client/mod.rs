//! A client that waits for its answers: for people, scripts, and tests of servers.
//!
//! [`find`](find::find) locates a channel's server; [`Client`] is one connection to a server, with
//! any number of channels and operations; a [`Session`] is one operation that outlives its
//! connection. Arrays are read straight into their place: memory that is warm from earlier ones,
//! of which a value's arrays are slices.

mod backoff;
mod connection;
mod error;
pub mod find;
mod many;
mod operation;
mod session;
pub mod shared;
mod stream;

pub use connection::{Channel, Client, Settings};
pub use error::ClientError;
pub use operation::{Operation, OperationKind, Update};
pub use session::{Event, Session};
