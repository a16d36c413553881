//! The Makefile, which a newcomer or a CI meets first. A machine without cargo or
//! without a C compiler gets the line that installs it; a missing peer is a line of output.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use tempfile::TempDir;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Runs make with nothing on its path but a shell and the given empty programs; none where
/// there is no make to run, which is the newcomer's to find out and no fault of ours.
fn make(goal: &str, programs: &[&str]) -> Option<Output> {
    let Some(make) = find("make") else {
        testing::skip("make is not installed");
        return None;
    };
    let folder = TempDir::new().unwrap();
    for program in ["sh", "echo"] {
        symlink(find(program).unwrap(), folder.path().join(program)).unwrap();
    }
    for program in programs {
        let path = folder.path().join(program);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new(make);
    // A make above this one would hand down its flags, `-n` among them.
    command.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    command.env("PATH", folder.path()).env("HOME", folder.path());
    Some(command.arg("-C").arg(repository()).arg(goal).output().unwrap())
}

#[test]
fn what_is_missing_is_said_with_the_line_that_brings_it() {
    // The tour is for people: it ends in a sentence, and with no error of make's below it.
    for (goal, status) in [("tour", 0), ("test", 2)] {
        let Some(output) = make(goal, &[]) else { return };
        assert_eq!(output.status.code(), Some(status));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("https://sh.rustup.rs | sh"), "{text}");

        let output = make(goal, &["cargo"]).unwrap();
        assert_eq!(output.status.code(), Some(status));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("apt-get install -y gcc libc6-dev"), "{text}");
        assert_eq!(text.contains("make: ***"), status != 0, "{text}");
    }
}

#[test]
fn make_alone_says_what_there_is() {
    let Some(output) = make("help", &[]) else { return };
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("make tour") && text.contains("make test"), "{text}");
}

#[test]
fn peers_are_printed_whether_they_are_there_or_not() {
    for path in [env::var_os("PATH").unwrap(), "".into()] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        let output = command.args(["peers", "--check"]).env("PATH", path).output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("memcached") && text.contains("stated"), "{text}");
    }
}
