//! What the rules need of a `Cargo.toml`: the package's name, its dependencies of every kind,
//! whether it has a description and takes the workspace's lints, and where its roots are.

use toml::{Table, Value};

use super::tree::{File, Tree};

const KINDS: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];

/// One package's manifest.
pub(crate) struct Manifest<'t> {
    /// The file itself.
    pub(crate) file: &'t File,
    /// The package's name.
    pub(crate) name: String,
    table: Table,
}

/// One dependency: the package that it stands for and the line that it is on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    /// The package's name, also where the manifest gives it another.
    pub(crate) package: String,
    /// The line of the manifest.
    pub(crate) line: usize,
    /// Whether only tests need it.
    pub(crate) is_dev: bool,
    /// Whether it comes with a feature only.
    pub(crate) is_optional: bool,
}

/// A package's name without the prefix that keeps ours apart in a registry.
pub(crate) fn short(name: &str) -> &str {
    name.strip_prefix("loadline-").unwrap_or(name)
}

/// The manifests of all packages of the tree. One that does not parse is cargo's to report.
pub(crate) fn packages(tree: &Tree) -> impl Iterator<Item = Manifest<'_>> {
    tree.files().filter(|file| file.name() == "Cargo.toml").filter_map(|file| {
        let table: Table = file.text.parse().ok()?;
        let name = short(table.get("package")?.get("name")?.as_str()?).to_owned();
        Some(Manifest { file, name, table })
    })
}

/// The manifest's dependencies, those of single targets and of the workspace included.
pub(crate) fn dependencies(file: &File) -> Vec<Dependency> {
    let table: Table = file.text.parse().unwrap_or_default();
    let mut found = Vec::new();
    let workspace = table.get("workspace").and_then(Value::as_table);
    let targets = table.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    for section in [&table].into_iter().chain(workspace).chain(targets) {
        for kind in KINDS {
            let Some(entries) = section.get(*kind).and_then(Value::as_table) else { continue };
            for (key, value) in entries {
                let package = short(value.get("package").and_then(Value::as_str).unwrap_or(key));
                let optional = value.get("optional").and_then(Value::as_bool);
                found.push(Dependency {
                    package: package.to_owned(),
                    line: line_of(file, key),
                    is_dev: *kind == "dev-dependencies",
                    is_optional: optional == Some(true),
                });
            }
        }
    }
    found
}

/// The line that a dependency's key stands on, be it `key = …`, `key.workspace = …` or
/// `[dependencies.key]`. Where it is written in some other way, the first line will do.
fn line_of(file: &File, key: &str) -> usize {
    let names_it = |line: &str| {
        let word = line.trim_start().trim_start_matches('"');
        let after = word.strip_prefix(key).unwrap_or(".");
        after.starts_with([' ', '=', '"'])
            || after.starts_with(".workspace")
            || (line.starts_with('[') && line.trim_end().ends_with(&format!(".{key}]")))
    };
    file.lines().find(|(_, line)| names_it(line)).map_or(1, |(number, _)| number)
}

impl Manifest<'_> {
    /// The package's folder from the root, with a slash at its end; empty for the root itself.
    pub(crate) fn folder(&self) -> &str {
        self.file.path.trim_end_matches("Cargo.toml")
    }

    /// Whether the package takes the workspace's lints.
    pub(crate) fn takes_lints(&self) -> bool {
        let lints = self.table.get("lints").and_then(|lints| lints.get("workspace"));
        lints.and_then(Value::as_bool) == Some(true)
    }

    /// Whether the package has a description.
    pub(crate) fn has_description(&self) -> bool {
        let description = self.table.get("package").and_then(|own| own.get("description"));
        description.and_then(Value::as_str).is_some_and(|text| !text.is_empty())
    }

    /// The paths that the manifest gives for its library and programs.
    pub(crate) fn stated_roots(&self) -> Vec<String> {
        let lib = self.table.get("lib").into_iter();
        let bins = self.table.get("bin").and_then(Value::as_array).into_iter().flatten();
        let path = |target: &Value| Some(target.get("path")?.as_str()?.to_owned());
        lib.chain(bins).filter_map(path).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
[package]
name = \"one\"
[dependencies]
two.workspace = true
renamed = { package = \"three\", version = \"1\" }
[dev-dependencies.four]
version = \"1\"
[target.'cfg(unix)'.build-dependencies]
five = { version = \"1\", optional = true }
[[bin]]
name = \"six\"
path = \"src/six.rs\"
";

    #[test]
    fn dependencies_of_every_kind_are_seen() {
        let tree = Tree::of(&[("crates/one/Cargo.toml", TEXT)]);
        let file = tree.files().next().unwrap();
        let mut found = dependencies(file);
        found.sort_by_key(|dependency| dependency.line);
        let places: Vec<_> = found.iter().map(|d| (d.package.as_str(), d.line)).collect();
        assert_eq!(places, [("two", 4), ("three", 5), ("four", 6), ("five", 9)]);
        let kinds: Vec<_> = found.iter().map(|d| (d.is_dev, d.is_optional)).collect();
        assert_eq!(kinds, [(false, false), (false, false), (true, false), (false, true)]);
    }

    #[test]
    fn a_package_knows_its_folder_lints_and_roots() {
        let other = "[package]\nname = \"top\"\n[lints]\nworkspace = true\n";
        let tree = Tree::of(&[("Cargo.toml", other), ("crates/one/Cargo.toml", TEXT)]);
        let packages: Vec<_> = packages(&tree).collect();
        assert_eq!(packages[0].folder(), "");
        assert!(packages[0].takes_lints());
        assert_eq!(packages[1].name, "one");
        assert_eq!(packages[1].folder(), "crates/one/");
        assert!(!packages[1].takes_lints());
        assert_eq!(packages[1].stated_roots(), ["src/six.rs"]);
    }
}
