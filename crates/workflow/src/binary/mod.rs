//! A tree, or a part of one, as compact binary: what clients of this program's own protocol take
//! in place of text.
//!
//! A row of bytes without a table in front, written and read in one pass. Numbers are LEB128
//! (signed ones in zigzag), so that machines of either byte order write and read the same. A shared
//! text, and an expression, is a number: 0 for a new one, which follows and gets the next number,
//! else that of one before. Nodes come in the order of printing, each with the number of its
//! children. Nothing of a state is lost: times have their microseconds, values their blanks.
//!
//! | bytes | what |
//! |---|---|
//! | `LWT1` | the format |
//! | a number | nodes, so that room is made once |
//! | the server | change numbers, state, variables, externs, history, its own flags and state |
//! | each node | kind and state, which fields follow, the name, the fields, attributes by rank |

mod attributes;
mod bytes;
mod tree;

pub use bytes::BadBinary;
pub(crate) use tree::write_apart;
pub use tree::{Read, is_binary, read, write};
