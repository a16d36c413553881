//! `watch`, and the streams that there are.

use super::tokens::Tokens;
use super::{Command, Row};
use crate::protocol::Refusal;

/// A set of streams of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Streams(pub u8);

impl Streams {
    /// Reads.
    pub const FETCHERS: Self = Self(1);
    /// Stores.
    pub const MUTATIONS: Self = Self(2);
    /// Evictions.
    pub const EVICTIONS: Self = Self(4);
    /// Connections that come and go.
    pub const CONNEVENTS: Self = Self(8);
    /// Streams that memcached has and in which nothing happens here.
    const QUIET: Self = Self(0);

    /// Whether `stream` is one of them.
    #[inline]
    pub fn has(self, stream: Self) -> bool {
        self.0 & stream.0 != 0
    }
}

/// All names of streams.
const NAMES: &[(&str, Streams)] = &[
    ("fetchers", Streams::FETCHERS),
    ("mutations", Streams::MUTATIONS),
    ("evictions", Streams::EVICTIONS),
    ("connevents", Streams::CONNEVENTS),
    ("sysevents", Streams::QUIET),
    ("rawcmds", Streams::QUIET),
    ("proxyreqs", Streams::QUIET),
    ("proxyevents", Streams::QUIET),
    ("proxyuser", Streams::QUIET),
];

/// `watch`.
pub(super) static WATCH: Row = Row {
    name: "watch",
    usage: "watch [fetchers|mutations|evictions|connevents]...",
    doc: "Makes the connection a stream of lines about what happens; reads, unless it is said.",
    may_be_quiet: true,
    read: read_watch,
};

fn read_watch(tokens: Tokens<'_>) -> Result<Command<'_>, Refusal> {
    let (mut streams, mut is_any) = (Streams::default(), false);
    for token in tokens {
        let found = NAMES.iter().find(|(name, _)| name.as_bytes() == token);
        streams.0 |= found.ok_or(Refusal::Unknown)?.1.0;
        is_any = true;
    }
    Ok(Command::Watch(if is_any { streams } else { Streams::FETCHERS }))
}

#[cfg(test)]
mod tests {
    use super::super::read_line;
    use super::*;

    #[test]
    fn streams_are_named_and_reads_are_meant_when_none_is() {
        let read = |line: &[u8]| match read_line(line) {
            Ok(Command::Watch(streams)) => Some(streams.0),
            _ => None,
        };
        assert_eq!(read(b"watch"), Some(1));
        assert_eq!(read(b"watch evictions mutations"), Some(6));
        assert_eq!(read(b"watch sysevents"), Some(0));
        assert_eq!(read(b"watch everything"), None);
    }
}
