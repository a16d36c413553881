//! Files of a crate don't depend on each other in a circle: a reader of one of them would have to
//! read all. What two files share lies in a file below both.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;

use super::Rule;
use crate::tidy::manifest::packages;
use crate::tidy::modules::{ModulePath, Modules, Resolved, for_tests};
use crate::tidy::tree::{Finding, Tree};

/// Registries: one table, whose rows know what a row is. The rows are files of that folder.
const REGISTRIES: &[(&str, &str, &str)] = &[
    (
        "crates/cache/src/protocol/text/mod.rs",
        "crates/cache/src/protocol/text/",
        "the table names the row of each command, and each row returns a command",
    ),
    (
        "crates/xtask/src/credibility/checks/mod.rs",
        "crates/xtask/src/credibility/checks/",
        "the index names the judge of each check, and judges read and return its types",
    ),
    (
        "crates/xtask/src/tidy/rules/mod.rs",
        "crates/xtask/src/tidy/rules/",
        "the index names each rule, and each rule is a row of its type",
    ),
];

pub(super) const RULE: Rule = Rule {
    name: "circles",
    doc: "Files depend in a circle only where one is a registry (a table) and the others its rows.",
    check,
};

fn check(tree: &Tree) -> Vec<Finding> {
    check_but(tree, REGISTRIES)
}

/// Which files a file depends on, with the line and the path that say so.
type Edges = BTreeMap<String, BTreeMap<String, (usize, String)>>;

fn check_but(tree: &Tree, registries: &[(&str, &str, &str)]) -> Vec<Finding> {
    let mut found = Vec::new();
    for package in packages(tree) {
        if !package.folder().starts_with("crates/") {
            continue;
        }
        for root in ["src/lib.rs", "src/main.rs"] {
            let Some(root) = tree.file(&format!("{}{root}", package.folder())) else { continue };
            let mut edges = edges(tree, &Modules::of(tree, root));
            for (registry, folder, _) in registries {
                for (from, to) in &mut edges {
                    if from.starts_with(folder) && from != registry {
                        to.remove(*registry);
                    }
                }
            }
            found.extend(circles(&edges).iter().map(|circle| finding(circle, &edges)));
        }
    }
    found
}

fn finding(circle: &[String], edges: &Edges) -> Finding {
    let short = |path: &str| path.split_once("/src/").map_or(path, |(_, rest)| rest).to_owned();
    let mut steps = Vec::new();
    for (from, to) in circle.iter().zip(circle.iter().cycle().skip(1)) {
        let (line, path) = &edges[from][to];
        steps.push(format!("{}:{line} has {path} of {}", short(from), short(to)));
    }
    let advice = format!("a circle of files ({}); move what they share below", steps.join(", "));
    Finding { path: circle[0].clone(), line: edges[&circle[0]][&circle[1]].0, advice }
}

/// The dependencies between the files of one crate, tests left out.
fn edges(tree: &Tree, modules: &Modules) -> Edges {
    let mut edges: Edges = BTreeMap::new();
    for (path, module) in modules.iter().filter(|(_, module)| !module.is_test) {
        let mut named: Vec<(usize, Vec<String>)> = Vec::new();
        // A re-export belongs to the file that uses it.
        let own = module.imports().iter().filter(|import| !import.is_reexport);
        named.extend(own.map(|import| (import.line, import.path.clone())));
        if let Some(file) = tree.file(&module.file) {
            named.extend(paths(file, modules, path));
        }
        let from = edges.entry(module.file.clone()).or_default();
        for (line, name) in named {
            let Some(Resolved::Item(to)) = modules.resolve(path, &name) else { continue };
            let Some(to) = modules.file(&to).filter(|to| *to != module.file) else { continue };
            from.entry(to.to_owned()).or_insert((line, name.join("::")));
        }
    }
    edges
}

/// The paths in the code of one module, which may be one of several in its file.
fn paths(
    file: &crate::tidy::tree::File,
    modules: &Modules,
    module: &ModulePath,
) -> Vec<(usize, Vec<String>)> {
    let Ok(syntax) = file.syntax() else { return Vec::new() };
    // Down to the items of this module: those parts of its path that lie in the same file.
    let mut items = &syntax.items;
    let depth = (0..=module.len())
        .find(|depth| modules.file(&module[..*depth].to_vec()) == Some(&file.path))
        .unwrap_or(module.len());
    for name in &module[depth..] {
        let inside = items.iter().find_map(|item| match item {
            syn::Item::Mod(item) if item.ident == name => item.content.as_ref().map(|(_, i)| i),
            _ => None,
        });
        let Some(inside) = inside else { return Vec::new() };
        items = inside;
    }
    let mut paths = Paths { found: Vec::new() };
    items.iter().for_each(|item| paths.visit_item(item));
    paths.found
}

struct Paths {
    found: Vec<(usize, Vec<String>)>,
}

