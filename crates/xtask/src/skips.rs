//! The tests that were skipped: `testing::skip` appends each to a file, which is read at the end.
//! Without this file they would be lost, because cargo prints nothing of a test that passes.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;

use anyhow::{Context, Result, bail};

use crate::process;

/// Reasons for which a test may be skipped under CI, each a part of what the test reports, and why:
/// a feature of the kernel or of the C library, which no package brings.
const EXPECTED: &[(&str, &str)] = &[
    ("io_uring", "many containers forbid it, and kernels before 5.6 have none"),
    ("IPv6", "a network namespace may have no IPv6 address"),
    ("clear_refs", "a kernel may be built without the counters of pages that it resets"),
    ("sock_diag", "a kernel may be built without it"),
    ("kernel's threads", "a host with many cores may have thousands"),
    ("multicast", "a network namespace may have none"),
    ("ecFlow's source", "registries of packages may serve what is built of it, and not itself"),
    ("are not counted", "counting system calls takes ptrace, which a container may forbid"),
];

/// The skips of one run of the tests.
pub(crate) struct Skips;

/// A skipped test and its reason.
pub(crate) type Skip = (String, String);

impl Skips {
    /// Forgets the skips of earlier runs.
    pub(crate) fn begin() -> Result<Skips> {
        let path = process::skips();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| path.display().to_string())
            }
            _ => Ok(Skips),
        }
    }

    /// Returns the skips since, each once, by test.
    pub(crate) fn end(self) -> Result<Vec<Skip>> {
        let path = process::skips();
        match fs::read_to_string(&path) {
            Ok(text) => Ok(parse(&text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }
}

fn parse(text: &str) -> Vec<Skip> {
    let lines: BTreeSet<&str> = text.lines().collect();
    let skip = |line: &&str| line.split_once('\t').map(|(a, b)| (a.to_owned(), b.to_owned()));
    lines.iter().filter_map(skip).collect()
}

/// The skips as they are printed, with their number.
pub(crate) fn list(skips: &[Skip]) -> String {
    let noun = if skips.len() == 1 { "test" } else { "tests" };
    let mut text = format!("== {} {noun} skipped\n", skips.len());
    text.extend(skips.iter().map(|(test, reason)| format!("  {test}\n    {reason}\n")));
    text
}

/// Fails when a test was skipped for a reason that isn't in the table.
pub(crate) fn refuse_unexpected(skips: &[Skip]) -> Result<()> {
    let expected = |reason: &str| EXPECTED.iter().any(|(part, _)| reason.contains(part));
    let count = skips.iter().filter(|(_, reason)| !expected(reason)).count();
    if count > 0 {
        bail!(
            "{count} of the skipped tests must run under CI: install what they need, or name the \
             reason in the table of crates/xtask/src/skips.rs"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_skip_is_listed_once_and_only_those_of_the_table_pass_under_ci() {
        let skips =
            parse("uring: a\tthis kernel has no io_uring\nuring: a\tthis kernel has no io_uring\n");
        let text = "== 1 test skipped\n  uring: a\n    this kernel has no io_uring\n";
        assert_eq!(list(&skips), text);
        assert!(refuse_unexpected(&skips).is_ok());
        let missing = parse("browser: b\tchromium is not installed\n");
        assert!(refuse_unexpected(&missing).unwrap_err().to_string().starts_with("1 of the"));
    }
}
