//! The functions that can be called: name, types, Rust function, a row each. They do no I/O: what a
//! function waits for it asks of its carrier (`call.rs`).

#[cfg(feature = "grpc")]
pub(crate) mod call;
#[cfg(feature = "grpc")]
pub(crate) mod function;
#[cfg(feature = "grpc")]
mod functions;

#[cfg(feature = "grpc")]
pub(crate) use functions::all;
