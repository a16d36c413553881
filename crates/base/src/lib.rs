//! The base of every crate: quantities with their units, files that are read within a limit, and
//! those that are replaced whole.

#![deny(unsafe_code)]

mod file;
mod replace;
pub mod units;
mod words;

pub use file::{FileError, into_text, kind_name, no_wait, read_bytes, read_regular, read_text};
pub use replace::{NEW, replace_file};
pub use words::grouped;
