//! The good and bad definitions of ecFlow's own parser tests, which are no part of this repository:
//! those of its source, where that is on this host.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use testing::program;
use workflow::definition::examine;

use crate::commands::run;
use crate::definition::{compare_all, has_ecflow};
use crate::place::Place;
use crate::served::Served;

/// The environment variable with the folder of ecFlow's source, as of its tag 5.9.2.
const SOURCE: &str = "ECFLOW_SOURCE";

/// Where its definitions are: until 5.9, and since.
const FOLDERS: [&str; 2] = ["ANode/parser/test/data", "libs/node/test/parser/data"];

/// Longer ones are no tests of grammar, but of speed.
const MAX_BYTES: u64 = 200_000;

/// The definitions of a kind, in order; the test is skipped where they aren't there.
fn definitions(kind: &str) -> Option<Vec<PathBuf>> {
    let source = std::env::var_os(SOURCE).map(PathBuf::from);
    let folders = source.iter().flat_map(|source| FOLDERS.map(|folder| source.join(folder)));
    let Some(folder) = folders.map(|folder| folder.join(kind)).find(|folder| folder.is_dir())
    else {
        testing::skip(format!("ecFlow's source is not here ({SOURCE} names its folder)"));
        return None;
    };
    let mut found = Vec::new();
    let mut open = vec![folder];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let (path, file) = (entry.path(), entry.metadata().expect("a file"));
            if file.is_dir() {
                open.push(path);
            } else if file.len() <= MAX_BYTES {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() > 50, "{} definitions of {kind}", found.len());
    Some(found)
}

/// Copies of definitions in one folder, each named by its folder and name.
fn flat(all: &[PathBuf]) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    for path in all {
        let last =
            |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let of = last(path.parent().unwrap_or(path));
        let name = format!("{of}_{}.def", last(path));
        fs::copy(path, folder.path().join(name)).expect("copied");
    }
    folder
}

#[test]
fn ecflow_s_own_definitions_are_read_and_printed_or_refused_as_it_does() {
    if !has_ecflow() {
        return;
    }
    for kind in ["good_defs", "bad_defs"] {
        let Some(all) = definitions(kind) else { return };
        compare_all(flat(&all).path());
    }
}

#[test]
fn its_bad_definitions_are_refused_with_their_lines() {
    let Some(all) = definitions("bad_defs") else { return };
    let folder = flat(&all);
    if !has_ecflow() {
        return;
    }
    crate::definition::ask(folder.path());
    let mut refused = 0;
    for path in fs::read_dir(folder.path()).expect("a folder").flatten().map(|one| one.path()) {
        // Some are bad for later versions only.
        if path.extension().is_none_or(|end| end != "def")
            || !path.with_extension("def.error").exists()
        {
            continue;
        }
        let text = fs::read_to_string(&path).expect("text");
        let file = path.display().to_string();
        let faults = examine(&text, &file).faults;
        let lines = text.lines().count();
        assert!(!faults.is_empty(), "{file} is read");
        assert!(faults.iter().all(|one| (1..=lines + 1).contains(&one.line)), "{faults:?}");
        if refused == 0 {
            let (said, _, code) = run(&["check", &file]);
            assert!(code == 3 && said.contains(&format!("{file}:{}: error", faults[0].line)));
        }
        refused += 1;
    }
    assert!(refused > 50, "only {refused} were refused");
}

/// What a server shows of a definition, without what is the server's own.
fn shown(place: &Place, path: &Path) -> String {
    let loaded = place.client(&[&format!("--load={}", path.display())]);
    if !loaded.status.success() {
        return "refused".to_owned();
    }
    let text = place.told(&["--get_state"]).replace(&*place.home().to_string_lossy(), "HOME");
    place.told(&["--delete=force", "yes", "_all_"]);
    let own = |line: &&str| !line.starts_with("defs_state") && !line.ends_with("# server");
    text.lines().filter(own).collect::<Vec<_>>().join("\n")
}

#[test]
fn its_good_definitions_look_alike_at_both_servers() {
    if program("ecflow_client").is_none() || program("ecflow_server").is_none() {
        return;
    }
    let Some(all) = definitions("good_defs") else { return };
    let (own, other) = (Place::new(), Place::new());
    let (_ours, _theirs) = (Served::ours(&own), Served::theirs(&other));
    let mut loaded = 0;
    for path in &all {
        let (ours, theirs) = (shown(&own, path), shown(&other, path));
        assert_eq!(ours, theirs, "{}", path.display());
        loaded += usize::from(ours != "refused");
    }
    assert!(loaded > 50, "only {loaded} were loaded");
}
