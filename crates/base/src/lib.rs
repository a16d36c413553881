//! The base of every crate: quantities with their units, and files that are read within a limit.

#![deny(unsafe_code)]

mod file;
pub mod units;
mod words;

pub use file::{FileError, into_text, kind_name, no_wait, read_bytes, read_regular, read_text};
pub use words::grouped;
