//! The crate's integration tests: one program, one module for each subject.

mod docs;
mod fixture;
mod hlog;
#[cfg(feature = "parquet")]
mod parquet;
mod reads_and_writes;
mod upkeep;
