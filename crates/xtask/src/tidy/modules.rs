//! The modules of a package: which file each lies in, what it defines and imports, and so in which
//! file a path such as `crate::plan::Suite` is defined. Names are resolved as far as a rule needs:
//! imports, re-exports, globs and aliases, but neither methods nor what macros define.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::Visit;
use syn::{Attribute, Expr, ExprLit, Item, ItemMod, Lit, Meta, UseTree, Visibility};

use super::tree::{File, Tree};

/// A module's path from the root of its crate; empty for the root.
pub(crate) type ModulePath = Vec<String>;

/// Imports that lead to other imports are followed this far; longer chains are circles.
const MAX_IMPORTS: usize = 16;

/// All modules of one library or program.
pub(crate) struct Modules {
    modules: BTreeMap<ModulePath, Module>,
}

/// One module.
pub(crate) struct Module {
    /// The file that it lies in.
    pub(crate) file: String,
    /// Whether it is compiled for tests only.
    pub(crate) is_test: bool,
    defined: BTreeSet<String>,
    imports: Vec<Import>,
}

/// A name that a `use` brings; a glob brings none.
pub(crate) struct Import {
    name: Option<String>,
    /// The path as written, without the glob.
    pub(crate) path: Vec<String>,
    /// Whether it is there for other modules.
    pub(crate) is_reexport: bool,
    /// The line on which it stands.
    pub(crate) line: usize,
}

/// What a path leads to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Resolved {
    /// A module.
    Module(ModulePath),
    /// Something that this module defines.
    Item(ModulePath),
}

impl Modules {
    /// The modules that `root` (`src/lib.rs` and the like) reaches through `mod` items.
    pub(crate) fn of(tree: &Tree, root: &File) -> Modules {
        let mut modules = Modules { modules: BTreeMap::new() };
        let home = root.path.trim_end_matches(root.name()).to_owned();
        modules.reach(tree, root, &home, Vec::new(), false);
        modules
    }

    /// All modules, parents before children.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ModulePath, &Module)> {
        self.modules.iter()
    }

    /// The file of a module.
    pub(crate) fn file(&self, module: &ModulePath) -> Option<&str> {
        self.modules.get(module).map(|module| module.file.as_str())
    }

    /// What `path` leads to when it is written in the module `at`; `None` when that is outside of
    /// this crate, a primitive, or a local name.
    pub(crate) fn resolve(&self, at: &ModulePath, path: &[String]) -> Option<Resolved> {
        self.resolve_within(at, path, MAX_IMPORTS)
    }

    fn resolve_within(&self, at: &ModulePath, path: &[String], left: usize) -> Option<Resolved> {
        let left = left.checked_sub(1)?;
        let (mut module, mut rest) = (at.clone(), path);
        let mut is_anchored = false;
        while let Some((first, after)) = rest.split_first() {
            match first.as_str() {
                "crate" => module.clear(),
                "super" => drop(module.pop()),
                "self" => {}
                _ => break,
            }
            (is_anchored, rest) = (true, after);
        }
        while let Some((name, after)) = rest.split_first() {
            let mut child = module.clone();
            child.push(name.clone());
            let is_module = self.modules.contains_key(&child);
            if is_module && !after.is_empty() {
                (module, rest, is_anchored) = (child, after, true);
                continue;
            }
            let here = self.modules.get(&module)?;
            if here.defined.contains(name) {
                return Some(Resolved::Item(module));
            }
            match self.import(here, &module, name, left) {
                Some(Resolved::Module(found)) => {
                    (module, rest, is_anchored) = (found, after, true);
                }
                Some(item) => return Some(item),
                None if is_module => return Some(Resolved::Module(child)),
                // A macro may have defined it; an imported name is somebody else's.
                None if is_anchored && !here.imports_name(name) => {
                    return Some(Resolved::Item(module));
                }
                None => return None,
            }
        }
        Some(Resolved::Module(module))
    }

    fn import(
        &self,
        here: &Module,
        module: &ModulePath,
        name: &str,
        left: usize,
    ) -> Option<Resolved> {
        let named = here.imports.iter().filter(|import| import.name.as_deref() == Some(name));
        for import in named {
            // `use median::median` names a function of a module of that name.
            let own = import.path.len() == 1 && import.path[0] == name;
            if let Some(found) = self.resolve_within(module, &import.path, left).filter(|_| !own) {
                return Some(found);
            }
        }
        for glob in here.imports.iter().filter(|import| import.name.is_none()) {
            let Some(Resolved::Module(from)) = self.resolve_within(module, &glob.path, left) else {
                continue;
            };
            let below = from.iter().cloned().chain([name.to_owned()]).collect::<ModulePath>();
            let source = self.modules.get(&from)?;
            if self.modules.contains_key(&below) {
                return Some(Resolved::Module(below));
            }
            if source.defined.contains(name) {
                return Some(Resolved::Item(from));
            }
            if from != *module && left > 0 {
                let found = self.import(source, &from, name, left - 1);
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    /// Follows the `mod` items of a file whose own modules lie in `home` (which ends in a slash).
    fn reach(&mut self, tree: &Tree, file: &File, home: &str, path: ModulePath, is_test: bool) {
        if let Ok(syntax) = file.syntax() {
            self.follow(tree, file, &syntax.items, home, path, is_test);
        }
    }

    fn follow(
        &mut self,
        tree: &Tree,
        from: &File,
        items: &[Item],
        home: &str,
        path: ModulePath,
        is_test: bool,
    ) {
        let mut module = Module {
            file: from.path.clone(),
            is_test,
            defined: items.iter().filter_map(defined).collect(),
            imports: Vec::new(),
        };
        let mut imports = Imports { found: &mut module.imports };
        items.iter().for_each(|item| imports.visit_item(item));
        if self.modules.insert(path.clone(), module).is_some() {
            return;
        }
        for item in items {
            let Item::Mod(item) = item else { continue };
            let name = item.ident.to_string();
            let name = name.trim_start_matches("r#");
            let below = format!("{home}{name}/");
            let child: ModulePath = path.iter().cloned().chain([name.to_owned()]).collect();
            let is_test = is_test || for_tests(&item.attrs);
            if let Some((_, items)) = &item.content {
                self.follow(tree, from, items, &below, child, is_test);
                continue;
            }
            let stated = stated_path(item).map(|path| {
                let folder = from.path.trim_end_matches(from.name());
                let path = format!("{folder}{path}");
                let home = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                (path.clone(), format!("{home}/"))
            });
            let usual =
                [(format!("{home}{name}.rs"), below.clone()), (format!("{below}mod.rs"), below)];
            for (path, home) in stated.into_iter().chain(usual) {
                if let Some(file) = tree.file(&path) {
                    self.reach(tree, file, &home, child, is_test);
                    break;
                }
            }
        }
    }
}

impl Module {
    /// What it imports, but for what tests import.
    pub(crate) fn imports(&self) -> &[Import] {
        &self.imports
    }

    fn imports_name(&self, name: &str) -> bool {
        self.imports.iter().any(|import| import.name.as_deref() == Some(name))
    }
}

/// The name that an item gives its module.
fn defined(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// Whether an item is compiled for tests only: `#[cfg(test)]` or `#[test]`.
pub(crate) fn for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            let words = list.tokens.to_string();
            words == "test" || (words.starts_with("all") && words.contains("test"))
        }
        _ => false,
    })
}

