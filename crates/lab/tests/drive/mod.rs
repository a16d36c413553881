//! The drive engine, black box: against toy services of which each has an awkward habit that real
//! ones have.

mod common;
mod engine;
mod preparing;
mod resent;
mod streams;
