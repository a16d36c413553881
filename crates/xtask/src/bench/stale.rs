//! `cargo xtask bench --stale`: the figures whose measured crates or suite have changed since their
//! commit, in more than tests and documentation.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use super::document::{block, commit_of};
use super::rows::{ROWS, Row, Shown};
use crate::process::{output, repository, succeeds};

/// Prints a line for each row whose figures are stale, and their number.
pub(super) fn list() -> Result<()> {
    let mut count = 0;
    for row in ROWS {
        if let Some(why) = why(row)? {
            println!("{:<22} {why}", row.name);
            count += 1;
        }
    }
    println!("{count} of {} are stale; measure them: cargo xtask bench NAME …", ROWS.len());
    Ok(())
}

/// The reason why a row's figures are stale; `None` when they are not.
fn why(row: &Row) -> Result<Option<String>> {
    if matches!(row.shown, Shown::Bare) {
        return Ok(None);
    }
    let document = row.document();
    let text = fs::read_to_string(repository().join(&document)).context(document)?;
    let figures = block(&text, &row.marker()).unwrap_or_default();
    let Some(commit) = commit_of(figures) else { return Ok(Some("never measured".to_owned())) };
    if !succeeds(&mut git(&["cat-file", "-e", &format!("{commit}^{{commit}}")])) {
        return Ok(Some(format!("{commit}  this clone has no such commit")));
    }
    let mut changed: Vec<&str> = Vec::new();
    for name in row.crates {
        let (source, manifest) =
            (format!("crates/{name}/src"), format!("crates/{name}/Cargo.toml"));
        if differs(commit, &[&source, &manifest]) {
            changed.push(name);
        }
    }
    let suite = row.run.split(' ').find(|word| word.ends_with(".toml"));
    changed.extend(suite.filter(|suite| differs(commit, &[suite])));
    if changed.is_empty() {
        return Ok(None);
    }
    let since = output(&mut git(&["rev-list", "--count", &format!("{commit}..HEAD")]))?;
    let (since, changed) = (since.trim(), changed.join(", "));
    Ok(Some(format!("{commit}  {since} commits ago; changed since: {changed}")))
}

/// Whether one of these paths isn't what it was at a commit.
fn differs(commit: &str, paths: &[&str]) -> bool {
    !succeeds(git(&["diff", "--quiet", commit, "HEAD", "--"]).args(paths))
}

fn git(arguments: &[&str]) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(repository()).args(arguments);
    git
}
