//! `loadline workflow gen`: definitions of any size, and those of a folder as one. Control plane.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::ValueEnum;
use service::{Failure, Outcome, out};

use crate::load::{Counts, SCALES, generate, generate_builds, of_folder, write_scripts};

const EXAMPLES: &str = "\
Examples:
  loadline workflow gen --scale 0.01 --out small.def
  loadline workflow gen --scale 1 > 3199.def         320,830 nodes, 60 MB
  loadline workflow gen --shape builds --scripts home > builds.def
  loadline workflow gen --defs BIG_DEFS --out all.def
  ecflow_client --port 14141 --load small.def";

/// What is written.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct GenArgs {
    /// Which definition
    #[arg(long, value_enum, default_value_t = Shape::Large)]
    shape: Shape,
    /// How large: 1 has 320,830 nodes, 0.01 about 3,200; from 0.001 to 10 [default: 0.01]
    #[arg(long, value_name = "NUMBER")]
    scale: Option<f64>,
    /// Write the scripts of its tasks into this folder, an ECF_HOME, too
    #[arg(long, value_name = "DIR")]
    scripts: Option<PathBuf>,
    /// Write the definitions of a folder, its files *.def, as one instead
    #[arg(long, value_name = "DIR", conflicts_with_all = ["shape", "scale", "scripts"])]
    defs: Option<PathBuf>,
    /// The file; standard output without one
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// The counts of ECMWF's performance tests: 18 suites, in which every task waits
    Large,
    /// Those by which ECMWF measures how jobs are made: 28 suspended suites, 4,559 tasks
    Builds,
}

/// What is to be written.
enum What {
    Scaled(Counts),
    Builds,
    Text(String),
}

impl What {
    fn of(args: &GenArgs) -> Result<Self, Failure> {
        if let Some(folder) = &args.defs {
            return of_folder(folder).map(Self::Text).map_err(Failure::Usage);
        }
        match (args.shape, args.scale) {
            (Shape::Builds, Some(_)) => {
                Err(Failure::Usage("--scale: the shape `builds` has one size".to_owned()))
            }
            (Shape::Builds, None) => Ok(Self::Builds),
            (Shape::Large, _) if args.scripts.is_some() => Err(Failure::Usage(
                "--scripts: only the shape `builds` has tasks with scripts".to_owned(),
            )),
            (Shape::Large, scale) => {
                let (scale, least, most) = (scale.unwrap_or(0.01), SCALES.start(), SCALES.end());
                let why = || format!("--scale {scale} is not from {least} to {most}");
                Counts::scaled(scale).map(Self::Scaled).ok_or_else(|| Failure::Usage(why()))
            }
        }
    }

    fn write(&self, mut to: impl Write) -> std::io::Result<()> {
        match self {
            Self::Scaled(counts) => generate(counts, to),
            Self::Builds => generate_builds(to),
            Self::Text(text) => to.write_all(text.as_bytes()).and_then(|()| to.flush()),
        }
    }
}

fn scripts(folder: &Path) -> Result<(), Failure> {
    let written = std::fs::create_dir_all(folder).and_then(|()| write_scripts(folder));
    written.map_err(|why| Failure::Usage(format!("--scripts {}: {why}", folder.display())))
}

pub(super) fn run(args: GenArgs) -> Outcome {
    let what = What::of(&args)?;
    args.scripts.as_deref().map(scripts).transpose()?;
    match &args.out {
        Some(path) => File::create(path)
            .and_then(|file| what.write(BufWriter::new(file)))
            .with_context(|| format!("--out {}", path.display())),
        None => what.write(BufWriter::new(out::stream())).context("standard output"),
    }?;
    Ok(ExitCode::SUCCESS)
}
