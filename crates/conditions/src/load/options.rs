//! Options of the dialects of peers that have tables.

use serde::Deserialize;

/// Options of a peer with tables.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(
    not(any(feature = "postgres", feature = "sqlite")),
    expect(dead_code, reason = "read only to be checked")
)]
pub(super) struct TableOptions {
    /// Whether its tables are analysed once they are filled.
    #[serde(default = "yes")]
    pub(super) analyze: bool,
}

fn yes() -> bool {
    true
}

#[cfg(any(feature = "postgres", feature = "sqlite"))]
impl TableOptions {
    /// Those that a target's dialect has.
    pub(super) fn of(speaks: &load::Speaks) -> Result<Self, wire::ProtocolError> {
        speaks.read().map_err(|error| wire::ProtocolError::new(error.message))
    }
}
