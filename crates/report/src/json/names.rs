//! Names in place of the summary's indices.

use findings::Summary;
use serde_json::{Map, Value};

/// Turns the summary's indices into the names that JSON uses.
pub(super) struct Names<'a> {
    /// The run.
    pub(super) summary: &'a Summary,
}

impl<'a> Names<'a> {
    pub(super) fn target(&self, index: usize) -> &'a str {
        &self.summary.targets[index].name
    }

    pub(super) fn point(&self, index: usize) -> &'a Map<String, Value> {
        &self.summary.points[index].row.keys
    }
}
