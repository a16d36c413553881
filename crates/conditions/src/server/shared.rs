//! The state as the owner and its readers share it. Control plane.
//!
//! Who waits to write would hold up all who come to read then. So whoever may read for long goes
//! through a gate, at which the owner waits for them: it waits for the state itself only as long as
//! the little questions take that the threads of connections answer.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use tokio::sync::Notify;

use crate::model::State;

/// The state, shared with readers.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// Locked before the state.
    gate: RwLock<()>,
    state: RwLock<State>,
    /// Told whenever a group has been applied.
    applied: Notify,
}

/// The state as it is; nothing is applied for as long as this is held.
pub(crate) struct Reading<'a> {
    state: RwLockReadGuard<'a, State>,
    /// Of whoever may read for long.
    _gate: Option<RwLockReadGuard<'a, ()>>,
}

impl Deref for Reading<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

/// The state while a group is applied.
pub(super) struct Writing<'a> {
    state: RwLockWriteGuard<'a, State>,
    _gate: RwLockWriteGuard<'a, ()>,
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
        let (gate, state, applied) = (RwLock::new(()), RwLock::new(state), Notify::new());
        Self(Arc::new(Inner { gate, state, applied }))
    }

    /// The state, for little work, unless a group is being applied or waits for such work.
    pub(super) fn try_read(&self) -> Option<Reading<'_>> {
        let state = match self.0.state.try_read() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Reading { state, _gate: None })
    }

    /// The state, for little work, once no group is being applied: waits without holding up the
    /// thread.
    pub(crate) async fn free(&self) -> Reading<'_> {
        loop {
            let applied = self.0.applied.notified();
            if let Some(state) = self.try_read() {
                return state;
            }
            applied.await;
        }
    }

    /// The state, for little work of threads that may wait: past the gate.
    pub(super) fn little(&self) -> Reading<'_> {
        let state = self.0.state.read().unwrap_or_else(PoisonError::into_inner);
        Reading { state, _gate: None }
    }

    /// The state, for threads that may wait, and for as long as it takes.
    pub(crate) fn read(&self) -> Reading<'_> {
        let gate = Some(self.0.gate.read().unwrap_or_else(PoisonError::into_inner));
        // A thread that panics while it applies a group ends the service's writes, not its reads.
        let state = self.0.state.read().unwrap_or_else(PoisonError::into_inner);
        Reading { state, _gate: gate }
    }

    /// Whether a change waits for those who read for long, or is applied.
    #[cfg(test)]
    pub(super) fn is_awaited(&self) -> bool {
        self.0.gate.try_read().is_err()
    }

    pub(super) fn write(&self) -> Writing<'_> {
        let gate = self.0.gate.write().unwrap_or_else(PoisonError::into_inner);
        let state = self.0.state.write().unwrap_or_else(PoisonError::into_inner);
        Writing { state, _gate: gate, _tell: Tell(&self.0.applied) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_waits_for_a_long_question_holds_up_no_little_one() {
        let shared = Shared::new(State::default());
        let long = shared.read();
        std::thread::scope(|scope| {
            let change = scope.spawn(|| drop(shared.write()));
            while !shared.is_awaited() {
                std::thread::yield_now();
            }
            assert!((0..1_000).all(|_| shared.try_read().is_some()));
            drop(long);
            change.join().expect("no panic");
        });
        assert!(shared.try_read().is_some());
    }
}
