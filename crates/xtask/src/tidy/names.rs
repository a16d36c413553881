//! Which paths (`std::fs`, `Instant::now`) and keywords a Rust file names. Working on tokens,
//! not on text, keeps comments and strings out of it and sees into macros; `use` trees are
//! spelled out, so that `use std::{fs, io}` names `std::fs`.

use std::collections::BTreeSet;

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::UseTree;
use syn::visit::Visit;

use super::tree::File;

/// A path of names and the line of its last one.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    segments: Vec<String>,
    line: usize,
}

/// The lines on which `file` names one of the `wanted` paths, with the wanted path. A wanted
/// path may be a part of the named one: `Instant::now` is found in `std::time::Instant::now()`.
pub(crate) fn mentions<'w>(file: &File, wanted: &[&'w str]) -> BTreeSet<(usize, &'w str)> {
    let named = named(file);
    let mut found = BTreeSet::new();
    for &want in wanted {
        let parts: Vec<&str> = want.split("::").collect();
        let holds = |named: &&Named| named.segments.windows(parts.len()).any(|w| w == parts);
        found.extend(named.iter().filter(holds).map(|named| (named.line, want)));
    }
    found
}

/// The lines on which a file uses this keyword, or any other single name.
pub(crate) fn keyword(file: &File, word: &str) -> BTreeSet<usize> {
    mentions(file, &[word]).into_iter().map(|(line, _)| line).collect()
}

fn named(file: &File) -> Vec<Named> {
    let mut found = Vec::new();
    if let Ok(tokens) = file.text.parse::<TokenStream>() {
        runs(tokens, &mut found);
    }
    if let Ok(syntax) = file.syntax() {
        let mut uses = Uses { found };
        uses.visit_file(syntax);
        found = uses.found;
    }
    found
}

/// Finds names joined by `::`. A run ends at whatever is neither a name nor a pair of colons.
fn runs(tokens: TokenStream, found: &mut Vec<Named>) {
    let mut run: Vec<Ident> = Vec::new();
    let mut colons = 0;
    for token in tokens {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == ':' && !run.is_empty() => colons += 1,
            TokenTree::Ident(ident) => {
                if colons != 2 {
                    close(&mut run, found);
                }
                run.push(ident);
                colons = 0;
            }
            TokenTree::Group(group) => {
                close(&mut run, found);
                runs(group.stream(), found);
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => close(&mut run, found),
        }
    }
    close(&mut run, found);
}

fn close(run: &mut Vec<Ident>, found: &mut Vec<Named>) {
    if let Some(last) = run.last() {
        let line = last.span().start().line;
        found
            .push(Named { segments: run.drain(..).map(|ident| ident.to_string()).collect(), line });
    }
}

struct Uses {
    found: Vec<Named>,
}

impl Visit<'_> for Uses {
    fn visit_item_use(&mut self, item: &syn::ItemUse) {
        spell_out(&item.tree, &[], &mut self.found);
    }
}

fn spell_out(tree: &UseTree, above: &[String], found: &mut Vec<Named>) {
    let ident = match tree {
        UseTree::Group(group) => {
            group.items.iter().for_each(|item| spell_out(item, above, found));
            return;
        }
        UseTree::Glob(_) => return,
        UseTree::Path(path) => &path.ident,
        UseTree::Name(name) => &name.ident,
        UseTree::Rename(rename) => &rename.ident,
    };
    let mut segments = above.to_vec();
    segments.push(ident.to_string());
    if let UseTree::Path(path) = tree {
        spell_out(&path.tree, &segments, found);
    }
    // What leads to a glob or a group is named as well: `use std::fs::*` names `std::fs`.
    found.push(Named { segments, line: ident.span().start().line });
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::*;

    fn lines(text: &str, wanted: &str) -> Vec<usize> {
        let tree = Tree::of(&[("a.rs", text)]);
        mentions(tree.rust().next().unwrap(), &[wanted]).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn a_path_is_found_however_it_is_written() {
        assert_eq!(lines("use std::fs;", "std::fs"), [1]);
        assert_eq!(lines("use std::{\n  io,\n  fs::{self, File},\n};", "std::fs"), [3]);
        assert_eq!(lines("use std::fs::*;", "std::fs"), [1]);
        assert_eq!(lines("use std::fs as files;", "std::fs"), [1]);
        assert_eq!(lines("fn f() {\n  ::std::fs::read(x);\n}", "std::fs"), [2]);
        assert_eq!(lines("fn f() { assert!(std::fs::exists(x)); }", "std::fs"), [1]);
        assert_eq!(lines("fn f() { let x: Vec<std::fs::File>; }", "std::fs"), [1]);
    }

    #[test]
    fn comments_strings_and_longer_names_are_not_found() {
        assert!(lines("//! std::fs\n/// std::fs\nfn f() {} // std::fs", "std::fs").is_empty());
        assert!(lines("const A: &str = \"std::fs\";", "std::fs").is_empty());
        assert!(lines("use std::fs_extra; use mystd::fs;", "std::fs").is_empty());
        assert!(lines("fn f(std: fs) { let std = fs; }", "std::fs").is_empty());
    }

    #[test]
    fn a_keyword_is_a_whole_token() {
        let tree = Tree::of(&[("a.rs", "#![deny(unsafe_code)]\nfn f() { unsafe { g() } }")]);
        let found = keyword(tree.rust().next().unwrap(), "unsafe");
        assert_eq!(found, BTreeSet::from([2]));
    }
}
