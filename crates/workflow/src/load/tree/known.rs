//! What the server's tree should be, and how far this client follows it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::super::numbers::Numbers;
use super::names::Names;

/// How many there are of what steps are about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) jobs: u64,
    pub(super) pairs: u64,
    pub(super) commands: u64,
    pub(super) released: u64,
}

/// What is known of one target, shared by all clients.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<State>);

/// The tree as it should be.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// The nodes that were loaded and not deleted.
    pub(super) names: Names,
    /// The change numbers of the last answer to a sync.
    pub(super) numbers: Numbers,
    /// Whether something was changed since then.
    pub(super) has_changed: bool,
    /// The nodes of a whole tree that was taken, and of its first levels.
    pub(super) levels: Option<(Names, [Names; 4])>,
    /// How many pairs have had their first task ended.
    pub(super) pairs: u64,
}

impl Known {
    /// What is known, for as long as a step takes.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
