//! Segments: sealed data as bytes that never change (docs/design-segments.md has the format).
//!
//! A *block* holds what the head, or a tag of users, of one folder shows over a range of times: all
//! pieces that meet the range, those that began before it too, with their payload. A read at a time
//! therefore touches one block, however long intervals are. A segment of the *past* holds pieces
//! that are no longer shown. What was shown of an object until it was cut, as most are where each
//! object ends the one before, is not kept there: it follows from the piece that is left of it.
//!
//! Everything but the payload is checked when a segment is opened, the payload in chunks when it is
//! first read; what is damaged is named, and never returned.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

mod layout;
mod lent;
mod packed;
mod read;
mod write;

#[cfg(test)]
mod tests;

pub(super) use layout::SegmentKind;
pub use lent::Lent;
pub(super) use read::Chunks;
pub use read::Segment;
pub(super) use write::{Entry, SegmentOf, encode};

/// What is damaged: a segment that is missing or can't be opened, or bytes whose checksum is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}, byte {offset}: {why}")]
pub struct Damage {
    /// The file.
    pub file: String,
    /// Where what is wrong begins.
    pub offset: u64,
    /// What is wrong, and what to do.
    pub why: String,
    /// The number of the segment, where nothing is wrong but that its payload is not here: it can
    /// be fetched.
    pub elsewhere: Option<u64>,
}

impl Damage {
    /// Damage of the segment with this number.
    pub fn of(id: u64, offset: usize, why: impl fmt::Display) -> Self {
        let why = format!("{why}; restore all files from a backup");
        Self { file: segment_name(id), offset: offset as u64, why, elsewhere: None }
    }

    /// A segment that can't be opened, for a reason that may pass.
    pub fn unopened(id: u64, why: String) -> Self {
        Self { file: segment_name(id), offset: 0, why, elsewhere: None }
    }

    /// The payload of the segment with this number is not here.
    pub(super) fn elsewhere(id: u64) -> Self {
        let why = "its payload is not here; ask again".to_owned();
        Self { elsewhere: Some(id), ..Self::unopened(id, why) }
    }
}

/// The bytes of a segment.
#[derive(Debug)]
pub enum Source {
    /// All of them.
    Whole(Bytes),
    /// Those up to the end of its index, and the payload, which comes and goes.
    Index(Bytes, Arc<Lent>),
}

impl From<Bytes> for Source {
    fn from(bytes: Bytes) -> Self {
        Self::Whole(bytes)
    }
}

/// The bytes of a segment that say where its index ends.
pub const SEGMENT_HEAD: usize = layout::HEAD_BYTES;

/// The file of the segment with this number.
pub fn segment_name(id: u64) -> String {
    format!("{id:020}.segment")
}

/// The file of the index alone of the segment with this number.
pub fn index_name(id: u64) -> String {
    format!("{id:020}.index")
}

/// The number of the segment whose index has a file of this name; `None` where it has another one.
pub fn index_id(name: &str) -> Option<u64> {
    let id = name.strip_suffix(".index")?.parse().ok()?;
    (index_name(id) == name).then_some(id)
}

/// Where the index of a segment ends that has these bytes; `None` where they are none.
pub fn index_end(bytes: &[u8]) -> Option<u64> {
    layout::Head::decode(bytes).ok()?.0.index_end()
}

/// The number of the segment whose file has this name; `None` where the name is none of ours.
pub fn segment_id(name: &str) -> Option<u64> {
    let id = name.strip_suffix(".segment")?.parse().ok()?;
    (segment_name(id) == name).then_some(id)
}
