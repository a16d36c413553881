//! `[workload]`: which tasks there are, and how large a definition is loaded beside them.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use load::kv::{KeysSpec, Sampler};
use load::{
    Dialect, Draw, Mix, Op, Operation, Ops, Part, Preparation, Speaks, SpecError, Workload,
};
use serde::Deserialize;
use wire::ProtocolError;

use super::ecflow::EcFlow;
use super::generate::{Counts, SCALES};
use super::made::Made;
use super::operations::OPERATIONS;
use super::target::Target;

/// The longest name of a task.
const MAX_NAME_BYTES: usize = 64;

/// The most tasks.
const MAX_TASKS: u64 = 1_000_000;

/// How long a server may take to load the definition and to begin its suites.
const PREPARED_WITHIN: Duration = Duration::from_secs(120);

/// The service's part of `[workload]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    keys: Option<KeysSpec>,
    /// The scale of the definition that is loaded beside the tasks; 0 is none.
    #[serde(default)]
    beside: f64,
}

/// Reads the part of a suite that belongs to workflows.
pub(super) fn read(part: &Part<'_>) -> Result<Arc<dyn Workload>, SpecError> {
    let spec: Spec = part.read()?;
    let Some(keys) = &spec.keys else {
        return Err(part.error("keys", "workflow needs tasks: keys = { count = 1_000 }"));
    };
    let (keys, sampler) = keys.resolve(part, MAX_NAME_BYTES)?;
    if keys.count() > MAX_TASKS {
        return Err(part.error("keys.count", format!("at most {MAX_TASKS} tasks")));
    }
    let beside = Counts::scaled(spec.beside);
    if beside.is_none() && spec.beside != 0.0 {
        let (least, most) = (SCALES.start(), SCALES.end());
        let why = format!("{} is not a scale from {least} to {most}, or 0", spec.beside);
        return Err(part.error("beside", why));
    }
    let about = format!("{keys:?} {}", spec.beside);
    let (made, target) = (Arc::default(), Arc::new(Target::of(keys, &[])));
    Ok(Arc::new(Tasks { sampler, beside, about, made, target }))
}

/// The workload of one target.
#[derive(Debug)]
struct Tasks {
    sampler: Sampler,
    beside: Option<Counts>,
    about: String,
    /// Made when it is first needed: a suite that is only planned makes no definition.
    made: Arc<OnceLock<Arc<Made>>>,
    target: Arc<Target>,
}

impl Tasks {
    fn made(&self) -> Arc<Made> {
        let make = || Arc::new(Made::new(&self.target.keys, self.beside.as_ref()));
        Arc::clone(self.made.get_or_init(make))
    }
}

impl Workload for Tasks {
    fn operations(&self) -> &[Operation] {
        &OPERATIONS
    }

    /// One request: the definition, and that it begins.
    fn preparation(&self) -> Preparation {
        let nodes = self.target.keys.count() + self.beside.map_or(0, |counts| counts.nodes());
        Preparation {
            parts: 1,
            // About what a node takes in the text.
            bytes: nodes.saturating_mul(200),
            is_in_order: true,
            within: Some(PREPARED_WITHIN),
            about: self.about.clone(),
        }
    }

    fn begin(self: Arc<Self>, operations: &[usize]) -> Arc<dyn Workload> {
        let target = Target::of(self.target.keys.clone(), operations);
        Arc::new(Self {
            sampler: self.sampler.clone(),
            beside: self.beside,
            about: self.about.clone(),
            made: Arc::clone(&self.made),
            target: Arc::new(target),
        })
    }

    fn draw(&self, _: u64) -> Box<dyn Draw> {
        Box::new(Draws(self.sampler.clone()))
    }

    fn dialect(self: Arc<Self>, _: &Speaks) -> Result<Box<dyn Dialect>, ProtocolError> {
        Ok(Box::new(EcFlow::new(self.made(), Arc::clone(&self.target))))
    }
}

/// Draws the task of each operation.
struct Draws(Sampler);

impl Draw for Draws {
    #[inline]
    fn draw(&mut self, mix: &mut Mix, ops: &mut Ops) {
        while ops.has_room() {
            let operation = mix.operation();
            ops.push(Op { operation, what: self.0.draw(mix.random()) });
        }
    }
}
