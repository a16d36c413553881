//! What changes the state, as values: what a journal holds.

use serde::{Deserialize, Serialize};

use super::moment::{Interval, Moment};

/// An interval that is added to a payload list by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    /// Where its payload is.
    pub url: String,
    /// What its payload's bytes sum up to, such as `md5:…`.
    pub checksum: String,
    /// Where it is valid.
    pub interval: Interval,
    /// The payload list.
    pub list: String,
}

/// A change. New ones are added at the end: a journal knows them by their place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Makes a status that global tags may have.
    CreateStatus(String),
    /// Makes a global tag.
    CreateTag {
        /// Its name.
        name: String,
        /// Who made it.
        author: Option<String>,
        /// Its status.
        status: String,
    },
    /// Gives a global tag another status.
    SetStatus {
        /// The tag.
        tag: String,
        /// Its new status.
        status: String,
    },
    /// Copies a global tag with its lists and their intervals into an unlocked one.
    CloneTag {
        /// The tag that is copied.
        from: String,
        /// The new one.
        to: String,
    },
    /// Deletes a global tag with its lists and their intervals.
    DeleteTag(String),
    /// Makes a payload type.
    CreateType(String),
    /// Deletes a payload type that no list has.
    DeleteType(String),
    /// Makes a payload list of a type, which names it.
    CreateList(String),
    /// Attaches a payload list to a global tag in place of the one of its type.
    AttachList {
        /// The list.
        list: String,
        /// The tag.
        tag: String,
    },
    /// Deletes a payload list that is empty.
    DeleteList(String),
    /// Makes an interval that belongs to no list.
    CreateIov {
        /// Where its payload is.
        url: String,
        /// What its payload's bytes sum up to.
        checksum: String,
        /// Where it is valid.
        interval: Interval,
    },
    /// Attaches an interval to a list: those that it overlaps make room, unless the list's tag is
    /// locked.
    AttachIov {
        /// The list.
        list: String,
        /// The interval, by its number.
        iov: u32,
    },
    /// Adds intervals to lists beside what is there.
    AddIovs(Vec<Added>),
    /// Deletes the interval of a global tag and a type that is valid exactly there.
    DeleteIov {
        /// The tag.
        tag: String,
        /// The payload type.
        payload_type: String,
        /// Where it is valid.
        interval: Interval,
    },
    /// Names a file, whose bytes are kept already.
    PutFile {
        /// Its key.
        key: String,
        /// The SHA-256 of its bytes.
        sha256: [u8; 32],
        /// How many bytes it has.
        size: u64,
    },
}

/// What a change was checked against: two changes that touch nothing in common can be applied as
/// they were checked, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touches {
    /// Everything.
    All,
    /// These.
    Only(Vec<Touched>),
}

/// A part of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Touched {
    /// A payload list.
    List(u32),
    /// An interval.
    Iov(u32),
}

/// Where an open interval that starts at a moment is valid.
pub fn open_from(start: Moment) -> Interval {
    Interval { start, end: Moment::OPEN }
}
