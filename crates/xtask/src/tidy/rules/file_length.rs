//! A Rust file has at most 600 lines: one that grows past that has a second subject in it.

use super::Rule;
use crate::tidy::tree::{Finding, Tree};

const LIMIT_LINES: usize = 600;

pub(super) const RULE: Rule = Rule {
    name: "file-length",
    doc: "A Rust file has at most 600 lines: past that, it has more than one subject.",
    check,
};

fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.rust() {
        let count = file.lines().count();
        if count > LIMIT_LINES {
            let advice = format!("split this file of {count} lines by subject ({LIMIT_LINES})");
            found.push(file.finding(LIMIT_LINES + 1, advice));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn a_file_may_have_six_hundred_lines_and_no_more() {
        let (most, over) = ("\n".repeat(600), "\n".repeat(601));
        assert_eq!(lines(&RULE, &[("a.rs", &most), ("b.rs", &over), ("c.md", &over)]), [601]);
    }
}
