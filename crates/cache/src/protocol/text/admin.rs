//! Commands about the service itself.

use super::tokens::{Tokens, noreply, number};
use super::{Command, Row};
use crate::protocol::Refusal;

/// `stats`.
pub(super) static STATS: Row = Row {
    name: "stats",
    usage: "stats [settings|items|slabs|sizes|conns|cachedump|detail|evictions|cpu|hotkeys|reset]",
    doc: "What the service has counted, how it is set, or a new start for the counts.",
    may_be_quiet: false,
    read: |mut tokens| {
        Ok(Command::Stats { group: tokens.next().unwrap_or_default(), rest: tokens })
    },
};

/// `version`.
pub(super) static VERSION: Row = Row {
    name: "version",
    usage: "version",
    doc: "The service's version.",
    may_be_quiet: false,
    read: |_| Ok(Command::Version),
};

/// `quit`.
pub(super) static QUIT: Row = Row {
    name: "quit",
    usage: "quit",
    doc: "Closes the connection.",
    may_be_quiet: false,
    read: |_| Ok(Command::Quit),
};

/// `verbosity`.
pub(super) static VERBOSITY: Row = Row {
    name: "verbosity",
    usage: "verbosity LEVEL [noreply]",
    doc: "Logs errors (1), also connections and commands (2), also states (3), at most as much as \
          the service was started with.",
    may_be_quiet: true,
    read: read_verbosity,
};

/// `cache_memlimit`.
pub(super) static CACHE_MEMLIMIT: Row = Row {
    name: "cache_memlimit",
    usage: "cache_memlimit MEGABYTES [noreply]",
    doc: "Changes the memory for items; where it is less than is in use, the oldest go.",
    may_be_quiet: true,
    read: read_memory,
};

/// `refresh_certs`.
pub(super) static REFRESH_CERTS: Row = Row {
    name: "refresh_certs",
    usage: "refresh_certs [noreply]",
    doc: "Reads the files of certificates again, for the connections that come from then on.",
    may_be_quiet: false,
    read: |tokens| {
        Ok(Command::RefreshCerts { noreply: noreply(tokens.last().unwrap_or_default()) })
    },
};

/// `shutdown`.
pub(super) static SHUTDOWN: Row = Row {
    name: "shutdown",
    usage: "shutdown [graceful]",
    doc: "Ends the service, where that is allowed.",
    may_be_quiet: false,
    read: |tokens| Ok(Command::Shutdown { rest: tokens }),
};

/// A change of the service's clock, for tests of expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DebugTime {
    /// It stands still.
    Pause,
    /// It runs again.
    Resume,
    /// It jumps by this many seconds.
    Jump(i64),
}

/// `debugtime`.
pub(super) static DEBUGTIME: Row = Row {
    name: "debugtime",
    usage: "debugtime SECONDS|p|r",
    doc: "Moves, stops or restarts the service's clock, where that is allowed: for tests.",
    may_be_quiet: true,
    read: read_debug_time,
};

fn read_debug_time(mut tokens: Tokens<'_>) -> Result<Command<'_>, Refusal> {
    let ([token], _) = tokens.gather(1)?;
    let seconds = || std::str::from_utf8(token).ok()?.parse().ok();
    Ok(Command::DebugTime(match token {
        b"p" => DebugTime::Pause,
        b"r" => DebugTime::Resume,
        _ => DebugTime::Jump(seconds().ok_or(Refusal::BadLine)?),
    }))
}

fn read_verbosity(mut tokens: Tokens<'_>) -> Result<Command<'_>, Refusal> {
    let ([level, last], _) = tokens.gather(1)?;
    let level = number(level, u64::from(u32::MAX)).ok_or(Refusal::BadLine)?;
    Ok(Command::Verbosity { level, noreply: noreply(last) })
}

fn read_memory(mut tokens: Tokens<'_>) -> Result<Command<'_>, Refusal> {
    let ([megabytes, last], _) = tokens.gather(1)?;
    match number(megabytes, u64::from(u32::MAX)) {
        None => Err(Refusal::Unknown),
        Some(0..8) => Err(Refusal::LittleMemory),
        Some(1_000_000_001..) => Err(Refusal::ManyMegabytes),
        Some(megabytes) => Ok(Command::Memory { megabytes, noreply: noreply(last) }),
    }
}
