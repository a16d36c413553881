//! Pieces of validity: what a channel shows over an interval, from one revision on.

/// The last time of all, and what an open interval ends at. Times are unsigned integers of 63 bits.
pub const MAX_TIME: u64 = i64::MAX as u64;

/// A change's number: the first one is 1. What is there at revision 0 is nothing.
pub type Revision = u64;

/// What is asked: a revision, of the head or of a tag of users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The revision.
    pub revision: Revision,
    /// The tag, by the revision that made it.
    pub user_tag: Option<Revision>,
}

/// In place of an object: nothing is shown, whatever is sealed.
pub(super) const NOTHING: u32 = u32::MAX;

/// An object as it was inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inserted {
    pub(super) since: u64,
    pub(super) until: u64,
    pub(super) revision: Revision,
}

/// A part of an object's interval that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its first time.
    pub since: u64,
    /// The first time after it.
    pub until: u64,
    /// The object, by its place in the folder, or `NOTHING`.
    pub object: u32,
    /// The revision that it is shown from.
    pub from: Revision,
}

/// From where on a channel shows at a time what it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Around {
    /// The first time from which on nothing else is shown.
    pub(super) since: u64,
    /// A time up to which nothing else is shown at the revision that is asked.
    pub(super) until: u64,
    /// A revision from which on nothing else is shown.
    pub(super) from: Revision,
}
