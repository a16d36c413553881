//! The files that the rules look at: what git tracks, and what it would track if one added it.
//! A tree is read once; a Rust file is parsed when a rule first asks for it.

use std::cell::OnceCell;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// Folders that hold outputs; they matter only where git is not there to leave them out.
const OUTPUTS: &[&str] = &[".git", ".loadline", "artifacts", "corpus", "target"];

/// The files under one root, sorted by path.
pub(crate) struct Tree {
    files: Vec<File>,
}

/// One file: its path from the root with forward slashes, and its text.
pub(crate) struct File {
    /// The path from the root, as in `crates/wire/src/lib.rs`.
    pub(crate) path: String,
    /// The text; a file that is not UTF-8 has none of interest and is empty here.
    pub(crate) text: String,
    syntax: OnceCell<syn::Result<syn::File>>,
}

/// Something to tidy: where it is and what to do about it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// The file's path from the root.
    pub(crate) path: String,
    /// The line, counted from one.
    pub(crate) line: usize,
    /// What to do, as one clause.
    pub(crate) advice: String,
}

impl Tree {
    /// Reads what git lists under `root`, or all of it without git.
    pub(crate) fn read(root: &Path) -> Result<Tree> {
        let paths = match listed(root) {
            Some(paths) => paths,
            None => {
                let mut paths = Vec::new();
                walk(root, "", &mut paths)?;
                paths
            }
        };
        let mut files = Vec::new();
        for path in paths {
            // Git also lists what was removed and not yet staged, and links; neither is text.
            let full = root.join(&path);
            if fs::symlink_metadata(&full).is_ok_and(|found| found.is_file()) {
                let bytes = fs::read(&full).with_context(|| format!("cannot read {path}"))?;
                files.push(File::new(path, String::from_utf8(bytes).unwrap_or_default()));
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Tree { files })
    }

    /// A tree made of pairs of path and text: what the rules' tests look at.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Tree {
        let file = |(path, text): &(&str, &str)| File::new((*path).into(), (*text).into());
        Tree { files: files.iter().map(file).collect() }
    }

    /// All files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }

    /// The Rust files.
    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    /// The file at this path.
    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }
}

impl File {
    fn new(path: String, text: String) -> File {
        File { path, text, syntax: OnceCell::new() }
    }

    /// The last part of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// The lines with their numbers, counted from one.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// The syntax of a Rust file, or why it has none.
    pub(crate) fn syntax(&self) -> Result<&syn::File, &syn::Error> {
        self.syntax.get_or_init(|| syn::parse_file(&self.text)).as_ref()
    }

    /// Something to tidy in this file.
    pub(crate) fn finding(&self, line: usize, advice: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, advice: advice.into() }
    }
}

/// What git tracks and what it does not ignore. The tree may belong to another user than the
/// one who runs this, as in many a container; reading names from it is safe all the same.
fn listed(root: &Path) -> Option<Vec<String>> {
    let mut git = Command::new("git");
    git.arg("-C").arg(root).args(["-c", "safe.directory=*", "ls-files", "-z"]);
    git.args(["--cached", "--others", "--exclude-standard"]);
    let output = git.output().ok().filter(|output| output.status.success())?;
    let names = String::from_utf8(output.stdout).ok()?;
    Some(names.split_terminator('\0').map(str::to_owned).collect())
}

fn walk(root: &Path, below: &str, paths: &mut Vec<String>) -> Result<()> {
    let folder = root.join(below);
    let context = || format!("cannot list {}", folder.display());
    for entry in fs::read_dir(&folder).with_context(context)? {
        let entry = entry.with_context(context)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        if !entry.file_type().with_context(context)?.is_dir() {
            paths.push(path);
        } else if !OUTPUTS.contains(&name.as_str()) {
            walk(root, &path, paths)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_without_git_is_walked_past_its_outputs() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("target/debug")).unwrap();
        fs::create_dir_all(root.path().join("docs")).unwrap();
        fs::write(root.path().join("target/debug/out"), "").unwrap();
        fs::write(root.path().join("docs/page.md"), "words").unwrap();
        fs::write(root.path().join("image"), [0xff, 0xfe]).unwrap();
        let mut paths = Vec::new();
        walk(root.path(), "", &mut paths).unwrap();
        paths.sort();
        assert_eq!(paths, ["docs/page.md", "image"]);
        let tree = Tree::read(root.path()).unwrap();
        assert_eq!(tree.file("docs/page.md").unwrap().text, "words");
        assert_eq!(tree.file("image").unwrap().text, "");
        assert!(tree.file("target/debug/out").is_none());
    }

    #[test]
    fn lines_count_from_one_and_names_end_paths() {
        let tree = Tree::of(&[("a/b.rs", "one\ntwo\n")]);
        let file = tree.rust().next().unwrap();
        assert_eq!(file.lines().collect::<Vec<_>>(), [(1, "one"), (2, "two")]);
        assert_eq!(file.name(), "b.rs");
        assert!(file.syntax().is_err());
    }
}
