//! How a service makes itself known to the lab: one row each, registered in one table by the
//! command.

use std::sync::Arc;

use crate::part::{Part, SpecError};
use crate::speaks::DialectRow;
use crate::workload::Workload;

/// Reads a service's part of `[workload]`.
pub type ReadWorkload = fn(&Part<'_>) -> Result<Arc<dyn Workload>, SpecError>;

/// A service as the lab sees it.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// Its name in `service = "…"` and `serve = "…"`.
    pub name: &'static str,
    /// One sentence for `--help` and error messages.
    pub doc: &'static str,
    /// Reads its workload.
    pub read: ReadWorkload,
    /// Its dialects; the first is the one its own server speaks.
    pub dialects: &'static [DialectRow],
}

impl Service {
    /// The dialect called `name`.
    pub fn dialect(&self, name: &str) -> Option<&'static DialectRow> {
        self.dialects.iter().find(|row| row.name == name)
    }
}
