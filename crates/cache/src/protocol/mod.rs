//! memcached's protocols: bytes to types and back. They open no socket and know no clock.
//!
//! Server, client and load share this and nothing else.

pub mod base64;
pub mod binary;
pub mod datagram;
mod refusal;
pub mod resp;
pub mod text;

pub use refusal::Refusal;

/// A key has at least one byte and at most this many.
pub const MOST_KEY_BYTES: usize = 250;

/// A command line is at most this long, but for the keys of `get`, which may go on for ever.
pub const MOST_LINE_BYTES: usize = 2048;
