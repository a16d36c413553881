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
}

fn yes() -> bool {
    true
}
