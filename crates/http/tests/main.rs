//! The crate's integration tests: one program.

mod load;
mod protocol;
