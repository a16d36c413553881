//! What every request needs.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::Semaphore;

use super::reading::Reading;

/// The state that requests share.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) ledger: Reading,
    pub(super) address: SocketAddr,
    pub(super) public: bool,
    pub(super) requests: Arc<Semaphore>,
}
