//! Where several servers share their data, as typed. Control plane.

use std::fmt;
use std::path::PathBuf;

use crate::server::TierSettings;

/// Why `--metadata` is refused where the feature is left out.
pub(crate) const ONE_SERVER: &str = "--metadata: this loadline is built for one server of its \
    data: build it with `cargo build --release --features tier`";

const HEADING: &str = if cfg!(feature = "tier") {
    "Several servers of the same data (docs/design-tier.md)"
} else {
    "Several servers of the same data (docs/design-tier.md); this program is built \
     without them, and has them with the feature `tier`"
};

/// Where several servers share their data.
#[derive(clap::Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct SharedArgs {
    /// What isn't sealed, and all names, are in this PostgreSQL; --data then only has copies,
    /// which may be lost. A password is better given as PGPASSWORD in the environment
    #[arg(long, value_name = "POSTGRES-URL", requires = "segments")]
    pub(crate) metadata: Option<String>,

    /// Encrypt what goes to PostgreSQL, and trust a server for which one of these authorities (PEM)
    /// vouches by the name or address of --metadata
    #[arg(long, value_name = "FILE", requires = "metadata")]
    pub(crate) metadata_ca: Option<PathBuf>,

    /// Segments and files are at s3://BUCKET/PREFIX, with the credentials of the environment
    /// (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION), or in file:///DIRECTORY
    #[arg(long, value_name = "URL", requires = "metadata")]
    pub(crate) segments: Option<String>,

    /// Where S3 is, if it isn't AWS
    #[arg(long, value_name = "URL", requires = "segments")]
    pub(crate) segments_endpoint: Option<String>,

    /// Trust a service of S3 for which one of these authorities (PEM) vouches, beside the system's
    #[arg(long, value_name = "FILE", requires = "segments_endpoint")]
    pub(crate) segments_ca: Option<PathBuf>,
}

impl fmt::Debug for SharedArgs {
    /// Addresses may have a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedArgs").finish_non_exhaustive()
    }
}

impl SharedArgs {
    /// What they mean, with the most bytes of copies; `None` where none is given.
    ///
    /// # Errors
    /// When a file of authorities can't be read.
    pub(crate) fn settings(self, cache_bytes: u64) -> anyhow::Result<Option<TierSettings>> {
        let Some((metadata, segments)) = self.metadata.zip(self.segments) else { return Ok(None) };
        let read = |path: Option<PathBuf>| path.as_deref().map(service::read_secret).transpose();
        Ok(Some(TierSettings {
            metadata,
            password: std::env::var("PGPASSWORD").ok(),
            metadata_authorities: read(self.metadata_ca)?,
            segments,
            endpoint: self.segments_endpoint,
            endpoint_authorities: read(self.segments_ca)?,
            cache_bytes,
        }))
    }
}
