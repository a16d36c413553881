//! `cargo xtask races`: what several threads do to each other's memory, seen by ThreadSanitizer.
//!
//! Safe Rust has no data races by construction; what is looked at is what the compiler does not
//! vouch for: the few files with `unsafe`, and the libraries. The standard library is compiled with
//! the same instrumentation, because its locks would be invisible otherwise, as they are to
//! helgrind, which knows those of pthreads only.

use anyhow::{Result, bail};

use crate::process::{NIGHTLY, need, nightly, output, repository, run as run_command};

/// Which tests.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask races                         the tests of the table
  cargo xtask races -- several_threads      only those with this in their names

A race is shown with the stacks of both threads, and the test ends with exit code 66.")]
pub(crate) struct Args {
    /// What the names of tests have to hold
    #[arg(last = true)]
    names: Vec<String>,
}

/// The tests in which threads meet, by crate: the server and its clients in one process. Those
/// under loom and shuttle run one thread at a time, on stacks of their own.
const TESTS: &[(&str, &[&str])] = &[("loadline-cache", &["--test", "insight", "--test", "server"])];

pub(crate) fn run(args: &Args) -> Result<()> {
    need(&[NIGHTLY])?;
    let root = output(nightly().args(["rustc", "--print", "sysroot"]))?;
    if !std::path::Path::new(root.trim()).join("lib/rustlib/src/rust/library").is_dir() {
        bail!(
            "the sources of the standard library are missing; this line brings them:\n  \
             rustup component add rust-src --toolchain nightly"
        );
    }
    let version = output(nightly().args(["rustc", "-vV"]))?;
    let Some(host) = version.lines().find_map(|line| line.strip_prefix("host: ")) else {
        bail!("`rustc -vV` does not say for which host it compiles");
    };
    for (name, tests) in TESTS {
        let mut command = nightly();
        command
            .args(["cargo", "test", "--locked", "-Zbuild-std", "--target", host])
            .args(["--target-dir", "target/races", "-p", name])
            .args(*tests)
            .arg("--")
            .args(&args.names)
            .env("RUSTFLAGS", "-Zsanitizer=thread")
            // Without it every byte that a test looks at is a call.
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
            .env("TSAN_OPTIONS", "halt_on_error=1:second_deadlock_stack=1")
            .current_dir(repository());
        run_command(&mut command)?;
    }
    Ok(())
}
