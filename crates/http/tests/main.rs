//! The crate's integration tests: one program.

mod common;
mod http2;
mod load;
mod protocol;
mod tls;
