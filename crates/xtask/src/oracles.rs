//! `cargo xtask oracles`: asks other programs again what they say of generated cases, and holds it
//! against the tables that tests read. Needs Python's registry once, for what takes 200 MB; so the
//! tests themselves read the tables.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{peers, process};

/// The flags of `cargo xtask oracles`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write the tables anew instead
    #[arg(long)]
    write: bool,
}

/// The folders of scripts that print a table, each beside its table.
const ORACLES: &[&str] = &["crates/judge/tests/scipy", "crates/judge/tests/otava"];

/// What the scripts ask, in the versions with which the tables were written to the last digit.
const PACKAGES: &[&str] = &["apache-otava==0.8.0", "asv==0.6.6", "numpy==2.2.0", "scipy==1.16.3"];

/// Asks them all.
pub(crate) fn run(args: &Args) -> Result<()> {
    let repository = process::repository();
    println!("asking {}", PACKAGES.join(", "));
    let python = peers::environment(&repository.join("target"), "oracles", PACKAGES)?;
    let mut differing = 0;
    for oracle in ORACLES {
        let folder = repository.join(oracle);
        let asked = Command::new(&python).arg(folder.join("make.py")).output();
        let asked = asked.with_context(|| format!("{oracle}/make.py"))?;
        if !asked.status.success() {
            bail!("{oracle}/make.py failed:\n{}", String::from_utf8_lossy(&asked.stderr));
        }
        let table = folder.join("table.tsv");
        if args.write {
            fs::write(&table, &asked.stdout).with_context(|| table.display().to_string())?;
            println!("wrote {}", table.display());
            continue;
        }
        differing += compare(&table, &String::from_utf8(asked.stdout)?)?;
    }
    match differing {
        0 => Ok(()),
        _ => bail!("{differing} cases differ; `cargo xtask oracles --write` takes the new ones"),
    }
}

/// How many cases differ from the table's, with the first of them.
fn compare(table: &Path, now: &str) -> Result<usize> {
    let before = fs::read_to_string(table).with_context(|| table.display().to_string())?;
    let differing = differing(&before, now);
    println!("{}: {} of {} cases differ", table.display(), differing.len(), now.lines().count());
    if let Some((before, now)) = differing.first() {
        println!("  in the table: {before}\n  now:          {now}");
    }
    Ok(differing.len())
}

fn differing<'a>(before: &'a str, now: &'a str) -> Vec<(&'a str, &'a str)> {
    let (mut before, mut now) = (before.lines(), now.lines());
    let mut all = Vec::new();
    loop {
        match (before.next(), now.next()) {
            (None, None) => return all,
            (a, b) if a == b => {}
            (a, b) => all.push((a.unwrap_or("nothing"), b.unwrap_or("nothing"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_a_missing_and_a_new_case_differ() {
        assert_eq!(differing("a\nb\n", "a\nb\n"), []);
        assert_eq!(differing("a\nb\n", "a\nc\nd\n"), [("b", "c"), ("nothing", "d")]);
        assert_eq!(differing("a\nb\n", "a\n"), [("b", "nothing")]);
    }

    #[test]
    fn every_oracle_has_its_script_and_its_table() {
        for oracle in ORACLES {
            let folder = process::repository().join(oracle);
            assert!(folder.join("make.py").is_file() && folder.join("table.tsv").is_file());
        }
    }
}
