//! How a rank was started, which all ranks have in common.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The most bytes of it that are shown.
const MOST_SHOWN_BYTES: usize = 4 << 10;

/// What is shown of metadata, which may be a token.
const HIDDEN: &str = "\u{2026}";

/// The version and command line of a process, of which not all is shown.
#[derive(Debug)]
pub(super) struct Started {
    /// What is shown: without metadata, and cut off where it is long.
    words: String,
    /// A hash of all of it.
    hash: u64,
}

impl Started {
    /// That of this process.
    pub(super) fn now() -> Self {
        Self::of(std::env::args_os().skip(1).map(|all| all.to_string_lossy().into_owned()))
    }

    fn of(arguments: impl Iterator<Item = String>) -> Self {
        let mut words = concat!("loadline ", env!("CARGO_PKG_VERSION")).to_owned();
        let (mut hash, mut is_metadata) = (DefaultHasher::new(), false);
        for argument in arguments {
            argument.hash(&mut hash);
            words.push(' ');
            words.push_str(if is_metadata { HIDDEN } else { shown(&argument) });
            is_metadata = !is_metadata && ["-H", "--header"].contains(&&argument[..]);
        }
        words.truncate(words.floor_char_boundary(MOST_SHOWN_BYTES));
        Self { words, hash: hash.finish() }
    }

    /// What may be shown to anyone who reads the job's output.
    pub(super) fn words(&self) -> &str {
        &self.words
    }

    /// What the other rank gets.
    pub(super) fn message(&self) -> String {
        format!("{}\n{:016x}", self.words, self.hash)
    }

    /// Says in what another rank differs, which has sent this, if it does.
    pub(super) fn compare(&self, message: &[u8], rank: usize) -> Result<(), String> {
        let own = &self.words;
        if message == self.message().as_bytes() {
            return Ok(());
        }
        let other = String::from_utf8_lossy(message);
        let its = match other.rsplit_once('\n') {
            Some((words, _)) if words == own => {
                "differs in metadata (-H), or in what is too long to be shown".to_owned()
            }
            Some((words, _)) if words.starts_with("loadline ") => format!("is {words}"),
            _ => "isn't this loadline, or is one of another version".to_owned(),
        };
        Err(format!("mpi: rank {rank} {its}; this one is {own}: start all ranks alike"))
    }
}

/// What is shown of an argument that may have metadata behind its flag.
fn shown(argument: &str) -> &str {
    match argument {
        "-H" | "--header" => argument,
        _ if argument.starts_with("--header=") => "--header=\u{2026}",
        _ if argument.starts_with("-H") => "-H\u{2026}",
        _ => argument,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Started {
        Started::of(line.split(' ').map(str::to_owned))
    }

    const VERSION: &str = concat!("loadline ", env!("CARGO_PKG_VERSION"));

    #[test]
    fn ranks_that_differ_are_named_with_both_ways_of_starting_them() {
        let own = of("rpc ping mpi: --wait spin");
        assert_eq!(own.compare(own.message().as_bytes(), 1), Ok(()));
        let other = of("rpc ping mpi:");
        let words = own.compare(other.message().as_bytes(), 2).expect_err("another");
        assert_eq!(
            words,
            format!(
                "mpi: rank 2 is {VERSION} rpc ping mpi:; this one is {VERSION} rpc ping mpi: \
                 --wait spin: start all ranks alike"
            )
        );
        for message in [&b"\x9blrf\x01\0"[..], b"loadline 0.0.1 rpc ping mpi: --wait spin"] {
            let words = own.compare(message, 1).expect_err("an older one");
            assert!(words.contains("of another version; this one is loadline"), "{words}");
        }
    }

    #[test]
    fn metadata_are_compared_and_never_shown() {
        let lines = [
            "rpc ping -H authorization:SECRET mpi:",
            "rpc ping --header authorization:SECRET mpi:",
            "rpc ping --header=authorization:SECRET mpi:",
            "rpc ping -Hauthorization:SECRET mpi:",
            "rpc ping -H=authorization:SECRET mpi:",
            "rpc ping -H -H --header SECRET mpi:",
        ];
        for line in lines {
            let (own, other) = (of(line), of(&line.replace("SECRET", "ANOTHER")));
            let words = own.compare(other.message().as_bytes(), 1).expect_err(line);
            for text in [own.words(), &own.message(), &words] {
                assert!(!text.contains("SECRET") && !text.contains("ANOTHER"), "{text}");
            }
            assert!(words.contains("rank 1 differs in metadata (-H)"), "{words}");
            assert!(own.words().starts_with("loadline ") && own.words().ends_with(" mpi:"));
        }
    }

    #[test]
    fn what_is_too_long_to_be_shown_is_compared() {
        let line = |end: &str| of(&format!("rpc ping pipe:{}{end}", "ö".repeat(3_000)));
        let (own, other) = (line("a"), line("b"));
        assert!(own.words().len() <= MOST_SHOWN_BYTES);
        let words = own.compare(other.message().as_bytes(), 1).expect_err("another end");
        assert!(words.contains("too long to be shown"), "{words}");
    }
}
