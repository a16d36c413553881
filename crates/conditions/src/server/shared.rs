//! The state as the owner and its readers share it. Control plane.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use tokio::sync::Notify;

use crate::model::State;

/// The state, shared with readers.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: RwLock<State>,
    /// Told whenever a group has been applied.
    applied: Notify,
}

/// The state as it is; nothing is applied for as long as this is held.
pub(crate) type Reading<'a> = RwLockReadGuard<'a, State>;

/// The state while a group is applied.
pub(super) struct Writing<'a> {
    state: RwLockWriteGuard<'a, State>,
    /// Dropped after the lock.
    _tell: Tell<'a>,
}

/// Tells when it is dropped.
struct Tell<'a>(&'a Notify);

impl Drop for Tell<'_> {
    fn drop(&mut self) {
        self.0.notify_waiters();
    }
}

impl Deref for Writing<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Writing<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Shared {
    pub(super) fn new(state: State) -> Self {
        Self(Arc::new(Inner { state: RwLock::new(state), applied: Notify::new() }))
    }

    /// The state, unless a group is being applied or waits for readers to end.
    pub(super) fn try_read(&self) -> Option<Reading<'_>> {
        match self.0.state.try_read() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The state, once no group is being applied: waits without holding up the thread.
    pub(crate) async fn free(&self) -> Reading<'_> {
        loop {
            let applied = self.0.applied.notified();
            if let Some(state) = self.try_read() {
                return state;
            }
            applied.await;
        }
    }

    /// The state, for threads that may wait.
    pub(crate) fn read(&self) -> Reading<'_> {
        // A thread that panics while it applies a group ends the service's writes, not its reads.
        self.0.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> Writing<'_> {
        let state = self.0.state.write().unwrap_or_else(PoisonError::into_inner);
        Writing { state, _tell: Tell(&self.0.applied) }
    }
}
