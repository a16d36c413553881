//! The base of every crate: quantities with their units, files that are read within a limit, those
//! that are replaced whole, and the allocator.

#![deny(unsafe_code)]

pub mod allocations;
mod file;
pub mod memory;
mod replace;
pub mod units;
mod words;

pub use file::{FileError, into_text, kind_name, no_wait, read_bytes, read_regular, read_text};
pub use replace::{NEW, replace_file};
pub use words::{grouped, many, many_are, of_many};
