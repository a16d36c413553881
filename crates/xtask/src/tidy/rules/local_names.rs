//! Words that mean something on one machine only: the folders of the file's author, and
//! the hosts that packages happened to come from. Lock files are cargo's to write.

use super::Rule;
use crate::tidy::tree::{Finding, Tree};

/// Folders at the root of a file system; built in halves, so that this file passes itself.
const FOLDERS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/")];

/// Hosts of package registries, built likewise.
const HOSTS: &[&str] = &[
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("files.python", "hosted.org"),
    concat!("registry.npm", "js.org"),
    concat!("deb.deb", "ian.org"),
    concat!("security.deb", "ian.org"),
    concat!("proxy.go", "lang.org"),
];

pub(super) const RULE: Rule = Rule {
    name: "local-names",
    doc: "No file names a folder of one machine or the host of a package registry.",
    check,
};

fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.files().filter(|file| file.name() != "Cargo.lock") {
        for (number, line) in file.lines() {
            for folder in FOLDERS.iter().filter(|folder| is_absolute(line, folder)) {
                let advice = format!("say it without `{folder}`: others have no such folder");
                found.push(file.finding(number, advice));
            }
            for host in HOSTS.iter().filter(|host| line.contains(*host)) {
                let advice = format!("name the package, not the host `{host}`");
                found.push(file.finding(number, advice));
            }
        }
    }
    found
}

/// Whether the folder begins a path: `target/…/` further down in a relative one does not.
fn is_absolute(line: &str, folder: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || "_-.~}>)".contains(c);
    line.match_indices(folder).any(|(start, _)| !line[..start].ends_with(inside))
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn every_word_is_found_in_every_kind_of_file() {
        for word in FOLDERS.iter().chain(HOSTS) {
            let text = format!("fine\nsee \"{word}x\"\n");
            for path in ["a.rs", "docs/a.md", ".ci/run", "Makefile"] {
                assert_eq!(lines(&RULE, &[(path, &text)]), [2], "{word} in {path}");
            }
            assert!(lines(&RULE, &[("Cargo.lock", &text)]).is_empty());
        }
    }

    #[test]
    fn a_folder_further_down_passes() {
        let text = FOLDERS.iter().map(|f| format!("target{f}a\n{{dir}}{f}b\n")).collect::<String>();
        assert!(lines(&RULE, &[("a.md", &text)]).is_empty());
    }
}
