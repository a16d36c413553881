//! The locks of the store. `tests/interleavings.rs` runs the store with the locks of model checkers
//! instead, which try many orders of its threads' steps.

pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};
