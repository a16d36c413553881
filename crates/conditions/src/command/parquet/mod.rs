//! Files of Parquet: what is shown of one folder, a row for each record, and objects that are read
//! of them again. Only with the feature `parquet`.
//!
//! The columns are `channel`, `since`, `until`, `record`, which counts the records of an object and
//! is null of one that has none, and the folder's. One of these that is named as one before it has
//! underscores behind its name. An integer has the width and sign of its column.

mod form;
mod read;
mod write;

#[cfg(test)]
mod tests;

pub(super) use read::read;
pub(super) use write::write;
