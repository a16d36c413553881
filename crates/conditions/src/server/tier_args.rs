//! Where servers that share their data have it. Control plane.

use std::fmt;

/// Where servers share their data. Shown without what may be secret.
#[derive(Clone)]
pub struct TierSettings {
    /// The address of PostgreSQL: `postgres://USER:PASSWORD@HOST:PORT/DATABASE`.
    pub metadata: String,
    /// The password, where the address has none.
    pub password: Option<String>,
    /// The authorities that vouch for PostgreSQL (PEM); connections to it are encrypted then.
    pub metadata_authorities: Option<Vec<u8>>,
    /// The place in an object store: `s3://BUCKET/PREFIX`, or `file:///DIRECTORY`.
    pub segments: String,
    /// The address of the service of S3, where it isn't AWS.
    pub endpoint: Option<String>,
    /// Authorities that vouch for it, beside those of the system (PEM).
    pub endpoint_authorities: Option<Vec<u8>>,
    /// The most bytes of copies of segments on this server's disk: at least those of all indexes.
    pub cache_bytes: u64,
}

impl fmt::Debug for TierSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { segments, endpoint, cache_bytes, .. } = self;
        let mut shown = f.debug_struct("TierSettings");
        shown.field("segments", segments).field("endpoint", endpoint);
        shown.field("cache_bytes", cache_bytes).finish_non_exhaustive()
    }
}
