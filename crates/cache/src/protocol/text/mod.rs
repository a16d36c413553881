//! The text protocol, classic and meta: one row for each command, and one table of the rows.
//!
//! A row parses the tokens after its name. A command with a data block carries its length; the
//! connection reads the block straight into its place.

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
mod tokens;
mod touch;
mod watch;

pub use admin::DebugTime;
pub use answer::{Answer, put_encoded, read_answer};
pub use crawler::{CrawlerCommand, Listing, MAX_SLEEP_US};
pub use foreign::RequestForm;
pub use get::{Key, PlainRead, next_key, plain_read};
pub use meta::{
    Meta, MetaFacts, MetaFlag, MetaMode, put_echoes, put_facts, put_stored, put_summed,
};
pub use set::{Set, StoreVerb};
pub use tokens::Tokens;
pub use watch::Streams;

use crate::protocol::Refusal;

/// A parsed command line.
#[derive(Clone, Debug)]
pub enum Command<'a> {
    /// `get`, `gets`, `gat` or `gats`: the keys follow as tokens.
    Get {
        /// Whether the answer carries each item's unique number.
        with_cas: bool,
        /// The items' new expiry.
        exptime: Option<i64>,
        /// The keys, not yet checked.
        keys: Tokens<'a>,
    },
    /// A storage command: a data block follows.
    Set(Set<'a>),
    /// `delete`.
    Delete {
        /// The key.
        key: &'a [u8],
        /// Whether `noreply` is given.
        noreply: bool,
    },
    /// `incr` or `decr`.
    Sum {
        /// The key.
        key: &'a [u8],
        /// Whether it is `incr`.
        increment: bool,
        /// The difference.
        delta: u64,
        /// Whether `noreply` is given.
        noreply: bool,
    },
    /// `touch`.
    Touch {
        /// The key.
        key: &'a [u8],
        /// The expiry as it is written.
        exptime: i64,
        /// Whether `noreply` is given.
        noreply: bool,
    },
    /// `flush_all`.
    FlushAll {
        /// The delay as it is written; it is checked after everything else, as in memcached.
        delay: Result<i64, Refusal>,
        /// Whether `noreply` is given.
        noreply: bool,
    },
    /// `mg`: meta get.
    MetaGet(Meta<'a>),
    /// `ms`: meta set: a data block follows.
    MetaSet(Meta<'a>, MetaMode),
    /// `md`: meta delete.
    MetaDelete(Meta<'a>),
    /// `ma`: meta arithmetic; whether it increments.
    MetaSum(Meta<'a>, bool),
    /// `me`: the metadata of a key.
    MetaDebug(Meta<'a>),
    /// `mn`: meta no-op, which is answered in order.
    MetaNoop,
    /// `stats`.
    Stats {
        /// The group's name, or empty.
        group: &'a [u8],
        /// The tokens after it.
        rest: Tokens<'a>,
    },
    /// A list of all items.
    List(Listing),
    /// `lru_crawler` with anything but a list.
    Crawler(CrawlerCommand),
    /// `cache_memlimit`.
    Memory {
        /// The new memory.
        megabytes: u64,
        /// Whether `noreply` is given.
        noreply: bool,
    },
    /// `verbosity`.
    Verbosity {
        /// How much is to be logged.
        level: u64,
        /// Whether `noreply` is given.
        noreply: bool,
    },
    /// A command of memcached's that changes nothing here.
    Ignored {
        /// Whether `noreply` is given.
        noreply: bool,
    },
    /// `watch`.
    Watch(Streams),
    /// `debugtime`.
    DebugTime(DebugTime),
    /// `shutdown`.
    Shutdown {
        /// The mode.
        rest: Tokens<'a>,
    },
    /// `refresh_certs`.
    RefreshCerts {
        /// Whether `noreply` is given.
        noreply: bool,
    },
    /// `version`.
    Version,
    /// `quit`.
    Quit,
}

/// One command.
pub struct Row {
    /// The first token of its line.
    pub name: &'static str,
    /// The syntax of its line.
    pub usage: &'static str,
    /// Its effect, in one sentence.
    pub doc: &'static str,
    /// Whether `noreply` as its last token also suppresses errors about its other tokens.
    pub may_be_quiet: bool,
    /// Parses the tokens after the name.
    pub read: for<'a> fn(Tokens<'a>) -> Result<Command<'a>, Refusal>,
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

/// A refused command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub refusal: Refusal,
    /// Whether `noreply` is given.
    pub noreply: bool,
}

/// Parses a command line, given without its end.
///
/// # Errors
/// Returns the answer that refuses it.
#[inline]
pub fn read_line(line: &[u8]) -> Result<Command<'_>, Refused> {
    let mut tokens = Tokens::new(line);
    let name = tokens.next().unwrap_or_default();
    let row = COMMANDS.iter().find(|row| row.name.as_bytes() == name);
    let Some(row) = row else {
        let is_foreign = foreign::is_foreign(line);
        let refusal = if is_foreign { Refusal::Foreign } else { Refusal::Unknown };
        return Err(Refused { refusal, noreply: false });
    };
    match (row.read)(tokens) {
        // Keys are read as they come, and so is what makes them a request line.
        Ok(command @ Command::Get { .. }) => Ok(command),
        _ if foreign::is_request(tokens) => {
            Err(Refused { refusal: Refusal::Foreign, noreply: false })
        }
        Ok(command) => Ok(command),
        Err(refusal) => {
            // memcached counts the tokens before it looks at the last one.
            let noreply = row.may_be_quiet
                && refusal != Refusal::Unknown
                && tokens.last().is_some_and(tokens::noreply);
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
