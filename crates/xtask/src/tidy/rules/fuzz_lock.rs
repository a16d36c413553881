//! The fuzz targets have a lock file of their own, which no build of the workspace looks at. This
//! rule compares its entries for our crates with their manifests. It doesn't ask cargo, which
//! would want every package of the fuzz targets to be here, and so the network.

use std::collections::BTreeSet;

use toml::{Table, Value};

use super::Rule;
use crate::tidy::manifest::{dependencies, packages, short};
use crate::tidy::tree::{Finding, Tree};

pub(super) const RULE: Rule = Rule {
    name: "fuzz-lock",
    doc: "`fuzz/Cargo.lock` follows when a crate gains or loses a dependency.",
    check,
};

fn check(tree: &Tree) -> Vec<Finding> {
    let Some(lock) = tree.file("fuzz/Cargo.lock") else { return Vec::new() };
    let table: Table = lock.text.parse().unwrap_or_default();
    let all = table.get("package").and_then(Value::as_array).into_iter().flatten();
    // Packages from elsewhere have a source.
    let ours: Vec<&Value> = all.filter(|package| package.get("source").is_none()).collect();
    let root = tree.file("Cargo.toml");
    let root: Table = root.and_then(|root| root.text.parse().ok()).unwrap_or_default();
    let mut found = Vec::new();
    let name = |locked: &Value| locked.get("name")?.as_str().map(str::to_owned);
    let folders = ["crates/", "fuzz/"];
    for package in packages(tree)
        .filter(|package| folders.iter().any(|folder| package.folder().starts_with(folder)))
    {
        let is_it =
            |locked: &&&Value| name(locked).is_some_and(|locked| short(&locked) == package.name);
        let Some(found_in) = ours.iter().find(is_it) else { continue };
        let names = found_in.get("dependencies").and_then(Value::as_array).into_iter().flatten();
        // Where there are several versions of a package, one of them follows its name.
        let first_word =
            |name: &'_ Value| Some(short(name.as_str()?.split(' ').next()?).to_owned());
        let locked: BTreeSet<String> = names.filter_map(first_word).collect();
        let mut built = dependencies(package.file);
        built.retain(|one| !one.is_dev);
        built.iter_mut().for_each(|one| one.package = locked_name(&root, &one.package));
        let missing = built
            .iter()
            .filter(|one| !one.is_optional && !locked.contains(&one.package))
            .map(|one| format!("it lacks `{}` of {}", one.package, package.name));
        let gone = locked
            .iter()
            .filter(|name| !built.iter().any(|one| one.package == **name))
            .map(|name| format!("it has `{name}` of {}, which is gone", package.name));
        let row = format!("name = \"{}\"", name(found_in).unwrap_or_default());
        let line = lock.lines().find(|(_, line)| *line == row).map_or(1, |(number, _)| number);
        let advice = |what| format!("{what}; run `{UPDATE}`");
        found.extend(missing.chain(gone).map(|what| lock.finding(line, advice(what))));
    }
    found
}

/// The name that a lock file has for a dependency, which the workspace may call something else.
fn locked_name(root: &Table, dependency: &str) -> String {
    let of_workspace = || root.get("workspace")?.get("dependencies")?.get(dependency);
    let package = of_workspace().and_then(|one| one.get("package")?.as_str());
    short(package.unwrap_or(dependency)).to_owned()
}

/// Brings our crates up to date in the lock file, and leaves what others' packages are locked to.
const UPDATE: &str = "cargo update --workspace --manifest-path fuzz/Cargo.toml";

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"one\"\nversion = \"0.1.0\"\n\
        dependencies = [\n \"rand 0.10.3\",\n \"two\",\n]\n\n[[package]]\nname = \"two\"\n\
        version = \"1.0.0\"\nsource = \"elsewhere\"\ndependencies = [\n \"three\",\n]\n";

    fn found(dependencies: &str) -> Vec<usize> {
        let manifest = format!("[package]\nname = \"one\"\n[dependencies]\n{dependencies}");
        lines(&RULE, &[("fuzz/Cargo.lock", LOCK), ("crates/one/Cargo.toml", &manifest)])
    }

    #[test]
    fn what_a_crate_is_built_with_is_locked() {
        let same = "rand = \"0.10\"\ntwo = \"1\"\n";
        assert!(found(same).is_empty());
        assert!(found(&format!("{same}[dev-dependencies]\nfour = \"1\"\n")).is_empty());
        assert!(found(&format!("{same}four = {{ version = \"1\", optional = true }}")).is_empty());
        assert_eq!(found(&format!("{same}four = \"1\"\n")), [4]);
    }

    #[test]
    fn names_are_compared_without_the_prefix_of_ours_and_the_targets_own_are_too() {
        let lock =
            "[[package]]\nname = \"loadline-fuzz\"\ndependencies = [\n \"loadline-one\",\n]\n";
        let manifest = |more: &str| {
            format!(
                "[package]\nname = \"loadline-fuzz\"\n[dependencies]\n\
                 one = {{ package = \"loadline-one\", path = \"../crates/one\" }}\n{more}"
            )
        };
        let found =
            |more| lines(&RULE, &[("fuzz/Cargo.lock", lock), ("fuzz/Cargo.toml", &manifest(more))]);
        assert!(found("").is_empty());
        assert_eq!(found("two = { path = \"../crates/two\" }\n"), [2]);
    }

    #[test]
    fn a_package_that_the_workspace_renames_is_locked_under_its_own_name() {
        let root = "[workspace.dependencies]\nsecond = { package = \"two\", version = \"1\" }\n";
        let manifest = "[package]\nname = \"one\"\n[dependencies]\nrand = \"0.10\"\n\
                        second.workspace = true\n";
        let files =
            [("Cargo.toml", root), ("fuzz/Cargo.lock", LOCK), ("crates/one/Cargo.toml", manifest)];
        assert!(lines(&RULE, &files).is_empty());
    }

    #[test]
    fn what_a_crate_no_longer_has_is_no_longer_locked() {
        assert_eq!(found("rand = \"0.10\"\n"), [4]);
        let other = "[package]\nname = \"two\"\n";
        let files = [("fuzz/Cargo.lock", LOCK), ("crates/two/Cargo.toml", other)];
        assert!(lines(&RULE, &files).is_empty(), "a package of that name from elsewhere is locked");
    }
}
