//! The crate's integration tests: one program, one module for each subject.

mod makefile;
mod tidy;
