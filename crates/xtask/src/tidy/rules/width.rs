//! Rust lines fit in 100 columns. The formatter sees to code; this sees to what it leaves
//! alone: comments and strings.

use super::Rule;
use crate::tidy::tree::{Finding, Tree};

const LIMIT_COLUMNS: usize = 100;

/// Lines that cannot break: the file, a part of the line, and why. Keep it tiny.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

pub(super) const RULE: Rule = Rule {
    name: "width",
    doc: "A Rust line is at most 100 columns wide, so that two files fit beside each other.",
    check,
};

fn check(tree: &Tree) -> Vec<Finding> {
    check_but(tree, EXCEPTIONS)
}

fn check_but(tree: &Tree, exceptions: &[(&str, &str, &str)]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut used = vec![false; exceptions.len()];
    for file in tree.rust() {
        for (number, line) in file.lines() {
            let columns = line.chars().count();
            if columns <= LIMIT_COLUMNS {
                continue;
            }
            let applies =
                |(path, part, _): &(&str, &str, &str)| *path == file.path && line.contains(part);
            match exceptions.iter().position(applies) {
                Some(index) => used[index] = true,
                None => {
                    let advice = format!("break this line of {columns} columns ({LIMIT_COLUMNS})");
                    found.push(file.finding(number, advice));
                }
            }
        }
    }
    for ((path, part, _), _) in exceptions.iter().zip(used).filter(|(_, used)| !used) {
        let advice = format!("drop the exception for `{part}`: no line needs it any more");
        found.push(Finding { path: (*path).to_owned(), line: 1, advice });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn a_line_may_have_a_hundred_columns_and_no_more() {
        let text = format!("{}\n{}\n{}\n", "é".repeat(100), "x".repeat(101), "x");
        assert_eq!(lines(&RULE, &[("a.rs", &text), ("a.md", &text)]), [2]);
    }

    #[test]
    fn an_exception_covers_its_line_and_is_reported_when_idle() {
        let text = format!("// here {}\n", "x".repeat(100));
        let tree = Tree::of(&[("a.rs", &text)]);
        assert!(check_but(&tree, &[("a.rs", "here", "a reason")]).is_empty());
        assert_eq!(check_but(&tree, &[("a.rs", "there", "a reason")]).len(), 2);
    }
}
