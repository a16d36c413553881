//! A registry takes no package that doesn't say what it is.

use super::Rule;
use crate::tidy::manifest::packages;
use crate::tidy::tree::{Finding, Tree};

pub(super) const RULE: Rule = Rule {
    name: "description",
    doc: "Every crate has a `description`, without which it can't be published.",
    check,
};

fn check(tree: &Tree) -> Vec<Finding> {
    let crates = packages(tree).filter(|package| package.folder().starts_with("crates/"));
    let lacking = crates.filter(|package| !package.has_description());
    let advice = "add a `description`: what the crate is, in a sentence";
    lacking.map(|package| package.file.finding(1, advice)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn a_crate_says_what_it_is() {
        let bare = "[package]\nname = \"one\"\n";
        let good = format!("{bare}description = \"One of many\"\n");
        assert!(lines(&RULE, &[("crates/one/Cargo.toml", &good)]).is_empty());
        assert_eq!(lines(&RULE, &[("crates/one/Cargo.toml", bare)]), [1]);
        assert!(lines(&RULE, &[("fuzz/Cargo.toml", bare)]).is_empty(), "it is never published");
    }
}
