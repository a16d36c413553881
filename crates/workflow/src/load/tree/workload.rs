//! `[workload]`: how large the tree is, and how many jobs, pairs and commands there are.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use load::{Caller, Draw, Operation, Part, Speaks, SpecError, UniformDraw, Workload};
use serde::Deserialize;
use wire::{Address, ProtocolError};

use super::super::generate::{Counts, SCALES};
use super::client::Client;
use super::known::{Known, Sizes};
use super::made::Made;
use super::operations::OPERATIONS;
use super::source::Source;

/// The most jobs, pairs and commands of a step: scripts are links of one file, of which ext4 takes
/// 65,000.
const MOST: u64 = 60_000;

/// The service's part of `[workload]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Spec {
    /// The scale of the definition.
    scale: Option<f64>,
    /// Which definition.
    shape: Shape,
    /// The folder of the definitions; their tasks start no job.
    defs: Option<PathBuf>,
    jobs: u64,
    pairs: u64,
    commands: u64,
    released: u64,
}

impl Default for Spec {
    fn default() -> Self {
        let (scale, shape, defs) = (None, Shape::default(), None);
        Self { scale, shape, defs, jobs: 2_000, pairs: 1_000, commands: 1_000, released: 7_000 }
    }
}

/// The definition that is made where no folder is named.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Shape {
    #[default]
    Large,
    Builds,
}

/// Which definition a suite means.
fn source(part: &Part<'_>, spec: &Spec) -> Result<Source, SpecError> {
    let is_builds = spec.shape == Shape::Builds;
    if let Some(folder) = &spec.defs {
        if is_builds || spec.scale.is_some() {
            return Err(part.error("defs", "the definitions of a folder have no scale and shape"));
        }
        return Source::of_folder(&part.folder.join(folder)).map_err(|why| part.error("defs", why));
    }
    if is_builds {
        return match spec.scale {
            None => Ok(Source::Builds),
            Some(_) => Err(part.error("scale", "the shape \"builds\" has one size")),
        };
    }
    let scale = spec.scale.unwrap_or(0.01);
    Counts::scaled(scale).map(Source::Scaled).ok_or_else(|| {
        let (least, most) = (SCALES.start(), SCALES.end());
        part.error("scale", format!("{scale} is not a scale from {least} to {most}"))
    })
}

/// Reads the part of a suite that belongs to trees.
pub(super) fn read(part: &Part<'_>) -> Result<Arc<dyn Workload>, SpecError> {
    let spec: Spec = part.read()?;
    let source = source(part, &spec)?;
    let Spec { jobs, pairs, commands, released, .. } = spec;
    let sizes = Sizes { jobs, pairs, commands, released };
    let counted =
        [("jobs", jobs), ("pairs", pairs), ("commands", commands), ("released", released)];
    for (key, count) in counted {
        if !(1..=MOST).contains(&count) {
            return Err(part.error(key, format!("{count} is not a number from 1 to {MOST}")));
        }
    }
    Ok(Arc::new(Tree { source, sizes, made: Arc::default(), known: Arc::default() }))
}

/// The workload of one target.
#[derive(Debug)]
struct Tree {
    source: Source,
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
        let (source, sizes, made) = (self.source.clone(), self.sizes, Arc::clone(&self.made));
        Arc::new(Self { source, sizes, made, known: Arc::default() })
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
        let make = || Arc::new(Made::new(self.source.text()));
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
    fn a_folder_of_definitions_is_sought_from_that_of_the_suite() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("own")).expect("a folder");
        std::fs::write(folder.path().join("own/a.def"), "suite a\n").expect("written");
        let table = [("defs".to_owned(), "own".into())].into_iter().collect();
        let part =
            load::Part { service: "workflow-tree", table: &table, folder: folder.path(), seed: 1 };
        super::read(&part).expect("a workload");
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        assert!(error("scale = 0").contains("0 is not a scale from 0.001 to 10"));
        assert!(error("shape = 'builds'\nscale = 1.0").contains("has one size"));
        assert!(error("defs = '/nowhere'").contains("/nowhere"));
        assert!(error("defs = '/nowhere'\nscale = 1.0").contains("no scale and shape"));
        assert!(error("jobs = 0").contains("0 is not a number from 1 to 60000"));
        assert!(error("commands = 1_000_000").contains("1000000 is not a number"));
        assert!(error("keys = 7").contains("unknown field `keys`"));
    }
}
