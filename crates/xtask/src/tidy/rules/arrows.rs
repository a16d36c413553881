//! Which crate may use which. The arrows point one way: the command knows all, services know
//! neither each other nor the lab, and what is pure or plain depends on nothing. Dependencies of
//! tests keep to the same arrows.

use super::{Rule, SERVICES};
use crate::tidy::manifest::{dependencies, packages};
use crate::tidy::tree::{Finding, Tree};

/// Who may use whom. The row `services` is every service's, and allows all of them where it is
/// named.
const ARROWS: &[(&str, &[&str])] = &[
    (
        "loadline",
        &[
            "report", "findings", "lab", "services", "service", "http", "ledger", "judge", "load",
            "wire", "base",
        ],
    ),
    ("lab", &["load", "wire", "base", "findings", "judge", "ledger"]),
    ("report", &["findings", "judge", "ledger", "base"]),
    ("findings", &["judge", "ledger"]),
    ("services", &["load", "service", "journal", "wire", "base"]),
    ("service", &["wire", "base"]),
    ("http", &["load", "wire", "base"]),
    ("load", &["wire", "base"]),
    ("journal", &["base"]),
    ("judge", &[]),
    ("ledger", &["base"]),
    ("wire", &["base"]),
    ("base", &[]),
    ("testing", &[]),
    ("xtask", &["judge", "testing"]),
];

pub(super) const RULE: Rule = Rule {
    name: "arrows",
    doc: "Crates use each other only along the arrows of ARCHITECTURE.md, in tests as well.",
    check,
};

fn check(tree: &Tree) -> Vec<Finding> {
    let crates = || packages(tree).filter(|package| package.folder().starts_with("crates/"));
    let ours: Vec<String> = crates().map(|package| package.name).collect();
    let mut found = Vec::new();
    for package in crates() {
        let row =
            if SERVICES.contains(&package.name.as_str()) { "services" } else { &package.name };
        let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == row) else {
            let advice = format!("give `{row}` a row in the table of arrows.rs");
            found.push(package.file.finding(1, advice));
            continue;
        };
        let may_use = |name: &str| {
            allowed.contains(&name) || (allowed.contains(&"services") && SERVICES.contains(&name))
        };
        for to in dependencies(package.file) {
            let helps_tests = to.is_dev && to.package == "testing";
            if ours.contains(&to.package) && !may_use(&to.package) && !helps_tests {
                let advice = format!("`{}` may not use `{}`", package.name, to.package);
                found.push(package.file.finding(to.line, advice));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    fn package(name: &str, rest: &str) -> (String, String) {
        (format!("crates/{name}/Cargo.toml"), format!("[package]\nname = \"{name}\"\n{rest}"))
    }

    fn found(packages: &[(String, String)]) -> Vec<usize> {
        let files: Vec<_> = packages.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
        lines(&RULE, &files)
    }

    #[test]
    fn an_arrow_of_the_table_passes() {
        let packages = [
            package("loadline", "[dependencies]\ncache.workspace = true\nlab.workspace = true\n"),
            package("cache", "[dependencies]\nwire.workspace = true\nbytes = \"1\"\n"),
            package("lab", "[dev-dependencies]\nwire.workspace = true\n"),
            package("wire", ""),
        ];
        assert!(found(&packages).is_empty());
    }

    #[test]
    fn an_arrow_that_points_elsewhere_is_found_in_tests_too() {
        let packages = [
            package("cache", "[dev-dependencies]\nlab.workspace = true\n"),
            package("lab", "[dependencies]\ncache.workspace = true\n"),
            package("wire", "[dependencies]\nnewcomer = { path = \"../newcomer\" }\n"),
            package("newcomer", ""),
        ];
        assert_eq!(found(&packages), [4, 4, 4, 1]);
    }
}
