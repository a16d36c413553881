//! The compiler's own checks are set once, in the workspace (`missing_docs` among them); this
//! rule sees that every package takes them and that none turns the docs off again.

use super::Rule;
use crate::tidy::manifest::packages;
use crate::tidy::names::mentions;
use crate::tidy::tree::{Finding, Tree};

pub(super) const RULE: Rule = Rule {
    name: "lints",
    doc: "Every crate has `[lints] workspace = true`, and none allows undocumented items.",
    check,
};

fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    let crates = || packages(tree).filter(|package| package.folder().starts_with("crates/"));
    for package in crates().filter(|package| !package.takes_lints()) {
        found.push(package.file.finding(1, "add `[lints]` with `workspace = true`"));
    }
    for file in tree.rust() {
        for (line, lint) in mentions(file, &["missing_docs"]) {
            found.push(file.finding(line, format!("document the items; leave `{lint}` be")));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn a_crate_takes_the_lints() {
        let bare = "[package]\nname = \"one\"\n";
        let good = format!("{bare}[lints]\nworkspace = true\n");
        assert!(lines(&RULE, &[("crates/one/Cargo.toml", &good)]).is_empty());
        assert_eq!(lines(&RULE, &[("crates/one/Cargo.toml", bare)]), [1]);
        // The fuzz package stands outside the workspace and has no lints to take.
        assert!(lines(&RULE, &[("fuzz/Cargo.toml", bare)]).is_empty());
    }

    #[test]
    fn docs_are_not_turned_off() {
        let text = "//! Doc.\n#![allow(missing_docs)]\n";
        assert_eq!(lines(&RULE, &[("crates/one/src/lib.rs", text)]), [2]);
    }
}
