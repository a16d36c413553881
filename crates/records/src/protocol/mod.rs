//! pvAccess: bytes to types and back. It opens no socket and knows no clock.
//!
//! The authority is `pv-access/Protocol-Messages.md`, `Protocol-Encoding.md` and
//! `Protocol-Operation-Monitor.md` of epics-docs, and where they are wrong or silent, the bytes
//! that pvxs sends.
//!
//! - The way in: [`Frames`] cuts a stream into messages and puts segments together; a [`Reader`]
//!   reads a payload; [`messages`] are the payloads.
//! - The way out: [`message`] writes a whole message into an [`Output`](wire::Output) or bytes;
//!   [`divide`] makes segments of large ones.
//! - The data: [`Type`], [`Item`] (a value with its type), [`Value`], [`Bits`], [`Request`].

mod bits;
mod data;
mod describe;
mod frames;
mod header;
mod location;
pub mod messages;
mod pool;
mod reader;
mod request;
mod segments;
mod status;
mod types;
mod value;
mod writer;

pub use bits::Bits;
pub use describe::Registry;
pub use frames::{Body, Frame, Frames, Unfinished};
pub use header::{Command, HEADER_BYTES, Header, Segment, Sender, VERSION, control};
pub use location::{
    ArrayLocation, SHARED_OPTION, elements, located_scalar, located_type, unlocated,
};
pub use pool::{Buffer, Pool};
pub use reader::{Order, Reader};
pub use request::{Options, Request, RequestError, Selection};
pub use segments::{MIN_SEGMENT_BYTES, divide};
pub use status::{Severity, Status};
pub use types::{Field, Length, Scalar, Structure, Type, Union};
pub use value::{Array, Chosen, Item, Number, Value, zeros};
pub use writer::{Sink, Writer, message};

/// A channel's name has at least one byte and at most this many.
pub const MAX_NAME_BYTES: usize = 500;

/// A type is nested at most this deep; pvxs has the same limit.
pub const MAX_DEPTH: usize = 20;

/// A value is nested at most this deep, those inside of values of any type too.
pub const MAX_VALUE_DEPTH: usize = 2 * MAX_DEPTH;

/// A type has at most this many fields in all.
pub const MAX_FIELDS: usize = 65_536;

/// All types that one side of a connection may have described have at most this many fields.
pub const MAX_REGISTERED_FIELDS: usize = 1 << 20;

/// At most this many values, those in an array of numbers not counted, come with one message.
pub const MAX_VALUES: usize = 1 << 22;

/// The default limit of one message, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 1 << 30;
