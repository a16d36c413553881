//! `loadline workflow gen`: definitions of any size. Control plane.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use service::{Failure, Outcome, out};

use crate::load::{Counts, SCALES, generate};

const EXAMPLES: &str = "\
Examples:
  loadline workflow gen --scale 0.01 --out small.def
  loadline workflow gen --scale 1 > 3199.def         320,830 nodes, 60 MB
  ecflow_client --port 14141 --load small.def";

/// What is written.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct GenArgs {
    /// How large: 1 has 320,830 nodes, 0.01 about 3,200; from 0.001 to 10
    #[arg(long, value_name = "NUMBER", default_value_t = 0.01)]
    scale: f64,
    /// The file; standard output without one
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(args: GenArgs) -> Outcome {
    let GenArgs { scale, out: file } = args;
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
