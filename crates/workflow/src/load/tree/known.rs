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
    /// Whether all tasks are suspended, and how many nodes the next sync has to bring for that.
    pub(super) is_suspended: bool,
    pub(super) least_nodes: u64,
    /// The nodes of a whole tree that was taken, and of its first levels.
    pub(super) levels: Option<(Names, [Names; 4])>,
    /// How many pairs have had their first task ended.
    pub(super) pairs: u64,
}

impl State {
    /// A client has all up to these numbers.
    pub(super) fn synced(&mut self, numbers: Numbers) {
        (self.numbers, self.has_changed, self.least_nodes) = (numbers, false, 0);
    }

    /// All tasks were suspended, or resumed.
    pub(super) fn suspended(&mut self, is_suspended: bool, tasks: usize) {
        if std::mem::replace(&mut self.is_suspended, is_suspended) != is_suspended {
            self.least_nodes = tasks as u64;
        }
    }

    /// Whether a sync brings as many nodes as it has to.
    pub(super) fn hold_nodes(&self, nodes: u64) -> Result<(), String> {
        let least = self.least_nodes;
        match nodes >= least {
            true => Ok(()),
            false => Err(format!("{nodes} nodes come, and {least} tasks were changed")),
        }
    }
}

impl Known {
    /// What is known, for as long as a step takes.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
