//! Several servers of the same data: segments and files in an object store, all else in PostgreSQL
//! (docs/design-tier.md). What a server has on its own disk are copies. Control plane.

mod bucket;
mod cache;
mod check;
mod fresh;
mod group;
mod groups;
mod metadata;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use bytes::Bytes;

use super::segments::Segments;
use super::shared::Shared;
use super::store::{Store, most_unsealed};
use super::tier_args::TierSettings;
use crate::nopayload::server::storage::Origin;
use bucket::Bucket;
use cache::Kept;
use groups::{Contact, Groups};
use metadata::Metadata;

pub use check::{CheckedShared, check_shared};
pub(super) use fresh::layer;

/// The object that says of which store the others are.
const STORE: &str = "STORE";

/// What a server over shared data consists of.
pub(super) struct Tier {
    pub(super) store: Store,
    pub(super) contact: Arc<Contact>,
    /// Where files are kept.
    pub(super) files: Arc<dyn Origin>,
    /// What fetches segments.
    pub(super) segments: Segments,
}

/// Opens the data that servers share, with copies in a directory of this one.
///
/// # Errors
/// When they can't be reached or read, or are not of each other.
pub(super) fn open(
    settings: &TierSettings,
    copies: &Path,
    seal_after: u64,
) -> anyhow::Result<Tier> {
    let metadata = metadata_of(settings)?;
    let (store, writer) = metadata.prepare().context("--metadata")?;
    let bucket = Arc::new(bucket_of(settings)?);
    check_store(&bucket, &store)?;
    let folder = copies_of_segments(copies);
    let kept = Kept::open(bucket.clone(), &folder, settings.cache_bytes);
    let kept = Arc::new(kept.with_context(|| format!("{} can't be prepared", folder.display()))?);
    let segments = Segments::of_origin(&folder, kept.clone());
    let loaded = groups::load(&metadata, &segments)?;
    for damage in loaded.state.damages(false) {
        tracing::error!("{damage}: what it holds is refused");
    }
    segments.sweep(loaded.state.segments())?;
    tracing::info!(revision = loaded.state.revision(), "the shared data are read");
    let log = Groups::new(metadata, writer, (segments.clone(), kept), &loaded);
    let contact = log.contact();
    let (shared, limits) = (Shared::new(loaded.state), (seal_after, most_unsealed(seal_after)));
    let store = Store::begin(shared, Box::new(log), segments.clone(), limits)?;
    Ok(Tier { store, contact, files: bucket, segments })
}

/// Where a directory has copies of segments.
pub(super) fn copies_of_segments(copies: &Path) -> PathBuf {
    copies.join("segments")
}

fn metadata_of(settings: &TierSettings) -> anyhow::Result<Metadata> {
    let authorities = settings.metadata_authorities.as_deref();
    let metadata = Metadata::of(&settings.metadata, settings.password.as_deref(), authorities);
    metadata.map_err(anyhow::Error::msg).context("--metadata")
}

fn bucket_of(settings: &TierSettings) -> anyhow::Result<Bucket> {
    let authorities = settings.endpoint_authorities.as_deref();
    let bucket = Bucket::open(&settings.segments, settings.endpoint.as_deref(), authorities);
    bucket.context("--segments")
}

/// Refuses objects of another store than the tables are of.
fn check_store(bucket: &Bucket, store: &str) -> anyhow::Result<()> {
    let mut found = Vec::new();
    match bucket.get(STORE, &mut found) {
        Ok(()) if found == store.as_bytes() => Ok(()),
        Ok(()) => anyhow::bail!(
            "--segments holds the segments of another store than --metadata: give those that \
             belong to each other, or an empty place to a new database"
        ),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            match bucket.put(STORE, Bytes::from(store.to_owned())) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    anyhow::bail!("--segments names a bucket that isn't there: make it first")
                }
                put => put.context("--segments can't be written"),
            }
        }
        Err(error) => Err(error).context("--segments can't be read"),
    }
}
