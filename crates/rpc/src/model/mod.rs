//! The functions that can be called: name, types, Rust function, a row each. They do no I/O: what a
//! function waits for it asks of its carrier (`call.rs`).

// What only functions of gRPC's services ask for is here without them, too.
#[cfg_attr(not(feature = "grpc"), allow(dead_code))]
pub(crate) mod call;
#[cfg_attr(not(feature = "grpc"), allow(dead_code))]
pub(crate) mod function;
mod functions;

pub(crate) use functions::all;
