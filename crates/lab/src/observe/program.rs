//! What can be seen of a target's program file: its size, and the compilers that made it.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection};

use crate::plan::{Target, TargetKind};

/// Programs larger than this are not searched for their compilers.
const PROGRAM_LIMIT_BYTES: u64 = 1 << 30;

/// What can be seen of a target's program, by name: `program`, `program_bytes`, `compiler`. `exe`
/// is this program, which serves services. What can't be seen is left out, and so are size and
/// compiler of a shell or a script, which are not those of what it starts.
pub(crate) fn program_facts(target: &Target, exe: &Path) -> Vec<(String, String)> {
    let path = match &target.kind {
        TargetKind::Service(..) | TargetKind::InProcess => Some(exe.to_owned()),
        TargetKind::Command(command) | TargetKind::Batch(command) => resolve(&command[0]),
        TargetKind::Address(_) => return vec![("started".to_owned(), "before the run".to_owned())],
    };
    let Some(path) = path else { return Vec::new() };
    let mut facts = vec![("program".to_owned(), path.display().to_string())];
    if is_shell(&path) || is_script(&path) {
        return facts;
    }
    if let Ok(metadata) = fs::metadata(&path) {
        facts.push(("program_bytes".to_owned(), metadata.len().to_string()));
    }
    facts.extend(compilers_of(&path).map(|names| ("compiler".to_owned(), names)));
    facts
}

fn is_shell(program: &Path) -> bool {
    program.file_name().is_some_and(|name| ["sh", "bash", "dash"].iter().any(|one| name == *one))
}

fn is_script(program: &Path) -> bool {
    let mut head = [0; 2];
    let read = fs::File::open(program).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == *b"#!"
}

/// Where a command's program lies.
fn resolve(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Path::new(program).is_file().then(|| program.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Which compilers a program names: every one leaves a line in the section `.comment` of what it
/// compiled. `None` when it isn't ELF, or says nothing.
pub fn compilers_of(path: &Path) -> Option<String> {
    if fs::metadata(path).ok()?.len() > PROGRAM_LIMIT_BYTES {
        return None;
    }
    let bytes = fs::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let comment = file.section_by_name(".comment")?.data().ok()?;
    let lines = comment.split(|byte| *byte == 0).filter(|line| !line.is_empty());
    let names: BTreeSet<String> =
        lines.map(|line| String::from_utf8_lossy(line).trim().to_owned()).collect();
    (!names.is_empty()).then(|| names.into_iter().collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_names_its_own_compiler_and_a_text_names_none() {
        let own = std::env::current_exe().unwrap();
        assert!(compilers_of(&own).unwrap().contains("rustc"));
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("text");
        std::fs::write(&text, "not a program").unwrap();
        assert_eq!(compilers_of(&text), None);
    }

    #[test]
    fn a_shell_is_no_program_that_is_measured() {
        assert!(is_shell(&resolve("sh").unwrap()));
        assert!(!is_shell(Path::new("/usr/bin/python3")));
    }
}
