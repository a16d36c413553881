//! HTTP/1.1 as a client speaks it (RFC 9112): requests as bytes, and answers read as they come.
//!
//! Sans I/O and data plane: [`Responses`] holds no byte of an answer. A head is lent from where it
//! lies, a body piece by piece, so an answer of any length takes no memory, and reading allocates
//! nothing. The same code serves the load generator, the fuzzer and the golden tests.
//!
//! Limits, each a [`ProtocolError`](crate::ProtocolError) when it is passed: a head of
//! [`MOST_HEAD_BYTES`], a chunk's line of [`MOST_LINE_BYTES`], trailers of [`MOST_HEAD_BYTES`],
//! and [`MOST_INTERIM`] interim answers in a row. A body has none here: whoever takes its pieces
//! counts them.

mod head;
mod request;
mod responses;

pub use head::{Body, Fields, Head};
pub use request::{RequestHead, is_field_value, is_token};
pub use responses::{Ending, Part, Responses};

/// A head longer than this, its status line and empty line counted, is a fault.
pub const MOST_HEAD_BYTES: usize = 64 * 1024;

/// The line before a chunk, with its extensions, may be this long.
pub const MOST_LINE_BYTES: usize = 4 * 1024;

/// At most this many interim answers (1xx) may come before the final one.
pub const MOST_INTERIM: u32 = 64;
