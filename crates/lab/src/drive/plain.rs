//! Workloads of which the lab knows nothing but the names of their operations: what processes do.

use std::sync::Arc;

use load::{Draw, Mix, Op, Operation, Ops, Part, SpecError, Workload};

/// A workload of these operations.
#[derive(Debug)]
pub(super) struct Plain(pub(super) &'static [Operation]);

/// A suite may name keys and values all the same; they stand for nothing.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {
    #[serde(default, rename = "keys")]
    _keys: Option<toml::Value>,
    #[serde(default, rename = "value")]
    _value: Option<toml::Value>,
}

impl Plain {
    /// Reads a part of `[workload]` in which nothing matters.
    pub(super) fn read(
        part: &Part<'_>,
        operations: &'static [Operation],
    ) -> Result<Arc<dyn Workload>, SpecError> {
        part.read::<Nothing>()?;
        Ok(Arc::new(Self(operations)))
    }
}

impl Workload for Plain {
    fn operations(&self) -> &[Operation] {
        self.0
    }

    fn begin(self: Arc<Self>, _: &[usize]) -> Arc<dyn Workload> {
        self
    }

    fn draw(&self, _: u64) -> Box<dyn Draw> {
        Box::new(Self(self.0))
    }
}

impl Draw for Plain {
    fn draw(&mut self, mix: &mut Mix, ops: &mut Ops) {
        ops.push(Op { operation: mix.operation(), what: 0 });
    }
}
