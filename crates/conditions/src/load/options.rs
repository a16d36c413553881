//! Options of the dialects of peers that have tables.

use serde::Deserialize;

/// Options of SQLite.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "read only to be checked"))]
pub(super) struct SqliteOptions {
    /// Whether its tables are analysed once they are filled.
    #[serde(default = "yes")]
    pub(super) analyze: bool,
}

/// Options of PostgreSQL.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "read only to be checked"))]
pub(super) struct PostgresOptions {
    /// Whether its tables are analysed once they are filled.
    #[serde(default = "yes")]
    pub(super) analyze: bool,
    /// Whether the objects that are read are indexed.
    #[serde(default = "yes")]
    pub(super) index: bool,
    /// Whether what is read is asked for by folder and channel.
    #[serde(default)]
    pub(super) order: bool,
    /// How many servers there are: the one that is written to at the target's address, and its
    /// replicas at the addresses after it. Slots are divided among them.
    #[serde(default = "one")]
    pub(super) servers: u8,
    /// Whether it says how long it takes by its own clock, which is two messages more a statement.
    #[serde(default)]
    pub(super) server_time: bool,
}

fn one() -> u8 {
    1
}

fn yes() -> bool {
    true
}
