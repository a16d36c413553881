//! The locks of the store. `tests/interleavings.rs` carries the store out with others in their
//! place, which try many orders of its threads' steps.

pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};
