//! `[workload]`: how large the tree is, and how many jobs, pairs and commands there are.

use std::sync::{Arc, OnceLock};

use load::{Caller, Draw, Operation, Part, Speaks, SpecError, UniformDraw, Workload};
use serde::Deserialize;
use wire::{Address, ProtocolError};

use super::super::generate::{Counts, SCALES};
use super::client::Client;
use super::known::{Known, Sizes};
use super::made::Made;
use super::operations::OPERATIONS;

/// The most jobs, pairs and commands of a step: scripts are links of one file, of which ext4 takes
/// 65,000.
const MOST: u64 = 60_000;

/// The service's part of `[workload]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Spec {
    /// The scale of the definition.
    scale: f64,
    jobs: u64,
    pairs: u64,
    commands: u64,
    released: u64,
}

impl Default for Spec {
    fn default() -> Self {
        Self { scale: 0.01, jobs: 2_000, pairs: 1_000, commands: 1_000, released: 7_000 }
    }
}

/// Reads the part of a suite that belongs to trees.
pub(super) fn read(part: &Part<'_>) -> Result<Arc<dyn Workload>, SpecError> {
    let spec: Spec = part.read()?;
    let Some(counts) = Counts::scaled(spec.scale) else {
        let (least, most) = (SCALES.start(), SCALES.end());
        let why = format!("{} is not a scale from {least} to {most}", spec.scale);
        return Err(part.error("scale", why));
    };
    let Spec { jobs, pairs, commands, released, .. } = spec;
    let sizes = Sizes { jobs, pairs, commands, released };
    let counted =
        [("jobs", jobs), ("pairs", pairs), ("commands", commands), ("released", released)];
    for (key, count) in counted {
        if !(1..=MOST).contains(&count) {
            return Err(part.error(key, format!("{count} is not a number from 1 to {MOST}")));
        }
    }
    Ok(Arc::new(Tree { counts, sizes, made: Arc::default(), known: Arc::default() }))
}

/// The workload of one target.
#[derive(Debug)]
struct Tree {
    counts: Counts,
    sizes: Sizes,
    /// Made when it is first needed: a suite that is only planned makes no definition.
    made: Arc<OnceLock<Arc<Made>>>,
    known: Arc<Known>,
}

impl Workload for Tree {
    fn operations(&self) -> &[Operation] {
        &OPERATIONS
    }

    fn begin(self: Arc<Self>, _: &[usize]) -> Arc<dyn Workload> {
        let (counts, sizes, made) = (self.counts, self.sizes, Arc::clone(&self.made));
        Arc::new(Self { counts, sizes, made, known: Arc::default() })
    }

    fn draw(&self, _: u64) -> Box<dyn Draw> {
        Box::new(UniformDraw { below: 1 })
    }

    fn caller(
        self: Arc<Self>,
        _: &Speaks,
        address: &Address,
    ) -> Result<Box<dyn Caller>, ProtocolError> {
        let Address::Internet(at) = address else {
            return Err(ProtocolError::new("ecFlow's protocol is spoken over TCP"));
        };
        let make = || Arc::new(Made::new(&self.counts));
        let made = Arc::clone(self.made.get_or_init(make));
        Ok(Box::new(Client::new(*at, made, self.sizes, Arc::clone(&self.known))))
    }
}

#[cfg(test)]
mod tests {
    use load::Scenario;

    fn error(text: &str) -> String {
        let text = format!("service = 'workflow-tree'\noperation = 'load'\n{text}");
        Scenario::parse(&text, &super::super::SERVICE).unwrap_err().to_string()
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        assert!(error("scale = 0").contains("0 is not a scale from 0.001 to 10"));
        assert!(error("jobs = 0").contains("0 is not a number from 1 to 60000"));
        assert!(error("commands = 1_000_000").contains("1000000 is not a number"));
        assert!(error("keys = 7").contains("unknown field `keys`"));
    }
}
