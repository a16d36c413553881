//! `cargo xtask tidy` as one runs it: on a small tree under git, from outside.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const LIB: &str = "//! A crate.\n\nmod named;\n";
const NAMED: &str = "//! A module.\n";
const MANIFEST: &str =
    "[package]\nname = \"judge\"\ndescription = \"A crate\"\n\n[lints]\nworkspace = true\n";

fn tidy(root: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.arg("tidy").arg("--root").arg(root).output().unwrap()
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A tree with nothing to tidy. Git is there to leave out what it ignores; without git the
/// usual output folders are left out, which does for this tree too.
fn tree() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let _ = Command::new("git").arg("init").arg("--quiet").arg(root.path()).status();
    write(root.path(), ".gitignore", "/target\n");
    write(root.path(), "crates/judge/Cargo.toml", MANIFEST);
    write(root.path(), "crates/judge/src/lib.rs", LIB);
    write(root.path(), "crates/judge/src/named.rs", NAMED);
    write(root.path(), "target/debug/build.rs", "fn undocumented() {}\n");
    root
}

#[test]
fn a_tidy_tree_passes_in_silence() {
    let output = tidy(tree().path());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert!(output.status.success());
}

#[test]
fn each_finding_is_a_line_that_says_where_and_what_to_do() {
    let root = tree();
    write(root.path(), "crates/judge/src/lost.rs", "fn lost() {}\n");
    let wide = "x".repeat(98);
    write(root.path(), "crates/judge/src/named.rs", &format!("{NAMED}// {wide}\n"));
    let output = tidy(root.path());
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "crates/judge/src/lost.rs:1: module-doc: begin the file with `//!` and what it is for",
            "crates/judge/src/lost.rs:1: dead-files: name this file with a `mod`, or remove it",
            "crates/judge/src/named.rs:2: width: break this line of 101 columns (100)",
        ]
    );
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "error: 3 things to tidy\n");
}

#[test]
fn the_rules_can_be_listed() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let output = command.args(["tidy", "--list"]).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("file-length\n    A "));
}
