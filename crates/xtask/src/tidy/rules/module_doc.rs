//! Every Rust file begins by saying what it is for.

use super::Rule;
use crate::tidy::tree::{Finding, Tree};

pub(super) const RULE: Rule = Rule {
    name: "module-doc",
    doc: "A Rust file begins with `//!`: what it is for, and what it leaves to others.",
    check,
};

fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.rust() {
        let head = file.lines().find(|(_, line)| !line.trim().is_empty());
        let text = head.and_then(|(_, line)| line.strip_prefix("//!"));
        if text.is_none_or(|text| text.trim().is_empty()) {
            found.push(file.finding(1, "begin the file with `//!` and what it is for"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn the_first_line_is_the_doc() {
        assert!(lines(&RULE, &[("a.rs", "//! What it is for.\nfn f() {}\n")]).is_empty());
        assert_eq!(lines(&RULE, &[("a.rs", "fn f() {}\n//! Late.\n")]), [1]);
        assert_eq!(lines(&RULE, &[("a.rs", "//!\nfn f() {}\n")]), [1]);
        assert_eq!(lines(&RULE, &[("a.rs", "")]), [1]);
    }
}
