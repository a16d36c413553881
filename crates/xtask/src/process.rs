//! Running other programs: where the repository is, what is on the path, and commands whose
//! failure is an error with the command line in it.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The repository's root: two levels above this crate, wherever the task was started from.
pub(crate) fn repository() -> PathBuf {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_dir.ancestors().nth(2).unwrap_or(crate_dir).to_owned()
}

/// Cargo's output folder.
pub(crate) fn target() -> PathBuf {
    let stated = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    repository().join(stated.unwrap_or("target".into()))
}

/// The release build of loadline, which is what is measured.
pub(crate) fn program() -> PathBuf {
    target().join("release/loadline")
}

/// The file to which tests append their skips.
pub(crate) fn skips() -> PathBuf {
    target().join("skips.tsv")
}

/// Where a program is, as a shell would find it.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    find_in(env::split_paths(&env::var_os("PATH")?), program)
}

fn find_in(mut folders: impl Iterator<Item = PathBuf>, program: &str) -> Option<PathBuf> {
    // What is named by its whole path may be a module that another program loads.
    let is_whole = Path::new(program).is_absolute();
    folders.find_map(|folder| {
        let path = folder.join(program);
        let found = fs::metadata(&path).ok()?;
        let can_run = is_whole || found.permissions().mode() & 0o111 != 0;
        (found.is_file() && can_run).then_some(path)
    })
}

/// Runs a command on the terminal that this task was started from.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = line(command);
    let status = command.status().with_context(|| format!("`{line}` does not start"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// What a command prints on stdout and stderr, whatever its exit status.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = line(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("`{line}` does not start"))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Ok(text)
}

/// Whether a command ends well; it prints nothing.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// What a nightly task needs, how one sees that it is there, and the line that brings it.
pub(crate) type Needed = (&'static str, &'static [&'static str], &'static str);

/// The nightly toolchain itself.
pub(crate) const NIGHTLY: Needed =
    ("a nightly compiler", &["rustc", "--version"], "rustup toolchain install nightly");

/// A command of the nightly toolchain, whatever this task was compiled with.
pub(crate) fn nightly() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly"]).env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    command
}

/// Refuses to go on without what is needed.
pub(crate) fn need(all: &[Needed]) -> Result<()> {
    for (what, seen, line) in all {
        if !succeeds(nightly().args(*seen)) {
            bail!("{what} is missing; this line brings it:\n  {line}");
        }
    }
    Ok(())
}

/// The command as one would type it: the program without its folder, quotes where needed.
fn line(command: &Command) -> String {
    let program = command.get_program();
    let program = Path::new(program).file_name().unwrap_or(program);
    let words = [program].into_iter().chain(command.get_args());
    let quoted = words.map(|word| {
        let word = word.to_string_lossy();
        if word.contains(' ') { format!("\"{word}\"") } else { word.into_owned() }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_holds_this_crate() {
        assert!(repository().join("crates/xtask/Cargo.toml").is_file());
    }

    #[test]
    fn a_program_is_found_only_where_it_can_run() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("thing");
        let look = || find_in([folder.path().to_owned()].into_iter(), "thing");
        assert_eq!(look(), None);
        fs::write(&program, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(look(), None);
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(look(), Some(program));
    }

    #[test]
    fn a_line_quotes_what_a_shell_would_split() {
        let mut command = Command::new("/usr/bin/git");
        command.args(["commit", "-m", "two words"]);
        assert_eq!(line(&command), "git commit -m \"two words\"");
    }

    #[test]
    fn a_failing_command_is_an_error_that_names_it() {
        let error = run(&mut Command::new("false")).unwrap_err().to_string();
        assert!(error.starts_with("`false` failed"), "{error}");
        assert!(succeeds(&mut Command::new("true")));
        assert_eq!(output(Command::new("echo").arg("here")).unwrap(), "here\n");
    }
}
