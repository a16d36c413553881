//! Batches: whole processes, run to their end again and again.
// Control plane.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::{Caller, Cost, DialectRow, Finding, Kind, Op, Operation, Outcome, Reach, Service};
use regex_lite::Regex;
use wire::ProtocolError;

use super::once::{self, Once, Run};
use super::plain::Plain;
use crate::cpus::pin_this_thread;

/// The service that batches are in: it has one operation, to run the command.
pub static SERVICE: Service = Service {
    name: "batch",
    doc: "Whole processes, run to their end.",
    read: |part| Plain::read(part, &OPERATIONS),
    dialects: &[DialectRow::new(
        "process",
        "Starts the command and waits for its end.",
        Reach::Calls,
    )],
};

static OPERATIONS: [Operation; 1] = [Operation::new("run", Kind::Write, "Runs the command.")];

/// The figures of every run, beside those that are picked out of its output.
pub(crate) const BATCH_FIGURES: [&str; 4] = ["wall_ns", "user_ns", "system_ns", "peak_bytes"];

/// A command that is run over and over.
#[derive(Clone, Debug)]
pub struct Batch {
    /// This program.
    pub exe: PathBuf,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Environment variables beside the lab's own.
    pub env: BTreeMap<String, String>,
    /// The CPUs it is pinned to; empty is all.
    pub cpus: Vec<usize>,
    /// Where its output goes; each run overwrites the one before.
    pub folder: PathBuf,
    /// What is picked out of its output, by name: the first group of each match, as a number.
    pub figures: Vec<(String, Regex)>,
}

/// Runs a batch: one call is one run.
pub(super) struct BatchCaller {
    batch: Batch,
    stop: Arc<AtomicBool>,
    /// A run that takes longer is ended.
    within: Duration,
}

impl BatchCaller {
    /// Pins the calling thread, from which every run is started.
    pub(super) fn new(
        batch: Batch,
        stop: Arc<AtomicBool>,
        within: Duration,
    ) -> std::io::Result<Self> {
        pin_this_thread(&batch.cpus)?;
        Ok(Self { batch, stop, within })
    }

    fn output(&self) -> PathBuf {
        let thread = std::thread::current().id();
        self.batch.folder.join(format!("output-{thread:?}"))
    }

    fn run(&self) -> Result<Once, ProtocolError> {
        let Batch { exe, command, env, .. } = &self.batch;
        std::fs::create_dir_all(&self.batch.folder).map_err(|error| {
            ProtocolError::new(format!("{}: {error}", self.batch.folder.display()))
        })?;
        once::run(&Run { exe, command, env, output: &self.output() }, &self.stop, Some(self.within))
    }

    /// The figures in the run's output, and its last lines.
    fn read_output(&self) -> (Vec<(String, f64)>, String) {
        let text = once::output(&self.output());
        let find = |(name, pattern): &(String, Regex)| {
            let captures = pattern.captures(&text)?;
            let number = captures.get(1)?.as_str().replace(['_', ','], "").parse().ok()?;
            Some((name.clone(), number))
        };
        let figures = self.batch.figures.iter().filter_map(find).collect();
        (figures, once::last_lines(&text))
    }
}

impl Caller for BatchCaller {
    fn call(&mut self, _: Op) -> Result<Outcome, ProtocolError> {
        let once = self.run()?;
        let (mut figures, last_lines) = self.read_output();
        let own = [once.wall_ns, once.user_ns, once.system_ns, once.peak_bytes];
        figures.extend(BATCH_FIGURES.iter().zip(own).map(|(name, n)| ((*name).into(), n as f64)));
        let outcome = if let Some(how) = once.failure() {
            Outcome::wrong(Finding {
                operation: "run".into(),
                key: Vec::new(),
                expected: b"exit status 0".to_vec(),
                received: last_lines.into_bytes(),
                note: how,
            })
        } else if let Some((_, wrong)) =
            figures.iter().find(|(name, n)| name == "wrong" && *n > 0.0)
        {
            Outcome::wrong(Finding {
                operation: "run".into(),
                key: Vec::new(),
                expected: b"nothing wrong".to_vec(),
                received: last_lines.into_bytes(),
                note: format!("it says itself that {wrong} were wrong"),
            })
        } else {
            Outcome::right()
        };
        let Once { user_ns, system_ns, peak_bytes, .. } = once;
        let cost = Some(Cost { user_ns, system_ns, peak_bytes });
        Ok(Outcome { took_ns: Some(once.wall_ns), cost, figures, ..outcome })
    }
}
