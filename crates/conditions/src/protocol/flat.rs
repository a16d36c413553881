//! Objects as rows, a record each, as tables of other programs have them.

use crate::model::{ColumnSpec, Kind};

/// The columns that every such table begins with, and their kinds. An object without records has
/// one row, whose record is null.
pub const FLAT_BEGIN: [(&str, Kind); 4] = [
    ("channel", Kind::Uint32),
    ("since", Kind::Int64),
    ("until", Kind::Int64),
    ("record", Kind::Uint32),
];

/// The names that the columns of a folder have behind these.
pub fn flat_names(columns: &[ColumnSpec]) -> Vec<String> {
    let mut taken: Vec<String> = FLAT_BEGIN.map(|(name, _)| name.to_owned()).to_vec();
    for column in columns {
        let mut name = column.name.clone();
        while taken.contains(&name) {
            name.push('_');
        }
        taken.push(name);
    }
    taken.split_off(FLAT_BEGIN.len())
}