/// The value of a module's `#[path = "…"]`.
fn stated_path(module: &ItemMod) -> Option<String> {
    module.attrs.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}

/// Collects imports of one module, in function bodies too, but not those of modules inside.
struct Imports<'a> {
    found: &'a mut Vec<Import>,
}

impl Visit<'_> for Imports<'_> {
    fn visit_item_mod(&mut self, _: &ItemMod) {}

    fn visit_item_fn(&mut self, item: &syn::ItemFn) {
        if !for_tests(&item.attrs) {
            syn::visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &syn::ItemUse) {
        if !for_tests(&item.attrs) {
            let is_reexport = !matches!(item.vis, Visibility::Inherited);
            spell_out(&item.tree, &[], is_reexport, self.found);
        }
    }
}

fn spell_out(tree: &UseTree, above: &[String], is_reexport: bool, found: &mut Vec<Import>) {
    let with = |ident: &syn::Ident| {
        let mut path = above.to_vec();
        path.push(ident.to_string());
        path
    };
    let import = |ident: &syn::Ident, name: &syn::Ident| {
        let path = if ident == "self" { above.to_vec() } else { with(ident) };
        let name = if name == "self" { path.last().cloned() } else { Some(name.to_string()) };
        Import { name, path, is_reexport, line: ident.span().start().line }
    };
    match tree {
        UseTree::Path(path) => spell_out(&path.tree, &with(&path.ident), is_reexport, found),
        UseTree::Name(name) => found.push(import(&name.ident, &name.ident)),
        UseTree::Rename(name) => found.push(import(&name.ident, &name.rename)),
        UseTree::Group(group) => {
            group.items.iter().for_each(|item| spell_out(item, above, is_reexport, found));
        }
        UseTree::Glob(glob) => {
            let line = glob.star_token.spans[0].start().line;
            found.push(Import { name: None, path: above.to_vec(), is_reexport, line });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[(&str, &str)] = &[
        ("src/lib.rs", "mod plan;\nmod knee;\npub use knee::knee;\npub use plan::Suite;\n"),
        ("src/knee.rs", "pub fn knee() {}\n"),
        ("src/plan/mod.rs", "mod suite;\npub use suite::*;\nmacro_rules! m { () => {} }\n"),
        ("src/plan/suite.rs", "pub struct Suite;\nuse std::fmt;\n"),
    ];

    fn file_of(at: &[&str], path: &str) -> Option<String> {
        let tree = Tree::of(FILES);
        let modules = Modules::of(&tree, tree.file("src/lib.rs").unwrap());
        let at: ModulePath = at.iter().map(|one| (*one).to_owned()).collect();
        let path: Vec<String> = path.split("::").map(str::to_owned).collect();
        match modules.resolve(&at, &path)? {
            Resolved::Item(module) => modules.file(&module).map(str::to_owned),
            Resolved::Module(module) => Some(format!("module {}", module.join("::"))),
        }
    }

    #[test]
    fn a_path_leads_to_the_file_that_defines_its_item_past_every_re_export() {
        assert_eq!(file_of(&["knee"], "crate::Suite").unwrap(), "src/plan/suite.rs");
        assert_eq!(file_of(&["knee"], "super::plan::Suite::new").unwrap(), "src/plan/suite.rs");
        assert_eq!(file_of(&["plan"], "crate::knee").unwrap(), "src/knee.rs");
        assert_eq!(file_of(&["plan"], "m").unwrap(), "src/plan/mod.rs");
        assert_eq!(file_of(&[], "plan").unwrap(), "module plan");
    }

    #[test]
    fn what_is_not_of_this_crate_leads_nowhere() {
        assert_eq!(file_of(&["plan", "suite"], "fmt::Display"), None);
        assert_eq!(file_of(&["plan", "suite"], "Vec::new"), None);
        assert_eq!(file_of(&["plan", "suite"], "std::io::Read"), None);
    }
}
