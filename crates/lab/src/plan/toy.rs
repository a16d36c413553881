//! A service for tests of plans: keys and values, and no client.

use std::sync::Arc;

use load::kv::{Rules, Store};
use load::{Draw, Operation, Part, Preparation, SpecError, Workload};
use wire::ProtocolError;

use super::types::MakePage;

pub(super) fn read(part: &Part<'_>, rules: &'static Rules) -> Result<Arc<dyn Workload>, SpecError> {
    Ok(Arc::new(Toy(Store::read(part, rules)?)))
}

pub(super) const NO_PAGE: MakePage = |_, _| Err(ProtocolError::new("no page"));

#[derive(Debug)]
struct Toy(Store);

impl Workload for Toy {
    fn operations(&self) -> &[Operation] {
        self.0.operations()
    }

    fn preparation(&self) -> Preparation {
        self.0.preparation()
    }

    fn begin(self: Arc<Self>, operations: &[usize]) -> Arc<dyn Workload> {
        Arc::new(Self(self.0.begin(operations)))
    }

    fn draw(&self, _: u64) -> Box<dyn Draw> {
        Box::new(self.0.draws())
    }
}
