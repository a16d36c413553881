//! Pieces of validity: what a channel shows over an interval, from one revision on.

/// The last time of all, and what an open interval ends at. Times are unsigned integers of 63 bits.
pub const MAX_TIME: u64 = i64::MAX as u64;

/// A change's number: the first one is 1. What is there at revision 0 is nothing.
pub type Revision = u64;

/// A part of an object's interval that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its first time.
    pub since: u64,
    /// The first time after it.
    pub until: u64,
    /// The object, by its place in the folder.
    pub object: u32,
    /// The revision that it is shown from.
    pub from: Revision,
}

/// What is shown at a time and around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Around {
    /// The piece; `None` in a gap.
    pub piece: Option<Piece>,
    /// The first time from which on nothing else is shown.
    pub since: u64,
    /// A revision from which on nothing else is shown.
    pub from: Revision,
}
