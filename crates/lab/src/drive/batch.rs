//! Batches: whole processes, run to their end again and again.
//!
//! Each run is watched by a small process of its own (`loadline once`), because the kernel adds up
//! CPU time and peak memory per parent (getrusage(2), `RUSAGE_CHILDREN`). It also ends the run
//! when the lab goes away. Control plane.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::deploy::pin_this_thread;
use regex_lite::Regex;
use rustix::process::{Signal, getpgrp, kill_process_group};
use serde::{Deserialize, Serialize};
use wire::Fault;
use workload::{Caller, Client, Cost, DialectRow, Finding, Kind, Op, Operation, Outcome, Room};

/// The room that batches are in: it has one operation, to run the command.
pub static ROOM: Room = Room {
    name: "batch",
    doc: "Whole processes, run to their end.",
    operations: &[Operation { name: "run", kind: Kind::Write, doc: "Runs the command." }],
    dialects: &[DialectRow {
        name: "process",
        doc: "Starts the command and waits for its end.",
        client: Client::Calls(|_, _| Err(Fault::new("a batch target has no address"))),
        counters: None,
    }],
    longest_key_bytes: 8,
    longest_value_bytes: 8,
    prepares: false,
};

/// At most this much of a run's output is searched for figures.
const MOST_OUTPUT_BYTES: u64 = 16 << 20;

/// How often a run that is waited for is looked at. The watcher's clock measures it, not this.
const LOOK_EVERY: Duration = Duration::from_micros(500);

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

/// What the watching process says of one run.
#[derive(Debug, Deserialize, Serialize)]
struct Once {
    wall_ns: u64,
    user_ns: u64,
    system_ns: u64,
    peak_bytes: u64,
    code: Option<i32>,
    signal: Option<i32>,
}

/// Runs a batch: one call is one run.
pub(super) struct BatchCaller {
    batch: Batch,
    stop: Arc<AtomicBool>,
}

impl BatchCaller {
    /// Pins the calling thread, from which every run is started.
    pub(super) fn new(batch: Batch, stop: Arc<AtomicBool>) -> std::io::Result<Self> {
        pin_this_thread(&batch.cpus)?;
        Ok(Self { batch, stop })
    }

    fn output(&self) -> PathBuf {
        let thread = std::thread::current().id();
        self.batch.folder.join(format!("output-{thread:?}"))
    }

    fn start(&self) -> std::io::Result<Child> {
        std::fs::create_dir_all(&self.batch.folder)?;
        Command::new(&self.batch.exe)
            .arg("once")
            .arg(self.output())
            .args(&self.batch.command)
            .envs(&self.batch.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .process_group(0)
            .spawn()
    }

    fn run(&self) -> Result<Once, Fault> {
        let program = &self.batch.command[0];
        let failed = |error: std::io::Error| Fault::new(format!("{program}: {error}"));
        let mut child = self.start().map_err(failed)?;
        while child.try_wait().map_err(failed)?.is_none() {
            if self.stop.load(Ordering::Relaxed) {
                // Its watcher ends it when this pipe closes.
                drop(child.stdin.take());
                let _ = child.wait();
                return Err(Fault::new("interrupted"));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let mut said = String::new();
        if let Some(stdout) = &mut child.stdout {
            stdout.read_to_string(&mut said).map_err(failed)?;
        }
        serde_json::from_str(&said).map_err(|_| Fault::new(format!("can't start {program}")))
    }

    /// The figures in the run's output, and its last lines.
    fn read_output(&self) -> (Vec<(String, f64)>, String) {
        let mut bytes = Vec::new();
        if let Ok(file) = std::fs::File::open(self.output()) {
            let _ = file.take(MOST_OUTPUT_BYTES).read_to_end(&mut bytes);
        }
        let text = String::from_utf8_lossy(&bytes);
        let find = |(name, pattern): &(String, Regex)| {
            let captures = pattern.captures(&text)?;
            let number = captures.get(1)?.as_str().replace(['_', ','], "").parse().ok()?;
            Some((name.clone(), number))
        };
        let figures = self.batch.figures.iter().filter_map(find).collect();
        let lines: Vec<_> = text.lines().collect();
        (figures, lines[lines.len().saturating_sub(8)..].join("\n"))
    }
}

impl Caller for BatchCaller {
    fn prepare(&mut self, _: u64) -> Result<Outcome, Fault> {
        Ok(Outcome::default())
    }

    fn call(&mut self, _: &Op<'_>) -> Result<Outcome, Fault> {
        let once = self.run()?;
        let (mut figures, last_lines) = self.read_output();
        figures.extend([
            ("wall_ns".to_owned(), once.wall_ns as f64),
            ("user_ns".to_owned(), once.user_ns as f64),
            ("system_ns".to_owned(), once.system_ns as f64),
            ("peak_bytes".to_owned(), once.peak_bytes as f64),
        ]);
        let Once { user_ns, system_ns, peak_bytes, .. } = once;
        let outcome = if once.code == Some(0) {
            Outcome::right()
        } else {
            let how = match (once.code, once.signal) {
                (Some(code), _) => format!("it exited with status {code}"),
                (None, signal) => format!("it was ended by signal {}", signal.unwrap_or(0)),
            };
            Outcome::wrong(Finding {
                operation: "run",
                key: Vec::new(),
                expected: b"exit status 0".to_vec(),
                received: last_lines.into_bytes(),
                note: how,
            })
        };
        let cost = Some(Cost { user_ns, system_ns, peak_bytes });
        Ok(Outcome { took_ns: Some(once.wall_ns), cost, figures, ..outcome })
    }
}

/// `loadline once OUTPUT PROGRAM …`: runs the program to its end and says what it cost. Ends it
/// when standard input closes.
pub fn once_main(arguments: &[String]) -> ExitCode {
    let [output, program, rest @ ..] = arguments else { return ExitCode::from(2) };
    std::thread::spawn(|| {
        for line in std::io::stdin().lock().lines() {
            if line.is_err() {
                break;
            }
        }
        let _ = kill_process_group(getpgrp(), Signal::KILL);
    });
    match measure(Path::new(output), program, rest) {
        Ok(once) => {
            println!("{}", serde_json::to_string(&once).unwrap_or_default());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{program}: {error}");
            ExitCode::from(1)
        }
    }
}

fn measure(output: &Path, program: &str, rest: &[String]) -> std::io::Result<Once> {
    let file = std::fs::File::create(output)?;
    let mut command = Command::new(program);
    command.args(rest).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let started = Instant::now();
    let status = command.status()?;
    let wall_ns = started.elapsed().as_nanos() as u64;
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN)?;
    let ns = |time: nix::sys::time::TimeVal| {
        (time.tv_sec() as u64) * 1_000_000_000 + (time.tv_usec() as u64) * 1000
    };
    Ok(Once {
        wall_ns,
        user_ns: ns(usage.user_time()),
        system_ns: ns(usage.system_time()),
        peak_bytes: usage.max_rss() as u64 * 1024,
        code: status.code(),
        signal: status.signal(),
    })
}
