//! Where programs lie.

use std::path::PathBuf;

/// Where `program` lies.
pub(crate) fn program_file(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Why `program` can't be started, when it can't be found.
pub(crate) fn missing_program(program: &str) -> Option<String> {
    let advice = match program.contains(char::is_whitespace) {
        true => " (one argument an entry; what a shell is to read is [\"sh\", \"-c\", \"…\"])",
        false => "",
    };
    program_file(program).is_none().then(|| format!("{program} is not installed{advice}"))
}
