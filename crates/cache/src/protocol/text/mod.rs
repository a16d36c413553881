//! The text protocol, classic and meta: one row for each command, and one table of the rows.
//!
//! A row reads the words after its name. A command that carries a data block says how long it is;
//! the block is the connection's business, which reads it straight into its place.

mod admin;
pub mod answer;
mod delete;
mod get;
mod meta;
mod set;
mod words;

pub use answer::{Answer, read_answer};
pub use get::{Key, next_key, plain_get};
pub use meta::{MetaFlag, MetaGet};
pub use set::Set;
pub use words::Words;

use crate::protocol::Refusal;

/// A command line that has been understood.
#[derive(Clone, Debug)]
pub enum Command<'a> {
    /// `get` or `gets`: the keys follow as words.
    Get {
        /// Whether the answer carries each item's unique number.
        with_cas: bool,
        /// The keys, not yet checked.
        keys: Words<'a>,
    },
    /// `set`: a data block follows.
    Set(Set<'a>),
    /// `delete`.
    Delete {
        /// The key.
        key: &'a [u8],
        /// Whether no answer is wanted.
        noreply: bool,
    },
    /// `mg`: meta get.
    MetaGet(MetaGet<'a>),
    /// `mn`: meta no-op, answered in its turn.
    MetaNoop,
    /// `stats`, with the group's name, or empty.
    Stats {
        /// The group.
        group: &'a [u8],
    },
    /// `version`.
    Version,
    /// `quit`.
    Quit,
}

/// One command.
pub struct Row {
    /// Its name on the line.
    pub name: &'static str,
    /// How it is written.
    pub usage: &'static str,
    /// What it does, in one sentence.
    pub doc: &'static str,
    /// Reads the words after the name.
    pub read: for<'a> fn(Words<'a>) -> Result<Command<'a>, Refusal>,
}

/// All commands.
pub static COMMANDS: &[&Row] = &[
    &meta::MG,
    &set::SET,
    &get::GET,
    &get::GETS,
    &delete::DELETE,
    &meta::MN,
    &admin::STATS,
    &admin::VERSION,
    &admin::QUIT,
];

/// Reads a command line, given without its end.
///
/// # Errors
/// The answer that says what is wrong with it.
#[inline]
pub fn read_line(line: &[u8]) -> Result<Command<'_>, Refusal> {
    let mut words = Words::new(line);
    let name = words.next().ok_or(Refusal::Unknown)?;
    let row = COMMANDS.iter().find(|row| row.name.as_bytes() == name).ok_or(Refusal::Unknown)?;
    (row.read)(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_a_known_name_is_an_error() {
        for line in [&b""[..], b"   ", b"gte a", b"GET a", b"get\ta"] {
            assert_eq!(read_line(line).err(), Some(Refusal::Unknown), "{line:?}");
        }
    }

    #[test]
    fn every_row_is_documented_and_its_usage_starts_with_its_name() {
        for row in COMMANDS {
            assert!(row.usage.starts_with(row.name) && !row.doc.is_empty(), "{}", row.name);
        }
    }
}
