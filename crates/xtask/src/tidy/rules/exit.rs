//! A program ends where it begins: in the command's `main`. An exit anywhere else skips
//! destructors, which is how servers are left running and files half written.

use super::Rule;
use crate::tidy::names::mentions;
use crate::tidy::tree::{Finding, Tree};

const ALLOWED: &str = "crates/loadline/src/main.rs";

pub(super) const RULE: Rule = Rule {
    name: "exit",
    doc: "Only the command's `main.rs` ends the process; all else returns an error to it.",
    check,
};

fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.rust().filter(|file| file.path != ALLOWED) {
        for (line, name) in mentions(file, &["process::exit", "process::abort"]) {
            found.push(file.finding(line, format!("return an error in place of `{name}`")));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn only_main_exits() {
        let text = "fn f() {\n    std::process::exit(1)\n}\n";
        assert_eq!(lines(&RULE, &[("crates/lab/src/plan.rs", text)]), [2]);
        assert!(lines(&RULE, &[(ALLOWED, text)]).is_empty());
        assert_eq!(lines(&RULE, &[("a.rs", "use std::process::{Command, exit};")]), [1]);
        assert!(lines(&RULE, &[("a.rs", "use std::process::ExitCode;")]).is_empty());
    }
}
