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
}

/// [`load::Op::operation`] is an index into them.
pub(super) static OPERATIONS: [Operation; 7] = [
    Operation::new("slice", Kind::Read, "Reads what all folders show at a time, at once."),
    Operation::new("read-folders", Kind::Read, "Reads the same with a request for each folder."),
    Operation::new("insert", Kind::Write, "Inserts the next object of the slot's own channel."),
    Operation::new("insert-bulk", Kind::Write, "Inserts its next `bulk` objects at once."),
    Operation::new("find", Kind::Read, "Finds the object that the slot has inserted last."),
    Operation::new("job", Kind::Read, "Connects anew, reads as `slice`, and stays connected."),
    Operation::new("append", Kind::Write, "Inserts the next interval of all channels."),
];

impl Do {
    /// What the operation of this index is.
    pub(super) fn of(operation: usize) -> Self {
        use Do::{Append, Find, Insert, InsertBulk, Job, ReadFolders, Slice};
        [Slice, ReadFolders, Insert, InsertBulk, Find, Job, Append][operation]
    }
}
