//! What slots do.

use load::{Kind, Operation};

/// The operations, as [`load::Op::operation`] numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Do {
    Slice,
    ReadFolders,
    Insert,
    InsertBulk,
    Find,
    Job,
    Append,
    LookUp,
    Browse,
    Load,
}

/// [`load::Op::operation`] is an index into them.
pub(super) static OPERATIONS: [Operation; 10] = [
    Operation::new("slice", Kind::Read, "Reads what all folders show at a time, at once."),
    Operation::new("read-folders", Kind::Read, "Reads the same with a request for each folder."),
    Operation::new("insert", Kind::Write, "Inserts the next object of the slot's own channel."),
    Operation::new("insert-bulk", Kind::Write, "Inserts its next `bulk` objects at once."),
    Operation::new("find", Kind::Read, "Finds the object that the slot has inserted last."),
    Operation::new("job", Kind::Read, "Connects anew, reads as `slice`, and stays connected."),
    Operation::new("append", Kind::Write, "Inserts the next interval of all channels."),
    Operation::new("look-up", Kind::Read, "Looks up one object by time, most of them again."),
    Operation::new("browse", Kind::Read, "Reads all that a folder shows in `browse` intervals."),
    Operation::new("load", Kind::Write, "Loads everything anew, until it can be read."),
];

/// Why other dialects have no look-ups.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(super) const OVER_HTTP: &str =
    "look-ups are asked over HTTP: of this program's server, or of a cache before it";

impl Do {
    /// What the operation of this index is.
    pub(super) fn of(operation: usize) -> Self {
        use Do::{Append, Browse, Find, Insert, InsertBulk, Job, Load, LookUp, ReadFolders, Slice};
        [Slice, ReadFolders, Insert, InsertBulk, Find, Job, Append, LookUp, Browse, Load][operation]
    }
}
