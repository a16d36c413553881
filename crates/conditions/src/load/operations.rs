//! What slots do.

use load::{Kind, Operation};

/// [`load::Op::operation`] is an index into them.
pub(super) static OPERATIONS: [Operation; 3] = [
    Operation::new("slice", Kind::Read, "Reads what all folders show at a time; led there first."),
    Operation::new("insert", Kind::Write, "Inserts the next object of the slot's own channel."),
    Operation::new("find", Kind::Read, "Finds the object that the slot has inserted last."),
];
