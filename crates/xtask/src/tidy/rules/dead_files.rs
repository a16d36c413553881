//! Files that nothing leads to: a Rust file that no `mod` names is not even compiled, and a
//! page or a suite that no other page and no test names will not be found by a reader.

use std::collections::BTreeSet;

use super::Rule;
use crate::tidy::manifest::{Manifest, packages};
use crate::tidy::modules::Modules;
use crate::tidy::tree::{File, Finding, Tree};

pub(super) const RULE: Rule = Rule {
    name: "dead-files",
    doc: "Some `mod` names each Rust file, and a page or a test each page and suite.",
    check,
};

fn check(tree: &Tree) -> Vec<Finding> {
    let mut found: Vec<Finding> = packages(tree).flat_map(|p| uncompiled(tree, &p)).collect();
    let is_page = |file: &&File| file.path.starts_with("docs/") || file.path.starts_with("suites/");
    for file in tree.files().filter(is_page) {
        if !tree.files().any(|other| other.path != file.path && refers(other, file.name())) {
            let advice = "name this file in a page of docs/, a README or a test, or remove it";
            found.push(file.finding(1, advice));
        }
    }
    found
}

/// Whether this is a file that leads readers or tests to others, and leads to that name.
fn refers(file: &File, name: &str) -> bool {
    let leads =
        file.name() == "Makefile" || file.path.ends_with(".md") || file.path.ends_with(".rs");
    let inside = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    let ends_there = |rest: &str| {
        let mut rest = rest.chars();
        match rest.next() {
            Some('.') => !rest.next().is_some_and(char::is_alphanumeric),
            next => !next.is_some_and(inside),
        }
    };
    leads
        && file.text.match_indices(name).any(|(start, _)| {
            let (before, after) = file.text.split_at(start);
            !before.ends_with(inside) && ends_there(&after[name.len()..])
        })
}

/// The Rust files under a package's `src/` that its roots do not reach.
fn uncompiled(tree: &Tree, package: &Manifest) -> Vec<Finding> {
    let folder = package.folder();
    let source = format!("{folder}src/");
    let inside: Vec<&File> = tree.rust().filter(|file| file.path.starts_with(&source)).collect();
    let stated = package.stated_roots();
    let mut reached = BTreeSet::new();
    for file in &inside {
        let below = &file.path[source.len()..];
        let is_program = below.starts_with("bin/")
            && (below.split('/').count() == 2 || below.ends_with("/main.rs"));
        let is_stated = stated.iter().any(|path| format!("{folder}{path}") == file.path);
        if ["lib.rs", "main.rs"].contains(&below) || is_program || is_stated {
            let modules = Modules::of(tree, file);
            reached.extend(modules.iter().map(|(_, module)| module.file.clone()));
        }
    }
    let dead = inside.into_iter().filter(|file| !reached.contains(&file.path));
    dead.map(|file| file.finding(1, "name this file with a `mod`, or remove it")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).into_iter().map(|finding| finding.path).collect()
    }

    const MANIFEST: (&str, &str) = ("crates/a/Cargo.toml", "[package]\nname = \"a\"\n");

    #[test]
    fn a_file_that_no_mod_names_is_dead() {
        let found = dead(&[
            MANIFEST,
            ("crates/a/src/lib.rs", "mod one;\nmod two { mod three; }\n#[path = \"x.rs\"] mod y;"),
            ("crates/a/src/one.rs", "mod under;"),
            ("crates/a/src/one/under.rs", ""),
            ("crates/a/src/one/over.rs", ""),
            ("crates/a/src/two/three/mod.rs", "mod four;"),
            ("crates/a/src/two/three/four.rs", ""),
            ("crates/a/src/x.rs", ""),
            ("crates/a/src/bin/tool.rs", ""),
            ("crates/a/src/bin/tool/part.rs", ""),
            ("crates/a/tests/black_box.rs", ""),
        ]);
        assert_eq!(found, ["crates/a/src/one/over.rs", "crates/a/src/bin/tool/part.rs"]);
    }

    #[test]
    fn a_page_or_suite_that_nothing_names_is_dead() {
        let found = dead(&[
            ("README.md", "See [the page](docs/page.md) and suites/tour.toml."),
            ("docs/page.md", "Itself: page.md; another: [other](other.md#part)"),
            ("docs/other.md", ""),
            ("docs/lost.md", "lost.md names itself, and not-lost.md is another"),
            ("suites/tour.toml", ""),
            ("suites/tested.toml", ""),
            ("suites/untested.toml", ""),
            ("crates/a/tests/all.rs", "const SUITE: &str = \"suites/tested.toml\";"),
        ]);
        assert_eq!(found, ["docs/lost.md", "suites/untested.toml"]);
    }
}
