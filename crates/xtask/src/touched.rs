//! The unit tests of the crates that a change touches: the last step of `cargo xtask test --fast`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::{process, step};

/// Tests what was changed since the last commit, or by it where nothing was changed since.
pub(crate) fn test() -> Result<()> {
    let mut changed = git(&["diff", "--name-only", "HEAD"])?;
    changed.push_str(&git(&["ls-files", "--others", "--exclude-standard"])?);
    if changed.is_empty() {
        changed = git(&["diff", "--name-only", "HEAD^", "HEAD"])?;
    }
    let root = process::repository().join("crates");
    let folders = crates(&changed).into_iter().map(|name| root.join(name));
    let packages: Vec<_> = folders.filter_map(|at| Some((package(&at)?, at))).collect();
    if packages.is_empty() {
        println!("no crate is touched");
        return Ok(());
    }
    let mut cargo = step::cargo();
    cargo.args(["test", "--locked"]);
    // Cargo refuses --lib where none of the packages has a library.
    for (file, kind) in [("src/lib.rs", "--lib"), ("src/main.rs", "--bins")] {
        if packages.iter().any(|(_, folder)| folder.join(file).is_file()) {
            cargo.arg(kind);
        }
    }
    for (name, _) in &packages {
        cargo.args(["--package", name]);
    }
    process::run(&mut cargo)
}

/// The package in a folder; none where it was removed.
fn package(folder: &Path) -> Option<String> {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).ok()?;
    let name = |line: &str| line.strip_prefix("name = \"")?.strip_suffix('"').map(str::to_owned);
    manifest.lines().find_map(name)
}

/// The folders under `crates/` that hold these files.
fn crates(files: &str) -> BTreeSet<&str> {
    let below = files.lines().filter_map(|file| file.strip_prefix("crates/"));
    below.filter_map(|file| Some(file.split_once('/')?.0)).collect()
}

fn git(arguments: &[&str]) -> Result<String> {
    process::output(Command::new("git").args(arguments).current_dir(process::repository()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_touched_once_and_other_files_touch_none() {
        let files = "README.md\ncrates/wire/src/lib.rs\ncrates/wire/Cargo.toml\n\
                     crates/base/src/units.rs\ndocs/limits.md\ncrates/note.md\n";
        assert_eq!(crates(files), BTreeSet::from(["base", "wire"]));
        assert!(crates("").is_empty());
    }
}
