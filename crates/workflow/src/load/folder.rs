//! The definitions of a folder as one.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::definition::{Style, parse, print};

/// The most bytes of a definition, and of all together.
const LIMIT_BYTES: u64 = 1 << 30;

/// The definition of all files `*.def` of a folder, in the order of their names, without comments:
/// each has to be one by itself, as where it is loaded by itself.
///
/// # Errors
/// With the file: it can't be read, it is refused, or another one has a suite of the same name.
pub fn of_folder(folder: &Path) -> Result<String, String> {
    of_folder_beside(folder, &[])
}

/// The same for a definition that suites of the lab's join, whose names are taken.
pub(super) fn of_folder_beside(folder: &Path, taken: &[&str]) -> Result<String, String> {
    let failed = |why: std::io::Error| format!("{}: {why}", folder.display());
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|end| end == "def") {
            files.push(path);
        }
    }
    files.sort();
    let (mut externs, mut suites) = (String::new(), String::new());
    let mut known: HashMap<String, &PathBuf> = HashMap::new();
    for path in &files {
        let left = LIMIT_BYTES.saturating_sub(suites.len() as u64);
        let text = base::read_text(path, left).map_err(|why| why.to_string())?;
        let parsed = parse(&text, &path.display().to_string()).map_err(|why| why.to_string())?;
        for suite in parsed.tree.suites() {
            let name = parsed.tree.node(suite).name.to_string();
            if taken.contains(&name.as_str()) {
                let path = path.display();
                return Err(format!(
                    "{path}: the lab adds a suite {name}: give yours another name"
                ));
            }
            if let Some(other) = known.insert(name.clone(), path) {
                let (one, other) = (path.display(), other.display());
                return Err(format!("{one}: suite {name} is in {other}, too"));
            }
        }
        for line in print(&parsed.tree, Style::Defs, true).lines() {
            let part = match line {
                line if line.starts_with('#') => continue,
                line if line.starts_with("extern ") => &mut externs,
                _ => &mut suites,
            };
            part.push_str(line);
            part.push('\n');
        }
    }
    match known.is_empty() {
        true => Err(format!("{}: no suite in it: definitions are *.def", folder.display())),
        false => Ok(externs + &suites),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_of_a_folder_are_one_and_what_is_wrong_has_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("written");
        };
        let fault = || of_folder(folder.path()).expect_err("a fault");
        write("readme", "no definition");
        assert!(fault().ends_with("no suite in it: definitions are *.def"));
        write(
            "b.def",
            "extern /a/t\nsuite b; task t\n  trigger /a/t == complete\nendsuite # of b\n",
        );
        write("a.def", "suite a\n task t\nendsuite\n");
        let text = of_folder(folder.path()).expect("a definition");
        assert_eq!(
            text,
            "extern /a/t\nsuite a\n  task t\nendsuite\nsuite b\n  task t\n    trigger /a/t == \
             complete\nendsuite\n"
        );
        assert_eq!(parse(&text, "all").expect("a definition").tree.count(), 4);
        write("c.def", "suite a\nendsuite\n");
        assert!(fault().contains("c.def: suite a is in ") && fault().ends_with("a.def, too"));
        write("c.def", "suite c\n nonsense\nendsuite\n");
        assert!(fault().contains("c.def:2: "), "{}", fault());
    }
}
