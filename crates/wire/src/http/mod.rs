//! The client side of HTTP/1.1 (RFC 9112): requests as bytes, responses parsed as they arrive.
//!
//! Sans I/O and data plane: [`Responses`] holds no byte of a response. A head is borrowed from the
//! received bytes, a body comes in pieces, so a response of any length takes no memory, and
//! parsing allocates nothing. The load generator, the fuzzer and the golden tests share this code.
//!
//! Limits, each a [`ProtocolError`](crate::ProtocolError) when exceeded: a head of
//! [`MAX_HEAD_BYTES`], a chunk's line of [`MAX_LINE_BYTES`], trailers of [`MAX_HEAD_BYTES`],
//! and [`MAX_INTERIM`] interim responses in a row. A body has no limit here: its consumer counts
//! the pieces.

mod head;
mod request;
mod responses;

pub use head::{Body, Fields, Head};
pub use request::{RequestHead, is_field_value, is_token};
pub use responses::{Ending, Part, Responses};

/// The largest head, status line and empty line included.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// The longest line before a chunk, extensions included.
pub const MAX_LINE_BYTES: usize = 4 * 1024;

/// The most interim responses (1xx) before a final one.
pub const MAX_INTERIM: u32 = 64;
