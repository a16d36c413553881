//! What every request of the pages needs.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::reading::Reading;

/// The site.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) ledger: Reading,
    pub(super) requests: Arc<Semaphore>,
}
