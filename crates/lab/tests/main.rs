//! The crate's integration tests: one program, one module for each part.

mod drive;
mod observe;
