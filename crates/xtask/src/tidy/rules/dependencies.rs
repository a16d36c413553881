//! Packages that Loadline does without, each with the reason.

use super::Rule;
use crate::tidy::manifest::dependencies;
use crate::tidy::tree::{Finding, Tree};

/// The packages and why not.
const FORBIDDEN: &[(&str, &str)] = &[("bincode", "it is unmaintained")];

pub(super) const RULE: Rule = Rule {
    name: "dependencies",
    doc: "No package that was decided against comes in, neither by us nor by a dependency.",
    check,
};

fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (package, why) in FORBIDDEN {
        let advice = format!("do without `{package}`: {why}");
        for file in tree.files().filter(|file| file.name() == "Cargo.toml") {
            let named = dependencies(file).into_iter().filter(|d| d.package == *package);
            found.extend(named.map(|dependency| file.finding(dependency.line, &advice)));
        }
        let row = format!("name = \"{package}\"");
        for file in tree.files().filter(|file| file.name() == "Cargo.lock") {
            let locked = file.lines().filter(|(_, line)| *line == row);
            found.extend(locked.map(|(line, _)| file.finding(line, &advice)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn a_forbidden_package_is_found_in_manifests_and_in_the_lock() {
        let top = "[workspace.dependencies]\nbincode = \"2\"\n";
        let lock = "[[package]]\nname = \"bincode\"\nversion = \"2.0.0\"\n";
        let other = "[dependencies]\nbincode-next = \"1\"\n";
        let files = [("Cargo.lock", lock), ("Cargo.toml", top), ("crates/a/Cargo.toml", other)];
        assert_eq!(lines(&RULE, &files), [2, 2]);
    }
}
