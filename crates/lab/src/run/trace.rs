//! The system calls of an operation: each target at each point is loaded for half a second more
//! with `strace` attached to it and to the load threads; a batch, of which nothing runs before it
//! is asked for, is run once more behind `strace`. Only counts are kept: each call stops for the
//! tracer, so the timings are those of strace.

use std::path::Path;

use wire::clock::MILLISECOND_NS;

use super::options::RunError;
use super::persist::RunWriter;
use super::runner::Runner;
use super::strace::{self, Tracer};
use super::target_run::TargetRun;
use crate::observe::{floors, group_members, load_threads};
use crate::plan::{Target, TargetKind};

/// How long calls are counted.
const TRACED_NS: u64 = 500 * MILLISECOND_NS;

impl Runner<'_> {
    /// Counts system calls, and measures beside them the host's floors and the parts of operations
    /// that their workload can measure by themselves. What can't be traced is reported, and left
    /// out.
    pub(super) fn trace(
        &mut self,
        writer: &mut RunWriter<'_>,
        folder: &Path,
    ) -> Result<(), RunError> {
        writer.floors(floors())?;
        for point in &self.plan.points {
            writer.floors(point.workload.workload.parts())?;
        }
        if let Some(why) = crate::deploy::missing_program("strace") {
            self.note(&format!("system calls are not counted: {why}"));
            return Ok(());
        }
        let plan = self.plan;
        for (point, here) in plan.points.iter().enumerate() {
            let targets = here.targets.iter().enumerate();
            for (index, target) in targets.filter(|(_, target)| target.is_measured()) {
                if self.stopped() {
                    return Ok(());
                }
                self.report_activity(
                    point,
                    0,
                    &format!("counting system calls of {}", target.name),
                );
                let traced = match target.kind {
                    TargetKind::Batch(_) => {
                        self.trace_batch(writer, folder, point, (index, target))?
                    }
                    _ => self.trace_one(writer, folder, point, (index, target))?,
                };
                if let Err(why) = traced {
                    let name = &target.name;
                    self.note(&format!("system calls of {name} are not counted: {why}"));
                }
            }
        }
        Ok(())
    }

    /// A target, started and made ready for a point.
    fn started(&mut self, point: usize, (index, target): (usize, &Target)) -> TargetRun {
        let mut target_run = self.start(index, target, 0);
        if target_run.deployed.is_some() {
            self.make_ready(&mut target_run, point, target, 0);
        }
        target_run
    }

    /// One target at one point; the inner error is why it can't be traced.
    fn trace_one(
        &mut self,
        writer: &mut RunWriter<'_>,
        folder: &Path,
        point: usize,
        (index, target): (usize, &Target),
    ) -> Result<Result<(), String>, RunError> {
        let mut target_run = self.started(point, (index, target));
        let group = target_run.deployed.as_ref().and_then(crate::deploy::Deployed::group);
        let server = group.map(group_members).unwrap_or_default();
        let traced = (|| {
            let session = target_run.session.as_mut().ok_or("it can't be loaded")?;
            let server = Tracer::attach(&server, true, &folder.join("strace-server"))?;
            let generator =
                Tracer::attach(&load_threads(), false, &folder.join("strace-generator"))?;
            let piece = session.run(TRACED_NS).map_err(|error| error.to_string());
            let calls = [server.detach()?, generator.detach()?];
            Ok::<_, String>((piece?.counts.operations, calls))
        })();
        self.end(target_run);
        let (operations, [server, generator]) = match traced {
            Ok(traced) => traced,
            Err(why) => return Ok(Err(why)),
        };
        writer.calls(point, index, operations, false, &server)?;
        writer.calls(point, index, operations, true, &generator)?;
        Ok(Ok(()))
    }

    /// The same of a batch: its last run in that time is counted.
    fn trace_batch(
        &mut self,
        writer: &mut RunWriter<'_>,
        folder: &Path,
        point: usize,
        (index, target): (usize, &Target),
    ) -> Result<Result<(), String>, RunError> {
        let file = folder.join("strace-batch");
        let _ = std::fs::remove_file(&file);
        let own = target.wrap.iter().flatten().cloned();
        let wrap = strace::wrap(&file).into_iter().chain(own).collect();
        let target = Target { wrap: Some(wrap), ..target.clone() };
        let mut target_run = self.started(point, (index, &target));
        let traced = (|| {
            let session = target_run.session.as_mut().ok_or("it can't be loaded")?;
            let piece = session.run(TRACED_NS).map_err(|error| error.to_string())?;
            match piece.counts.operations {
                0 => Err("no run of it has ended behind strace".to_owned()),
                // One that ends has made some: to start is one.
                _ => strace::counted(&file).and_then(|calls| match calls.is_empty() {
                    true => Err("strace has counted none".to_owned()),
                    false => Ok(calls),
                }),
            }
        })();
        self.end(target_run);
        match traced {
            Ok(calls) => Ok(Ok(writer.calls(point, index, 1, false, &calls)?)),
            Err(why) => Ok(Err(why)),
        }
    }
}
