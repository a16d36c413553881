//! Peers that come as Go modules: `go install` puts each into `target/peers/go`, beside a file with
//! the version that it was built of.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::table::Tool;
use crate::process;

/// Where Go's own archives put it; many systems have no link to that on the path.
const USUAL: &str = "/usr/local/go/bin/go";

fn folder(target: &Path) -> PathBuf {
    target.join("peers/go")
}

/// Where the program is, once it is installed.
pub(crate) fn path(target: &Path, tool: &Tool) -> PathBuf {
    folder(target).join(&tool.program)
}

fn note(target: &Path, tool: &Tool) -> PathBuf {
    folder(target).join(format!("{}.version", tool.program))
}

/// The version of a program that is there.
pub(crate) fn version(target: &Path, tool: &Tool) -> Option<String> {
    let version = fs::read_to_string(note(target, tool)).ok()?;
    path(target, tool).is_file().then(|| version.trim().to_owned())
}

/// Compiles the stated version of a program.
pub(crate) fn install(target: &Path, tool: &Tool) -> Result<()> {
    let usual = PathBuf::from(USUAL);
    let Some(go) = process::find("go").or_else(|| usual.is_file().then_some(usual)) else {
        bail!("{} needs Go; bring it with your package manager", tool.program);
    };
    let folder = folder(target);
    fs::create_dir_all(&folder).context("cannot make target/peers/go")?;
    let package = format!("{}@{}", tool.source, tool.version);
    process::run(Command::new(go).args(["install", &package]).env("GOBIN", &folder))?;
    // `go install` names a program by the last part of its package.
    let last = tool.source.rsplit('/').next().unwrap_or(&tool.source);
    if last != tool.program {
        fs::rename(folder.join(last), path(target, tool)).with_context(|| package.clone())?;
    }
    fs::write(note(target, tool), &tool.version).context(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_there_with_the_version_that_was_noted() {
        let target = tempfile::tempdir().unwrap();
        let tool = Tool {
            program: "grpcurl".into(),
            service: "rpc".into(),
            source: "example.test/grpcurl".into(),
            version: "v1.9.4".into(),
            note: None,
        };
        assert_eq!(version(target.path(), &tool), None);
        fs::create_dir_all(folder(target.path())).unwrap();
        fs::write(note(target.path(), &tool), "v1.9.3\n").unwrap();
        assert_eq!(version(target.path(), &tool), None, "the program is missing");
        fs::write(path(target.path(), &tool), "").unwrap();
        assert_eq!(version(target.path(), &tool).as_deref(), Some("v1.9.3"));
    }
}
