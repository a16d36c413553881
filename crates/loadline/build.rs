//! Notes what the program is built from and with, for `--version` and the fingerprint of its runs.
//! What can't be found out is left out.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let commit = commit_of_clone().or_else(commit_of_package);
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let shown = commit.as_ref().map(|commit| format!("{version} ({commit})"));
    note("LOADLINE_VERSION", shown.or(Some(version)));
    note("LOADLINE_COMMIT", commit);
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    note("LOADLINE_COMPILER", said(&compiler, &["--version"]));
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let flags = flags.replace('\u{1f}', " ");
    let profile = profile().unwrap_or_default();
    note("LOADLINE_FLAGS", Some(format!("{profile} opt-level={level} {flags}").trim().to_owned()));
}

/// The commit of the clone that this is built in; none for a package that lies in another one.
fn commit_of_clone() -> Option<String> {
    if said("git", &["rev-parse", "--show-prefix"])? != "crates/loadline/" {
        return None;
    }
    // The commit changes with the branch's head, which these files follow.
    for file in ["HEAD", "logs/HEAD"] {
        let path = said("git", &["rev-parse", "--git-path", file]);
        if let Some(path) = path.filter(|path| Path::new(path).exists()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    said("git", &["describe", "--always", "--dirty"])
}

/// The commit that cargo noted when it packed this.
fn commit_of_package() -> Option<String> {
    let noted = std::fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let commit = noted.split('"').skip_while(|word| *word != "sha1").nth(2)?;
    commit.get(..7).map(str::to_owned)
}

/// The profile's name, which only the output folder has: `PROFILE` says `release` for all that
/// inherit from it.
fn profile() -> Option<String> {
    let out = std::env::var("OUT_DIR").ok()?;
    let folder = Path::new(&out).ancestors().nth(3)?.file_name()?;
    Some(folder.to_string_lossy().into_owned())
}

fn note(name: &str, fact: Option<String>) {
    if let Some(fact) = fact.filter(|fact| !fact.is_empty()) {
        println!("cargo:rustc-env={name}={fact}");
    }
}

fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| said.trim().to_owned())
}
