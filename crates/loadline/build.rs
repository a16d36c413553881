//! Notes what the program is built from and with, for the fingerprint of its runs. What can't be
//! found out is left out.

use std::process::Command;

fn main() {
    // The commit changes with the branch's head, which these files follow.
    println!("cargo:rerun-if-changed=../../.git/HEAD");
    println!("cargo:rerun-if-changed=../../.git/logs/HEAD");
    note("LOADLINE_COMMIT", said("git", &["describe", "--always", "--dirty"]));
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    note("LOADLINE_COMPILER", said(&compiler, &["--version"]));
    let profile = std::env::var("PROFILE").unwrap_or_default();
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let flags = flags.replace('\u{1f}', " ");
    note("LOADLINE_FLAGS", Some(format!("{profile} opt-level={level} {flags}").trim().to_owned()));
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
