//! The binary protocol: a header of 24 bytes, extras, a key and a value, all of stated lengths.
//!
//! Numbers are big-endian. A request of a quiet kind is answered only when something is wrong, or
//! when it is a read that has found something.

mod answer;
mod commands;
mod header;

pub use answer::{Answered, Status, put_answer, put_error, put_head};
pub use commands::{Action, COMMANDS, KeyRule, Read, Row, row};
pub use header::{ANSWER, HEADER_BYTES, Header, REQUEST, long, word};
