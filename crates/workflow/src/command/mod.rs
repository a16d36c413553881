//! `loadline workflow`: what users and scripts do with definitions. Control plane.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use service::{Failure, Outcome, Run, out};

use crate::load::{Counts, SCALES, generate};

const EXAMPLES: &str = "\
Examples:
  loadline workflow gen --scale 0.01 --out small.def
  loadline workflow gen --scale 1 > 3199.def         320,830 nodes, 60 MB
  ecflow_client --port 14141 --load small.def";

/// Arguments of `loadline workflow`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WorkflowCommandArgs {
    #[command(subcommand)]
    command: WorkflowCommand,
}

#[derive(Debug, clap::Subcommand)]
enum WorkflowCommand {
    /// Write a definition with the counts of ECMWF's performance tests, in which every task waits
    Gen {
        /// How large: 1 has 320,830 nodes, 0.01 about 3,200; from 0.001 to 10
        #[arg(long, value_name = "NUMBER", default_value_t = 0.01)]
        scale: f64,
        /// The file; standard output without one
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

impl Run for WorkflowCommandArgs {
    fn run(self) -> Outcome {
        match self.command {
            WorkflowCommand::Gen { scale, out } => write_definition(scale, out),
        }
    }
}

fn write_definition(scale: f64, file: Option<PathBuf>) -> Outcome {
    let (least, most) = (SCALES.start(), SCALES.end());
    let counts = Counts::scaled(scale)
        .ok_or_else(|| Failure::Usage(format!("--scale {scale} is not from {least} to {most}")))?;
    match &file {
        Some(path) => File::create(path)
            .and_then(|file| generate(&counts, BufWriter::new(file)))
            .with_context(|| format!("--out {}", path.display())),
        None => generate(&counts, BufWriter::new(out::stream())).context("standard output"),
    }?;
    Ok(ExitCode::SUCCESS)
}
