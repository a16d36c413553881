//! The text protocol, classic and meta: one row for each command, and one table of the rows.
//!
//! A row reads the words after its name. A command that carries a data block says how long it is;
//! the block is the connection's business, which reads it straight into its place.

mod admin;
pub mod answer;
mod arithmetic;
mod crawler;
mod delete;
mod flush;
mod foreign;
mod get;
mod meta;
mod set;
mod touch;
mod watch;
mod words;

pub use admin::DebugTime;
pub use answer::{Answer, put_encoded, read_answer};
pub use crawler::Listing;
pub use foreign::RequestForm;
pub use get::{Key, PlainRead, next_key, plain_read};
pub use meta::{
    Meta, MetaFacts, MetaFlag, MetaMode, put_echoes, put_facts, put_stored, put_summed,
};
pub use set::{Demand, Set};
pub use watch::Streams;
pub use words::Words;

use crate::protocol::Refusal;

/// A command line that has been understood.
#[derive(Clone, Debug)]
pub enum Command<'a> {
    /// `get`, `gets`, `gat` or `gats`: the keys follow as words.
    Get {
        /// Whether the answer carries each item's unique number.
        with_cas: bool,
        /// The items' new expiry.
        exptime: Option<i64>,
        /// The keys, not yet checked.
        keys: Words<'a>,
    },
    /// A storage command: a data block follows.
    Set(Set<'a>),
    /// `delete`.
    Delete {
        /// The key.
        key: &'a [u8],
        /// Whether no answer is wanted.
        noreply: bool,
    },
    /// `incr` or `decr`.
    Sum {
        /// The key.
        key: &'a [u8],
        /// Whether the number grows.
        increment: bool,
        /// By how much.
        delta: u64,
        /// Whether no answer is wanted.
        noreply: bool,
    },
    /// `touch`.
    Touch {
        /// The key.
        key: &'a [u8],
        /// The expiry as it is written.
        exptime: i64,
        /// Whether no answer is wanted.
        noreply: bool,
    },
    /// `flush_all`.
    FlushAll {
        /// After how long, as it is written; what is wrong with it is told last.
        delay: Result<i64, Refusal>,
        /// Whether no answer is wanted.
        noreply: bool,
    },
    /// `mg`: meta get.
    MetaGet(Meta<'a>),
    /// `ms`: meta set: a data block follows.
    MetaSet(Meta<'a>, MetaMode),
    /// `md`: meta delete.
    MetaDelete(Meta<'a>),
    /// `ma`: meta arithmetic; whether the number grows.
    MetaSum(Meta<'a>, bool),
    /// `me`: what is known of a key.
    MetaDebug(Meta<'a>),
    /// `mn`: meta no-op, answered in its turn.
    MetaNoop,
    /// `stats`.
    Stats {
        /// The group's name, or empty.
        group: &'a [u8],
        /// The words after it.
        rest: Words<'a>,
    },
    /// A list of all items.
    List(Listing),
    /// `cache_memlimit`.
    Memory {
        /// The new memory.
        megabytes: u64,
        /// Whether no answer is wanted.
        noreply: bool,
    },
    /// Something that this service understands and that changes nothing.
    Understood {
        /// Whether no answer is wanted.
        noreply: bool,
    },
    /// `watch`.
    Watch(Streams),
    /// `debugtime`.
    DebugTime(DebugTime),
    /// `shutdown`.
    Shutdown {
        /// How.
        rest: Words<'a>,
    },
    /// `refresh_certs`.
    RefreshCerts {
        /// Whether no answer is wanted.
        noreply: bool,
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
    /// Whether `noreply` as its last word also silences what is wrong with its other words.
    pub may_be_quiet: bool,
    /// Reads the words after the name.
    pub read: for<'a> fn(Words<'a>) -> Result<Command<'a>, Refusal>,
}

/// All commands.
pub static COMMANDS: &[&Row] = &[
    &meta::MG,
    &set::SET,
    &get::GET,
    &meta::MS,
    &get::GETS,
    &delete::DELETE,
    &arithmetic::INCR,
    &arithmetic::DECR,
    &touch::TOUCH,
    &set::ADD,
    &set::CAS,
    &set::REPLACE,
    &set::APPEND,
    &set::PREPEND,
    &get::GAT,
    &get::GATS,
    &meta::MD,
    &meta::MA,
    &meta::MN,
    &meta::ME,
    &flush::FLUSH_ALL,
    &admin::STATS,
    &admin::VERSION,
    &admin::QUIT,
    &admin::VERBOSITY,
    &admin::CACHE_MEMLIMIT,
    &admin::REFRESH_CERTS,
    &admin::SHUTDOWN,
    &watch::WATCH,
    &admin::DEBUGTIME,
    &crawler::LRU_CRAWLER,
    &crawler::LRU,
    &crawler::SLABS,
];

/// A command line that has been refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub refusal: Refusal,
    /// Whether no answer is wanted.
    pub noreply: bool,
}

/// Reads a command line, given without its end.
///
/// # Errors
/// The answer that says what is wrong with it.
#[inline]
pub fn read_line(line: &[u8]) -> Result<Command<'_>, Refused> {
    let mut words = Words::new(line);
    let name = words.next().unwrap_or_default();
    let row = COMMANDS.iter().find(|row| row.name.as_bytes() == name);
    let Some(row) = row else {
        let is_foreign = foreign::is_foreign(line);
        let refusal = if is_foreign { Refusal::Foreign } else { Refusal::Unknown };
        return Err(Refused { refusal, noreply: false });
    };
    match (row.read)(words) {
        // Keys are read as they come, and so is what makes them a request line.
        Ok(command @ Command::Get { .. }) => Ok(command),
        _ if foreign::is_request(words) => {
            Err(Refused { refusal: Refusal::Foreign, noreply: false })
        }
        Ok(command) => Ok(command),
        Err(refusal) => {
            // memcached counts the words before it looks at the last one.
            let noreply = row.may_be_quiet
                && refusal != Refusal::Unknown
                && words.last().is_some_and(words::noreply);
            Err(Refused { refusal, noreply })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_a_known_name_is_an_error() {
        for line in [&b""[..], b"   ", b"gte a", b"GET a", b"get\ta"] {
            let refused = Refused { refusal: Refusal::Unknown, noreply: false };
            assert_eq!(read_line(line).err(), Some(refused), "{line:?}");
        }
    }

    #[test]
    fn a_wish_for_no_answer_silences_mistakes_but_not_a_wrong_number_of_words() {
        let quiet = |line: &[u8]| read_line(line).expect_err("refused").noreply;
        assert!(quiet(b"set a x 0 1 noreply") && quiet(b"incr a x noreply"));
        assert!(!quiet(b"set a 0 noreply") && !quiet(b"set a x 0 1"));
        assert!(!quiet(b"mg a ! noreply"));
    }

    #[test]
    fn a_request_line_of_http_is_foreign_whatever_its_method() {
        for row in COMMANDS {
            let line = format!("{} /x HTTP/1.1", row.name);
            match read_line(line.as_bytes()) {
                Ok(Command::Get { .. }) => {}
                other => {
                    let refused = Refused { refusal: Refusal::Foreign, noreply: false };
                    assert_eq!(other.err(), Some(refused), "{line}");
                }
            }
        }
    }

    #[test]
    fn every_row_is_documented_and_its_usage_starts_with_its_name() {
        for row in COMMANDS {
            assert!(row.usage.starts_with(row.name) && !row.doc.is_empty(), "{}", row.name);
        }
    }
}
