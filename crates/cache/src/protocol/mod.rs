//! memcached's protocols: bytes to types and back. They open no socket and know no clock.
//!
//! Server, client and load share this and nothing else.

pub mod base64;
pub mod binary;
pub mod datagram;
mod limits;
mod refusal;
pub mod resp;
pub mod text;

pub use limits::{MAX_KEY_BYTES, MAX_LINE_BYTES};
pub use refusal::Refusal;
