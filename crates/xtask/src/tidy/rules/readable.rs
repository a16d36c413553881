//! Rules that look at syntax pass over a file that has none; this one does not.

use super::Rule;
use crate::tidy::tree::{Finding, Tree};

pub(super) const RULE: Rule = Rule {
    name: "readable",
    doc: "Every Rust file parses, since a file that does not is one that no rule looks into.",
    check,
};

fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.rust() {
        if let Err(error) = file.syntax() {
            let advice = format!("mend the syntax: {error}");
            found.push(file.finding(error.span().start().line, advice));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn a_file_that_does_not_parse_is_reported_where_it_breaks() {
        assert!(lines(&RULE, &[("a.rs", "fn f() {}\n")]).is_empty());
        assert_eq!(lines(&RULE, &[("a.rs", "fn f() {}\nfn fn() {}\n")]), [2]);
    }
}