impl Visit<'_> for Paths {
    fn visit_item_mod(&mut self, _: &syn::ItemMod) {}

    fn visit_item_use(&mut self, _: &syn::ItemUse) {}

    fn visit_visibility(&mut self, _: &syn::Visibility) {}

    fn visit_attribute(&mut self, _: &syn::Attribute) {}

    fn visit_item_fn(&mut self, item: &syn::ItemFn) {
        if !for_tests(&item.attrs) {
            syn::visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &syn::ImplItemFn) {
        if !for_tests(&item.attrs) {
            syn::visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &syn::Path) {
        let names = path.segments.iter().map(|segment| segment.ident.to_string());
        let line = path.segments.first().map_or(1, |first| first.ident.span().start().line);
        self.found.push((line, names.collect()));
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &syn::Macro) {
        syn::visit::visit_macro(self, item);
        in_tokens(item.tokens.clone(), &mut self.found);
    }
}

/// Paths of more than one name in what a macro is given.
fn in_tokens(tokens: TokenStream, found: &mut Vec<(usize, Vec<String>)>) {
    let (mut names, mut line, mut colons) = (Vec::new(), 1, 0);
    let mut close = |names: &mut Vec<String>, line: usize| {
        if names.len() > 1 {
            found.push((line, std::mem::take(names)));
        }
        names.clear();
    };
    let mut groups = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == ':' && !names.is_empty() => colons += 1,
            TokenTree::Ident(ident) => {
                if colons != 2 {
                    close(&mut names, line);
                }
                if names.is_empty() {
                    line = ident.span().start().line;
                }
                names.push(ident.to_string());
                colons = 0;
            }
            other => {
                close(&mut names, line);
                colons = 0;
                if let TokenTree::Group(group) = other {
                    groups.push(group.stream());
                }
            }
        }
    }
    close(&mut names, line);
    groups.into_iter().for_each(|group| in_tokens(group, found));
}

/// The shortest circle of each set of files that all reach each other, a set at a time.
fn circles(edges: &Edges) -> Vec<Vec<String>> {
    let mut done: BTreeSet<&String> = BTreeSet::new();
    let mut found = Vec::new();
    for start in edges.keys() {
        if done.contains(start) {
            continue;
        }
        let after = reachable(edges, start);
        let together: Vec<&String> =
            after.iter().copied().filter(|one| reachable(edges, one).contains(start)).collect();
        let shortest = together.iter().filter_map(|one| shortest(edges, one));
        found.extend(shortest.min_by_key(Vec::len));
        done.extend(together);
    }
    found
}

fn reachable<'a>(edges: &'a Edges, start: &String) -> BTreeSet<&'a String> {
    let mut seen = BTreeSet::new();
    let mut next: Vec<&String> = edges.get(start).into_iter().flat_map(BTreeMap::keys).collect();
    while let Some(one) = next.pop() {
        if seen.insert(one) {
            next.extend(edges.get(one).into_iter().flat_map(BTreeMap::keys));
        }
    }
    seen
}

/// The shortest way from a file back to itself.
fn shortest(edges: &Edges, start: &String) -> Option<Vec<String>> {
    let mut before: BTreeMap<&String, &String> = BTreeMap::new();
    let mut next = VecDeque::from([start]);
    while let Some(one) = next.pop_front() {
        for to in edges.get(one).into_iter().flat_map(BTreeMap::keys) {
            if to == start {
                let mut way = vec![one];
                while *way[way.len() - 1] != *start {
                    way.push(before[way[way.len() - 1]]);
                }
                return Some(way.into_iter().rev().cloned().collect());
            }
            if !before.contains_key(to) {
                before.insert(to, one);
                next.push_back(to);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: (&str, &str) = ("crates/a/Cargo.toml", "[package]\nname = \"a\"\n");

    fn advice(files: &[(&str, &str)]) -> Vec<String> {
        let all: Vec<_> = [MANIFEST].iter().chain(files).copied().collect();
        let registries = [("crates/a/src/rows/mod.rs", "crates/a/src/rows/", "a table")];
        check_but(&Tree::of(&all), &registries).into_iter().map(|one| one.advice).collect()
    }

    #[test]
    fn a_circle_is_found_through_imports_paths_macros_and_the_parent() {
        for text in ["use crate::b::B;", "fn f() { crate::b::g() }", "fn f() { m!(crate::b::B) }"] {
            let found = advice(&[
                ("crates/a/src/lib.rs", "mod b;\nmod c;\n"),
                ("crates/a/src/b.rs", "use super::c::C;\npub struct B;\npub fn g() {}\n"),
                ("crates/a/src/c.rs", &format!("pub struct C;\n{text}\n")),
            ]);
            assert_eq!(found.len(), 1, "{text}");
            assert!(found[0].contains("b.rs:1 has super::c::C of c.rs, c.rs:2"), "{found:?}");
        }
        let found = advice(&[
            ("crates/a/src/lib.rs", "mod b;\npub struct A;\nfn f() -> b::B { b::B }\n"),
            ("crates/a/src/b.rs", "use crate::A;\npub struct B;\n"),
        ]);
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn re_exports_tests_and_a_registry_with_its_rows_are_no_circle() {
        let found = advice(&[
            ("crates/a/src/lib.rs", "mod b;\nmod c;\nmod rows;\npub use b::B;\npub use c::C;\n"),
            ("crates/a/src/b.rs", "use crate::C;\npub struct B;\n"),
            ("crates/a/src/c.rs", "pub struct C;\n#[cfg(test)]\nmod t { use crate::B; }\n"),
            ("crates/a/src/rows/mod.rs", "mod x;\npub struct Row;\nconst ALL: Row = x::ROW;\n"),
            ("crates/a/src/rows/x.rs", "pub(super) const ROW: super::Row = super::Row;\n"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }
}
