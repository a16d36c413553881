//! Commands about the service itself: `stats`, `version`, `quit`.

use super::{Command, Row};

/// `stats`.
pub(super) static STATS: Row = Row {
    name: "stats",
    usage: "stats [settings|reset]",
    doc: "What the service has counted, how it is set, or a new start for the counts.",
    read: |mut words| Ok(Command::Stats { group: words.next().unwrap_or_default() }),
};

/// `version`.
pub(super) static VERSION: Row = Row {
    name: "version",
    usage: "version",
    doc: "The service's version.",
    read: |_| Ok(Command::Version),
};

/// `quit`.
pub(super) static QUIT: Row =
    Row { name: "quit", usage: "quit", doc: "Closes the connection.", read: |_| Ok(Command::Quit) };
