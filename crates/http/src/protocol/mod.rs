//! The client side of HTTP/1.1 (RFC 9112): requests as bytes, responses parsed as they arrive.
//!
//! Sans I/O and data plane: [`Responses`] holds no byte of a response. A head is borrowed from the
//! received bytes, a body comes in pieces, so a response of any length takes no memory, and
//! parsing allocates nothing. The load generator, the fuzzer and the golden tests share this code.
//!
//! Limits, each a [`ProtocolError`](wire::ProtocolError) when exceeded: a head of
//! [`MAX_HEAD_BYTES`], a chunk's line of [`MAX_LINE_BYTES`], trailers of [`MAX_HEAD_BYTES`],
//! and [`MAX_INTERIM`] interim responses in a row. A body has no limit here: its consumer counts
//! the pieces.

mod head;
mod limits;
mod request;
mod responses;

pub use head::{Body, Fields, Head};
pub use limits::{MAX_HEAD_BYTES, MAX_INTERIM, MAX_LINE_BYTES};
pub use request::{RequestHead, is_field_value, is_token};
pub use responses::{Ending, Part, Responses};
