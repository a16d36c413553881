//! What is made, in the binary forms of our own server.

use std::ops::Range;

use super::made::Made;
use super::spec::OBJECTS_PER_PART;
use crate::model::{Answer, ColumnSpec, Kind, Object, Value};
use crate::protocol::{Bulk, SliceHead, encode_slice};

/// The set of the folders that are read.
pub(super) const READ: &str = "/load/read";

/// A folder of a set.
pub(super) fn path(set: &str, folder: u32) -> String {
    format!("{set}/f{folder:05}")
}

/// Columns of floats.
pub(super) fn floats(count: u32) -> Vec<ColumnSpec> {
    let column = |number| ColumnSpec { name: format!("v{number}"), kind: Kind::Float };
    (0..count).map(column).collect()
}

/// The objects of a folder that begin in these intervals.
pub(super) fn bulk(made: &Made, set: &str, folder: u32, intervals: Range<u32>) -> Bulk {
    let mut bulk = Bulk::new(&path(set, folder), None, false, floats(made.spec.fields));
    let batch = &mut bulk.batch;
    for (interval, channel) in made.objects(folder, intervals) {
        let (since, until) = made.times(folder, channel, interval);
        batch.objects.push(Object { channel, since, until, records: 1 });
        for (cells, value) in
            batch.payload.columns.iter_mut().zip(made.floats(folder, channel, interval))
        {
            // The column is one of floats.
            let _ = cells.push(&Value::Float(value));
        }
        batch.payload.rows += 1;
    }
    bulk
}

/// The folders that one insertion of an interval is of, for all folders.
pub(super) fn folders_of_insertions(made: &Made) -> impl Iterator<Item = Range<u32>> + use<> {
    let (folders, at_once) = (made.spec.folders, (OBJECTS_PER_PART / made.spec.channels).max(1));
    (0..folders).step_by(at_once as usize).map(move |first| first..folders.min(first + at_once))
}

/// How many bytes a slice of an interval has in the binary form.
pub(super) fn slice_bytes(made: &Made, interval: u32) -> usize {
    let answer = |number| {
        let Bulk { columns, batch } = bulk(made, READ, number, interval..interval + 1);
        Answer { folder: batch.folder, columns, objects: batch.objects, payload: batch.payload }
    };
    let head = SliceHead { revision: 0, since: 0 };
    encode_slice(head, &(0..made.spec.folders).map(answer).collect::<Vec<_>>()).len()
}
