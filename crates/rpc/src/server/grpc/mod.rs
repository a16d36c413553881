//! gRPC: a connection of HTTP/2 is one task (`connection.rs`), which reads all requests that have
//! come, runs those functions that don't wait, and writes all answers with one call. Calls that
//! wait are tasks of their own (`drive.rs`).

mod admit;
mod answer;
mod authority;
mod connection;
mod drive;
mod end;
mod gate;
mod pipe;
mod watch;

pub(super) use connection::converse;

/// The answer to what speaks HTTP/1.1.
pub(super) const HTTP1: &str = "this is a server of gRPC, which is spoken over HTTP/2 by prior \
                                knowledge: use a client of gRPC, such as `loadline rpc call`\n";
