//! HTTP/2 (RFC 9113) as a client under load speaks it, in cleartext by prior knowledge. Sans I/O.
//!
//! | file | what it holds |
//! |---|---|
//! | [`frame`] | the nine bytes before each frame, its kinds and flags, the names of errors |
//! | [`client`] | one connection: settings, streams, both flow-control windows |
//! | `head` | the header block of a request, which is five indices from the second one on |
//! | [`hpack`], `huffman` | header blocks (RFC 7541) as servers answer them |
//! | `ids` | which stream belongs to which tag |
//!
//! A library would do all this (`h2` does it for servers and for the lab's web client), but not
//! without a task and several allocations for each call. A load has to cost less than what it
//! loads. The client announces a header table of size 0, so that no header block depends on another
//! one: a block that is the same as the last right one means the same. Data plane: nothing is
//! allocated per operation after warm-up.
//!
//! | limit | value | beyond it |
//! |---|---|---|
//! | a frame | [`frame::MAX_FRAME_BYTES`] | the connection fails |
//! | a header block, and its fields decoded | [`client::MAX_BLOCK_BYTES`] | the connection fails |
//! | frames of a header block | [`client::MAX_CONTINUATIONS`] | the connection fails |
//! | unread bytes of a stream | [`client::STREAM_WINDOW`] | the server waits |
//! | unread bytes of all | [`client::CONNECTION_WINDOW`] | the server waits |
//! | unsent answers to pings and settings | [`client::MAX_OWED_BYTES`] | the connection fails |
//! | streams at once | what the server says | calls wait for their turn |

pub mod client;
pub mod frame;
mod head;
pub mod hpack;
mod huffman;
mod ids;

pub use client::{Client, Streams};
pub use head::{Asks, Path};
