//! Writing and reading archives and checkpoints, on a thread of their own, in order.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;

use super::core::{CommandKind, Filing, READING, WRITING, archive_text, read_archive};
use super::message::{CommandEnd, CommandWhat, Message};
use crate::model::{Archived, Tree};

/// The largest archive or checkpoint that is read.
const MOST_BYTES: u64 = 4 << 30;

/// Does it, and has the owner know what came of it.
pub(super) fn run(filing: Filing, owner: &Sender<Message>) {
    let tell = |kind, path, try_no, what| {
        let (password, is_for_zombie) = (String::new(), false);
        let end = CommandEnd { kind, path, try_no, password, is_for_zombie, what };
        // It ends last.
        let _ = owner.send(Message::Command(end));
    };
    match filing {
        Filing::Write { file, archived } => {
            let what = match write(&file, &archived) {
                Ok(()) => CommandWhat::Filed,
                Err(why) => CommandWhat::NotFiled(format!("{}: {why}", file.display())),
            };
            tell(CommandKind::Archive, archived.path, WRITING, what);
        }
        Filing::Read { path, files } => {
            let what = match read(&path, &files) {
                Ok((text, tree)) => CommandWhat::Read(text, Box::new(tree)),
                Err(why) => CommandWhat::NotRead(why),
            };
            tell(CommandKind::Restore, path, READING, what);
        }
        Filing::Remove(file) => remove(&file),
        Filing::RemoveBelow { folder, name } => remove_below(&folder, &name),
    }
}

fn write(file: &Path, archived: &Archived) -> io::Result<()> {
    base::replace_file(file, |file| file.write_all(archive_text(archived).as_bytes()))
}

fn read(path: &str, files: &[PathBuf]) -> Result<(String, Tree), String> {
    let mut failed = String::new();
    for file in files {
        let shown = file.display();
        let read = base::read_text(file, MOST_BYTES).map_err(|why| format!("{why:#}"));
        let parsed = read.and_then(|text| {
            let tree = read_archive(&text)?;
            Ok((text, tree))
        });
        match parsed {
            Ok((_, tree)) if tree.find(path).is_none() => {
                return Err(format!(
                    "NodeContainer::restore() could not find {path} in the archived file {shown}"
                ));
            }
            Ok(read) => return Ok(read),
            Err(why) => failed.push_str(&format!("{shown}  : {why}\n")),
        }
    }
    Err(match path {
        "/" => format!("Failed to load *DEFS* check point file {failed}"),
        _ => format!("NodeContainer::restore() Node {path} could not restore file at  {failed}"),
    })
}

fn remove(file: &Path) {
    match fs::remove_file(file) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => {
            tracing::warn!("{} can't be removed: {why}", file.display());
        }
        _ => {}
    }
}

fn remove_below(folder: &Path, name: &str) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let file = entry.file_name();
        let rest = file.to_str().and_then(|file| file.strip_prefix(name));
        // What a crash has left of one that was being written goes, too.
        let rest = rest.map(|rest| rest.strip_suffix(".new").unwrap_or(rest));
        let rest = rest.and_then(|rest| rest.strip_suffix(".check"));
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':')) {
            remove(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::remove_below;

    #[test]
    fn with_a_node_its_archives_go_and_not_those_of_nodes_whose_names_begin_alike() {
        let folder = tempfile::tempdir().expect("a folder");
        let names = ["h.1.:s:f", "h.1.:s:f:g", "h.1.:s:fx", "h.1.:s", "h.1.ecf", "h.10.:s:f"];
        let file = |name: &str, end: &str| folder.path().join(format!("{name}.check{end}"));
        let files = names.iter().flat_map(|name| ["", ".new"].map(|end| file(name, end)));
        for file in files {
            std::fs::write(file, "").expect("written");
        }
        remove_below(folder.path(), "h.1.:s:f");
        let is_there = |name: &&str| {
            let [whole, part] = ["", ".new"].map(|end| file(name, end).exists());
            assert_eq!(whole, part, "{name}");
            whole
        };
        let left: Vec<&str> = names.into_iter().filter(is_there).collect();
        assert_eq!(left, ["h.1.:s:fx", "h.1.:s", "h.1.ecf", "h.10.:s:f"]);
    }
}
