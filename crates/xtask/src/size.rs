//! `cargo xtask size`: how large the program is that is shipped, how long it takes to build, and
//! what each of its optional features adds to both.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::{process, step};

/// The flags of `cargo xtask size`.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// A build: megabytes of the program, and seconds.
#[derive(Clone, Copy)]
struct Built {
    megabytes: f64,
    seconds: f64,
}

/// Builds everything anew, in a folder of its own, and then once more with each feature.
pub(crate) fn run(_: &Args) -> Result<()> {
    let folder = process::target().join("size");
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let features = features()?;
    let bare = build(&folder, &[])?;
    let with = features.iter().map(|name| Ok((name.as_str(), build(&folder, &[name])?)));
    let with = with.collect::<Result<Vec<_>>>()?;
    print!("{}", table(bare, &with));
    Ok(())
}

/// The optional features of the command.
fn features() -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Manifest {
        features: BTreeMap<String, Vec<String>>,
    }
    let path = process::repository().join("crates/loadline/Cargo.toml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let manifest: Manifest = toml::from_str(&text).with_context(|| path.display().to_string())?;
    Ok(manifest.features.into_keys().filter(|name| name != "default").collect())
}

fn build(folder: &Path, features: &[&str]) -> Result<Built> {
    let mut cargo = step::cargo();
    cargo.args(["build", "--release", "--locked", "--package", "loadline", "--target-dir"]);
    cargo.arg(folder).args(["--features", &features.join(",")]);
    let start = Instant::now();
    process::run(&mut cargo)?;
    let seconds = start.elapsed().as_secs_f64();
    let bytes = fs::metadata(folder.join("release/loadline"))?.len();
    Ok(Built { megabytes: bytes as f64 / 1e6, seconds })
}

/// The whole program, and what each feature adds: its seconds are those of a build after one
/// without it.
fn table(bare: Built, with: &[(&str, Built)]) -> String {
    let mut text = format!("{:<14} {:>8} {:>9}\n", "release", "MB", "seconds");
    let Built { megabytes, seconds } = bare;
    text.push_str(&format!("{:<14} {megabytes:>8.1} {seconds:>9.0}\n", "loadline"));
    for (name, built) in with {
        let (more, seconds) = (built.megabytes - bare.megabytes, built.seconds);
        text.push_str(&format!("{:<14} {more:>+8.1} {seconds:>+9.0}\n", format!("+ {name}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_is_shown_by_what_it_adds() {
        let bare = Built { megabytes: 16.84, seconds: 287.0 };
        let more = Built { megabytes: 19.9, seconds: 101.0 };
        let lines = "release              MB   seconds\n\
                     loadline           16.8       287\n\
                     + parquet          +3.1      +101\n";
        assert_eq!(table(bare, &[("parquet", more)]), lines);
    }

    #[test]
    fn the_features_are_those_of_the_command() {
        assert!(features().unwrap().contains(&"parquet".to_owned()));
    }
}
