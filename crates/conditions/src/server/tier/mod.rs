//! Several servers of the same data: segments and files in an object store, all else in PostgreSQL
//! (docs/design-tier.md). What a server has on its own disk are copies. Control plane.

mod bucket;
mod cache;
mod check;
mod fresh;
mod group;
mod groups;
mod metadata;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

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

/// How many segments are asked for together that no question has needed yet, and how long it takes
/// until what failed is tried again.
const COPIED_AT_ONCE: usize = 64;
const COPY_AGAIN: Duration = Duration::from_secs(5);

/// The object that says of which store the others are.
const STORE: &str = "STORE";

/// What a server over shared data consists of.
pub(super) struct Tier {
    pub(super) store: Store,
    pub(super) contact: Arc<Contact>,
    /// Where files are kept.
    pub(super) files: Arc<dyn Origin>,
    /// Whether segments may be missing here that are fetched when they are asked for.
    pub(super) is_partial: Arc<AtomicBool>,
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
    let folder = copies.join("segments");
    let kept = Kept::open(bucket.clone(), &folder, settings.cache_bytes);
    let kept = Arc::new(kept.with_context(|| format!("{} can't be prepared", folder.display()))?);
    let segments = Segments::of_origin(&folder, kept.clone());
    let loaded = groups::load(&metadata, &segments, true)?;
    for damage in loaded.state.damages(false) {
        tracing::error!("{damage}: what it holds is refused");
    }
    segments.sweep(loaded.state.segments())?;
    tracing::info!(revision = loaded.state.revision(), "the shared data are read");
    let is_partial = copy_all(&segments, &loaded.wanted)?;
    let (own, partial) = ((segments.clone(), kept), Arc::clone(&is_partial));
    let log = Groups::new(metadata, writer, own, &loaded, partial);
    let contact = log.contact();
    let (shared, limits) = (Shared::new(loaded.state), (seal_after, most_unsealed(seal_after)));
    let store = Store::begin(shared, Box::new(log), segments, limits)?;
    Ok(Tier { store, contact, files: bucket, is_partial })
}

/// Has all segments copied that are not here yet, while questions are answered: what they need is
/// fetched before. Returns whether some may be missing, which ends.
fn copy_all(segments: &Segments, wanted: &[(u64, u64, u32)]) -> anyhow::Result<Arc<AtomicBool>> {
    let is_partial = Arc::new(AtomicBool::new(!wanted.is_empty()));
    if wanted.is_empty() {
        return Ok(is_partial);
    }
    let (segments, wanted) = (segments.clone(), wanted.to_vec());
    let weak = Arc::downgrade(&is_partial);
    let copy = move || {
        for some in wanted.chunks(COPIED_AT_ONCE) {
            // Until the server ends, or has gone on over other segments, with copies of all.
            while weak.upgrade().is_some_and(|is_partial| is_partial.load(Relaxed)) {
                match segments.bring(some) {
                    Ok(()) => break,
                    Err(why) => tracing::error!("segments can't be fetched: {why}: tried again"),
                }
                std::thread::sleep(COPY_AGAIN);
            }
        }
        if let Some(is_partial) = weak.upgrade() {
            is_partial.store(false, Relaxed);
            tracing::info!("all segments are here");
        }
    };
    std::thread::Builder::new().name("copies".to_owned()).spawn(copy)?;
    Ok(is_partial)
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
