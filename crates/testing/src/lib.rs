//! Helpers of the tests of all crates: skips, which cargo hides from whoever reads its output;
//! ports ([`free_port`]); programs that may not run for ever ([`output`], [`Limit`]); simulations:
//! for many seeds ([`run_seeds`]), and whether a value is linearizable ([`Register`]).
//!
//! A test that can't run on a host calls [`skip`] with the reason and returns. `cargo xtask test`
//! names a file in [`SKIPS`], to which every skip is appended; it prints them last, and under CI
//! each one fails the run unless xtask's table names its reason.

mod children;
mod ports;
mod register;
mod seeds;

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

pub use children::{Limit, output};
pub use ports::free_port;
pub use register::Register;
pub use seeds::{FROM, SECONDS, SEED, run_seeds, run_seeds_of_environment};

/// The environment variable with the path of the file to which skips are appended.
pub const SKIPS: &str = "LOADLINE_SKIPS";

/// Reports that the running test is skipped for this reason.
///
/// # Panics
/// When the file that [`SKIPS`] names can't be written: a skip must not be lost.
pub fn skip(reason: impl Display) {
    let reason = reason.to_string();
    // A reason is one line of the file.
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    println!("skipped: {reason}");
    let Some(path) = std::env::var_os(SKIPS) else { return };
    let line = format!("{}\t{reason}\n", test());
    let file = OpenOptions::new().create(true).append(true).open(&path);
    // One write per line, because test binaries and threads append side by side.
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        panic!("cannot write the skip to {}: {error}", Path::new(&path).display());
    }
}

/// Returns where a program lies on the path; skips the test where it is missing.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name));
    let found = found.into_iter().find(|path| path.is_file());
    if found.is_none() {
        skip(format!("{name} is not installed (`cargo xtask peers` installs the peers)"));
    }
    found
}

/// The running test: its binary without cargo's hash, and its name, which its thread has.
fn test() -> String {
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let binary = program.rsplit_once('-').map_or(program.as_str(), |(name, _)| name);
    format!("{binary}: {}", std::thread::current().name().unwrap_or("a thread of a test"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_test_is_named_with_its_binary() {
        assert!(super::test().starts_with("testing: "), "{}", super::test());
    }
}
