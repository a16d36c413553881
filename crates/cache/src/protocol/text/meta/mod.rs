//! The meta commands: one key, and flags of one letter that modify the command and select the
//! fields of the answer.

mod answer;
mod flags;
mod get;
mod remove;
mod set;
mod sum;

pub use answer::{MetaFacts, put_echoes, put_facts, put_stored, put_summed};
pub use flags::{Meta, MetaFlag};
pub use set::MetaMode;

pub(super) use get::{ME, MG, MN};
pub(super) use remove::MD;
pub(super) use set::MS;
pub(super) use sum::MA;
