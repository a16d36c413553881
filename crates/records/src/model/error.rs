//! Puts that are refused, and records that make no group.

use std::sync::Arc;

use crate::protocol::MAX_FIELDS;

/// A put that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// The record can't be changed by clients.
    #[error("{0} can only be read")]
    ReadOnly(Arc<str>),
    /// The value is outside of the limits that the record has.
    #[error("{value} is outside of the limits of {record}, {low} to {high}")]
    OutOfLimits {
        /// Which record.
        record: Arc<str>,
        /// What was put.
        value: String,
        /// The lower limit.
        low: String,
        /// The upper limit.
        high: String,
    },
    /// There is no choice with that index.
    #[error("{record} has no choice {index}: it has {count}")]
    NoChoice {
        /// Which record.
        record: Arc<str>,
        /// What was put.
        index: i32,
        /// How many choices there are.
        count: usize,
    },
    /// An array is too long.
    #[error("{bytes} bytes are more than the {most} that {record} may hold")]
    TooLong {
        /// Which record.
        record: Arc<str>,
        /// What was put.
        bytes: usize,
        /// What it may hold.
        most: usize,
    },
    /// A part of an array is put with too few elements for it.
    #[error("the part of {record} has {count} elements, and {sent} came")]
    TooFew {
        /// Which record.
        record: Arc<str>,
        /// How many elements the part has.
        count: usize,
        /// How many were put.
        sent: usize,
    },
    /// The record has been destroyed.
    #[error("{0} is no more")]
    Gone(Arc<str>),
}

/// Records that make no group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// One of them is a group.
    #[error("{0} is a group itself: name its records")]
    Nested(Arc<str>),
    /// They have too many fields for one type.
    #[error("its records have {0} fields in all, and a type has at most {MAX_FIELDS}")]
    TooWide(usize),
    /// One of them is nested as deep as a type may be.
    #[error("{0} is nested too deep to be a part of another record")]
    TooDeep(Arc<str>),
}
