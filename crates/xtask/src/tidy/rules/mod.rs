//! The index of the rules. A rule is one file: what it is called, why it is there, how it is
//! checked, and tests that show what it finds and what it lets pass.

mod arrows;
mod circles;
mod dead_files;
mod dependencies;
mod description;
mod file_length;
mod fuzz_lock;
mod lints;
mod local_names;
mod module_doc;
mod purity;
mod unsafety;
mod width;

use super::tree::{Finding, Tree};

/// One rule.
pub(crate) struct Rule {
    /// Its name, as findings carry it.
    pub(crate) name: &'static str,
    /// What it asks for and why, in a sentence or two.
    pub(crate) doc: &'static str,
    /// Checks a tree and returns what to tidy.
    pub(crate) check: fn(&Tree) -> Vec<Finding>,
}

/// All rules, by name.
pub(crate) const RULES: &[Rule] = &[
    arrows::RULE,
    circles::RULE,
    dead_files::RULE,
    dependencies::RULE,
    description::RULE,
    file_length::RULE,
    fuzz_lock::RULE,
    lints::RULE,
    local_names::RULE,
    module_doc::RULE,
    purity::RULE,
    unsafety::RULE,
    width::RULE,
];

/// The services, with the one that measures the lab; they have the same modules and keep the same
/// rules.
const SERVICES: &[&str] = &["cache", "conditions", "null", "records", "rpc", "workflow"];

/// What a rule's test wants to know: the lines on which the rule finds something.
#[cfg(test)]
fn lines(rule: &Rule, files: &[(&str, &str)]) -> Vec<usize> {
    (rule.check)(&Tree::of(files)).iter().map(|finding| finding.line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_sorted_and_say_what_they_are_for() {
        assert!(RULES.is_sorted_by_key(|rule| rule.name));
        for rule in RULES {
            assert!(rule.doc.ends_with('.'), "{}", rule.name);
            assert!(rule.name.bytes().all(|b| b == b'-' || b.is_ascii_lowercase()));
        }
    }
}
