//! What every request of the pages needs.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Semaphore;

/// The site.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) ledger: PathBuf,
    pub(super) requests: Arc<Semaphore>,
}
