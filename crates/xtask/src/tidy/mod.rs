//! `cargo xtask tidy`: taste that a machine can check, so that a review can look at the rest.
//! The idea is TigerBeetle's (`src/tidy.zig`). Each rule is one file under `rules/`, with its
//! tests beside it; `tree` holds the files, `names` and `manifest` read them.

mod manifest;
mod modules;
mod names;
mod rules;
mod tree;

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::process;
use rules::{RULES, Rule};
use tree::Tree;

/// The flags of `cargo xtask tidy`.
#[derive(Default, clap::Args)]
pub(crate) struct Args {
    /// Print the rules and what each is for, and check nothing
    #[arg(long)]
    list: bool,
    /// The tree to check; this repository by default
    #[arg(long)]
    root: Option<PathBuf>,
}

/// Checks the tree and prints one line for each finding on stdout.
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.list {
        for Rule { name, doc, .. } in RULES {
            println!("{name}\n    {doc}");
        }
        return Ok(());
    }
    let root = args.root.clone().unwrap_or_else(process::repository);
    let lines = findings(&Tree::read(&root)?);
    for line in &lines {
        println!("{line}");
    }
    match lines.len() {
        0 => Ok(()),
        1 => bail!("one thing to tidy"),
        count => bail!("{count} things to tidy"),
    }
}

/// Every finding of every rule as `file:line: rule: what to do`, in the order of the files.
fn findings(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for rule in RULES {
        found.extend((rule.check)(tree).into_iter().map(|finding| (finding, rule.name)));
    }
    found.sort();
    let line = |(finding, rule): &(tree::Finding, &str)| {
        format!("{}:{}: {rule}: {}", finding.path, finding.line, finding.advice)
    };
    found.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_sorted_by_file_then_line() {
        let wide = "x".repeat(101);
        let tree = Tree::of(&[
            ("b.rs", &format!("//! B.\n// {wide}\n")),
            ("a.rs", &format!("//! A.\n\n// {wide}\n// {wide}\n")),
        ]);
        // Rules may miss files that only the repository has.
        let lines: Vec<_> = findings(&tree).into_iter().filter(|l| l.contains("width")).collect();
        let heads: Vec<_> = lines.iter().map(|line| &line[..12]).collect();
        assert_eq!(heads, ["a.rs:3: widt", "a.rs:4: widt", "b.rs:2: widt"]);
    }
}
