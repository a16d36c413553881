//! The command from outside, in one program: what it does, the cache, the records, and what
//! services have to bear.

#![expect(clippy::duplicate_mod, reason = "each example has the lab that they share")]

mod cache;
mod cli;
mod records;
mod served;
mod soak;

use cli::{common, ledgers};
