//! Own frames at the server. [`session`] is one connection without its socket, so that a carrier
//! within the process ([`local`]) drives the same code; [`converse()`] drives it over a stream,
//! [`standard`] over standard input and output.

mod converse;
mod local;
mod methods;
mod session;
mod shared_memory;
mod standard;
mod waiting;

pub(super) use converse::converse;
pub(crate) use local::Local;
pub(super) use methods::Methods;
pub(super) use shared_memory::serve_shared;
pub use standard::serve_standard;
