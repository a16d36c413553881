//! `loadline workflow jobs`: the jobs of a definition's tasks, without a server. Control plane.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant as Clock;

use serde_json::json;
use service::{Failure, Outcome, out};

use super::input;
use crate::server::job_files;
use base::many;

const EXAMPLES: &str = "\
Examples:
  loadline workflow jobs x.def --generate-only --home $ECF_HOME --out /tmp/jobs
  loadline workflow jobs x.def --generate-only --home $ECF_HOME --json | jq -r '.errors[]'

Suites are begun in memory, and each task's script is made a job as at its submission, with the
files that python3-ecflow's check_job_creation writes: PATH.job0. No job is started; commands that
print scripts (ECF_SCRIPT_CMD, ECF_FETCH) are.

Exit codes: 0 all were written; 3 some could not be made; 2 the definition can't be read.";

/// A definition, and where its scripts are.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct JobsArgs {
    /// The definition
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write jobs, and start none: there is no other way yet
    #[arg(long, required = true)]
    generate_only: bool,
    /// ECF_HOME, where the definition doesn't say one: scripts and includes are looked for there
    #[arg(long, value_name = "DIR", default_value = ".")]
    home: PathBuf,
    /// Write jobs below this folder, not where ECF_JOB says
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The exit code where some could not be made.
const NOT_ALL: u8 = 3;

pub(super) fn run(args: &JobsArgs) -> Outcome {
    let folder = |option: &str, path: &Path| {
        let found = path.canonicalize().ok().filter(|path| path.is_dir());
        found.ok_or_else(|| Failure::Usage(format!("{option} {}: it is no folder", path.display())))
    };
    let home = folder("--home", &args.home)?;
    if let Some(out) = &args.out {
        std::fs::create_dir_all(out)
            .map_err(|why| Failure::Usage(format!("--out {}: {why}", out.display())))?;
    }
    let out = args.out.as_deref().map(|path| folder("--out", path)).transpose()?;
    let tree = input::begun(&input::definition(&args.file)?, &home)?;
    let started = Clock::now();
    let made = job_files(&tree, out.as_deref());
    let seconds = started.elapsed().as_secs_f64();
    let per_second = made.written as f64 / seconds.max(f64::MIN_POSITIVE);
    if args.json {
        let all = json!({
            "schema": 1, "written": made.written, "without_script": made.passed,
            "errors": made.errors, "seconds": seconds, "jobs_per_s": per_second,
        });
        out::print(format_args!("{all}\n"))?;
    } else {
        made.errors.iter().for_each(|error| out::note(error.trim_end()));
        let passed = match made.passed {
            0 => String::new(),
            passed => format!(", {passed} without a script"),
        };
        let failed = match made.errors.len() {
            0 => String::new(),
            failed => format!(", {failed} could not be made"),
        };
        let written = many(made.written, "job");
        out::print(format_args!("{written} written in {seconds:.2} s{passed}{failed}\n"))?;
    }
    Ok(if made.errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(NOT_ALL) })
}
