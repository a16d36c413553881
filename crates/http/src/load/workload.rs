//! A workload whose operations are the requests that a suite names.

use std::sync::Arc;

use ::load::kv::Draws;
use ::load::{Dialect, Draw, Operation, Part, Speaks, SpecError, Workload};
use wire::ProtocolError;

use super::dialect::Http;
use super::requests::Requests;

/// Reads a suite's requests; files that they name are read from where the suite is.
pub(super) fn read(part: &Part<'_>) -> Result<Arc<dyn Workload>, SpecError> {
    Ok(Arc::new(Requests::read(part)?))
}

impl Workload for Requests {
    fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// What is right doesn't change.
    fn begin(self: Arc<Self>, _: &[usize]) -> Arc<dyn Workload> {
        self
    }

    fn draw(&self, _: u64) -> Box<dyn Draw> {
        Box::new(Draws::of_one(&self.sampler))
    }

    fn dialect(self: Arc<Self>, _: &Speaks) -> Result<Box<dyn Dialect>, ProtocolError> {
        Ok(Box::new(Http::new(&self)))
    }
}
