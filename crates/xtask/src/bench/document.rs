//! Blocks of documents that are written by programs: `<!-- NAME -->` … `<!-- end -->`.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::{output, repository};

/// Writes the block of this name in a document, whose path is from the repository's root.
pub(crate) fn write(document: &str, name: &str, figures: &str) -> Result<()> {
    let path = repository().join(document);
    let text = fs::read_to_string(&path).with_context(|| document.to_owned())?;
    let written = replace(&text, name, figures)
        .with_context(|| format!("{document} has no markers for {name}"))?;
    fs::write(&path, written).with_context(|| document.to_owned())
}

/// Returns the document with the block of this name replaced; `None` without its markers.
pub(crate) fn replace(text: &str, name: &str, figures: &str) -> Option<String> {
    let old = block(text, name)?;
    let start = old.as_ptr() as usize - text.as_ptr() as usize;
    let end = start + old.len();
    Some(format!("{}{figures}{}", &text[..start], &text[end..]))
}

/// Returns the text of the block of this name.
pub(crate) fn block<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let begin = format!("<!-- {name} -->\n");
    let start = text.find(&begin)? + begin.len();
    let length = text[start..].find("<!-- end -->")?;
    Some(&text[start..start + length])
}

/// Returns the commit that a block's figures were measured at.
pub(super) fn commit_of(block: &str) -> Option<&str> {
    let line = block.lines().rev().find_map(|line| line.strip_prefix("Commit "))?;
    line.split([',', ' ']).next()
}

/// Returns the present commit, and whether the tree differs from it in more than documents.
pub(crate) fn commit() -> Result<String> {
    let git = |arguments: &[&str]| output(Command::new("git").args(arguments));
    let commit = git(&["rev-parse", "--short", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--", "crates", "suites", "Cargo.lock"])?;
    let mark = if changed.trim().is_empty() { "" } else { " with changes" };
    Ok(format!("{}{mark}", commit.trim()))
}

/// Returns the host in a line.
pub(crate) fn host() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{cores} cores of {}, Linux {}", model.unwrap_or("an unseen CPU"), kernel.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_block_between_the_markers_is_replaced() {
        let text = "a\n<!-- bench:x -->\nold\n<!-- end -->\nb\n<!-- bench:y -->\n<!-- end -->\n";
        let new = "a\n<!-- bench:x -->\nnew\n<!-- end -->\nb\n<!-- bench:y -->\n<!-- end -->\n";
        assert_eq!(replace(text, "bench:x", "new\n").as_deref(), Some(new));
        assert_eq!(replace(text, "bench:z", "new\n"), None);
        assert_eq!(block(text, "bench:y"), Some(""));
    }

    #[test]
    fn a_block_ends_with_the_commit_of_its_figures() {
        assert_eq!(commit_of("1 ns\nCommit 12ab, 2 cores\n"), Some("12ab"));
        assert_eq!(commit_of("1 ns\nCommit 12ab with changes, 2 cores\n"), Some("12ab"));
        assert_eq!(commit_of(""), None);
    }
}
