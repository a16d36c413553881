//! Own frames at the server. [`session`] is one connection without its socket, so that a carrier
//! within the process ([`local`]) drives the same code; [`converse()`] drives it over a stream,
//! [`standard`] over standard input and output.

mod converse;
mod duplex;
mod local;
mod methods;
mod session;
mod standard;
mod waiting;
mod when;

pub(super) use converse::converse;
pub(crate) use duplex::serve_rank;
pub(super) use duplex::serve_shared;
pub(crate) use local::Local;
pub(crate) use methods::Methods;
pub use standard::serve_standard;
