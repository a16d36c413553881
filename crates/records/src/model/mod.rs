//! Records: their values, the rules of changing them, and the versions that subscribers have seen.
//!
//! It does no I/O and knows no clock: a change brings its time along.

mod access;
mod declare;
mod draft;
mod error;
mod filter;
mod group;
mod membership;
pub mod normative;
mod record;
mod rules;
mod versions;

pub use access::{Access, Rights, Rule};
pub use declare::{Declarations, DeclareError, Declared, DeclaredGroup, declare};
pub use draft::Draft;
pub use error::{GroupError, PutError};
pub use filter::Filters;
pub use membership::Gate;
pub use record::{Notify, Offer, Record, Subscription};
pub use versions::{Cursor, Update};

use crate::protocol::Number;

/// A moment: seconds since 1970, and nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Seconds since the start of 1970, UTC.
    pub seconds: i64,
    /// Nanoseconds of that second.
    pub nanoseconds: i32,
}

/// A number as people write it.
pub(crate) fn written(number: Number) -> String {
    match number {
        Number::Whole(whole) => whole.to_string(),
        Number::Real(real) => real.to_string(),
    }
}
