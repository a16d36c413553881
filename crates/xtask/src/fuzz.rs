//! `cargo xtask fuzz`: runs every fuzz target for a while. It needs a nightly compiler and
//! cargo-fuzz, which nothing else does; where one is missing it prints the line that installs it.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::process::{NIGHTLY, Needed, need, nightly, repository, run as run_command};

/// Which targets, and for how long.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask fuzz                          every target for half a minute
  cargo xtask fuzz cache_text --seconds 3600

What was found lies in fuzz/artifacts/TARGET and is run again with
  cargo +nightly fuzz run TARGET FILE")]
pub(crate) struct Args {
    /// Only these targets, by name
    names: Vec<String>,
    /// How long each is run
    #[arg(long, value_name = "N", default_value_t = 30)]
    seconds: u64,
    /// Only build them
    #[arg(long)]
    build: bool,
}

/// What runs the targets.
const CARGO_FUZZ: Needed =
    ("cargo-fuzz", &["cargo", "fuzz", "--version"], "cargo install cargo-fuzz --locked");

pub(crate) fn run(args: &Args) -> Result<()> {
    let targets = targets()?;
    if let Some(unknown) = args.names.iter().find(|name| !targets.contains(name)) {
        bail!("there is no fuzz target \"{unknown}\"; there are {}", targets.join(", "));
    }
    need(&[NIGHTLY, CARGO_FUZZ])?;
    let wanted = |name: &&String| args.names.is_empty() || args.names.contains(name);
    let mut failed = Vec::new();
    for name in targets.iter().filter(wanted) {
        let task = if args.build { "build" } else { "run" };
        let mut command = nightly();
        command.args(["cargo", "fuzz", task, name.as_str()]).current_dir(repository());
        if !args.build {
            eprintln!("{name}: {} s", args.seconds);
            command.args(["--", &format!("-max_total_time={}", args.seconds)]);
        }
        // What one has found keeps no other from looking.
        if let Err(error) = run_command(&mut command) {
            eprintln!("{name}: {error:#}");
            failed.push(&name[..]);
        }
    }
    match &failed[..] {
        [] => Ok(()),
        failed => bail!("{} found something: see above", failed.join(", ")),
    }
}

/// Every target, in the order of their names.
fn targets() -> Result<Vec<String>> {
    let folder = repository().join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_stands_in_the_manifest() {
        let manifest = fs::read_to_string(repository().join("fuzz/Cargo.toml")).unwrap();
        let targets = targets().unwrap();
        assert!(!targets.is_empty());
        for name in targets {
            assert!(manifest.contains(&format!("name = \"{name}\"\n")), "{name}");
        }
    }
}
