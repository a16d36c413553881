//! `loadline workflow rung`: one rung of a ladder, measured in this process. Control plane.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use service::{Failure, Outcome, out};

use crate::load::{Counts, RUNGS, Rung, SCALES, Site};

const EXAMPLES: &str = "\
Examples:
  loadline workflow rung                                    the ladders and their rungs
  loadline workflow rung print 64KiB --scale 1              a text of 45 MB, not indented
  loadline workflow rung checkpoint io_uring --dir /data    where its disk is

The suites workflow-ladder-*.toml measure them side by side.";

/// What is measured.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RungArgs {
    /// The ladder: what is done
    #[arg(value_name = "LADDER", requires = "rung")]
    ladder: Option<String>,
    /// The rung: in which way
    #[arg(value_name = "RUNG")]
    rung: Option<String>,
    /// How large the definition is: 1 has 320,830 nodes, 0.01 about 3,200; from 0.001 to 10
    #[arg(long, value_name = "NUMBER", default_value_t = 0.01)]
    scale: f64,
    /// How often it is done; the figures are medians
    #[arg(long, value_name = "COUNT", default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..=1_000))]
    times: u32,
    /// The folder of the file that is written, which is removed in the end
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

pub(super) fn run(args: &RungArgs) -> Outcome {
    let (Some(ladder), Some(name)) = (&args.ladder, &args.rung) else {
        let line = |rung: &Rung| format!("{:<10}  {:<15}  {}\n", rung.ladder, rung.name, rung.doc);
        out::print(RUNGS.iter().map(line).collect::<String>())?;
        return Ok(ExitCode::SUCCESS);
    };
    let rung = Rung::find(ladder, name).map_err(Failure::Usage)?;
    let counts = Counts::scaled(args.scale).ok_or_else(|| {
        let (least, most) = (SCALES.start(), SCALES.end());
        Failure::Usage(format!("--scale {} is not from {least} to {most}", args.scale))
    })?;
    let file = args.dir.join(format!("rung-{}", std::process::id()));
    let measured = rung.measure(&Site { counts, times: args.times, file });
    let figures = measured.with_context(|| format!("{ladder} {name}"))?;
    let line = |(name, value): &(&str, u64)| format!("{name}={value}\n");
    out::print(figures.iter().map(line).collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}
