//! The state as the owner and its readers share it. Control plane.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use crate::model::State;

/// The state, shared with readers.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<RwLock<State>>);

impl Shared {
    pub(super) fn new(state: State) -> Self {
        Self(Arc::new(RwLock::new(state)))
    }

    /// The state, unless a group is being applied.
    pub(crate) fn try_read(&self) -> Option<RwLockReadGuard<'_, State>> {
        match self.0.try_read() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The state as it is; nothing is applied for as long as this is held.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State> {
        // A thread that panics while it applies a group ends the service's writes, not its reads.
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
